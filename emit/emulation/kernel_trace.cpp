#include "emit/targets/trace.hpp"
#include "pipeweaver/emit/emulation_files.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::emit {

using namespace emulator;

namespace {

std::string arguments_of(const TracedKernel& kernel) {
    std::string text;
    const auto add = [&](std::string_view name, const std::optional<std::int64_t>& value) {
        if (value) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, *value);
    };
    add("microbatch", kernel.microbatch);
    add("stage", kernel.stage);
    return "{" + text + "}";
}

void add_streams(TraceEvents& events, std::size_t process, const std::vector<TracedKernel>& kernels) {
    std::array<bool, streams> used{};
    for (const TracedKernel& kernel : kernels) used[static_cast<std::size_t>(kernel.stream)] = true;
    for (std::size_t s = 0; s < streams; ++s)
        if (used[s]) events.thread(process, s, name_of(static_cast<Stream>(s)));
}

}  // namespace

std::string kernel_trace(const ReplicaEmulation& replica, const std::vector<RankKernels>& ranks) {
    TraceEvents events;
    for (const RankKernels& one : ranks) {
        const auto process = static_cast<std::size_t>(one.rank);
        events.process(process, fmt::format("rank {}", one.rank));
        add_streams(events, process, one.kernels);
        for (const TracedKernel& kernel : one.kernels)
            events.event(process, static_cast<std::size_t>(kernel.stream), kernel.name, kernel.module, kernel.start,
                         kernel.duration, arguments_of(kernel));
        for (const MemoryPoint& point : replica.memory[process].timeline) events.memory(process, point.at, point.held);
    }
    return events.file();
}

}  // namespace pipeweaver::emit
