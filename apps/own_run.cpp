#include "apps/own_run.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/measured/own_run.hpp"
#include "pipeweaver/measured/report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::apps {

namespace {

using emulator::MemoryKind;

// The kinds as options are told them.
const std::vector<std::string>& memory_kinds() {
    static const std::vector<std::string> all{"allocated", "reserved", "on-device"};
    return all;
}

MemoryKind memory_kind_called(const std::string& name) {
    const auto& all = memory_kinds();
    const auto found = std::find(all.begin(), all.end(), name);
    return found == all.end() ? MemoryKind::allocated : static_cast<MemoryKind>(found - all.begin());
}

std::vector<std::string> assumed_in(const emulator::Setup& setup) {
    auto all = emulator::approximations(setup);
    all.insert(all.end(), setup.model.assumed.begin(), setup.model.assumed.end());
    return all;
}

}  // namespace

void OwnRunOptions::add_to(OptionTable& options) {
    options.group("A run of your own, in place of RUNS.csv");
    options.parsed("measured", "TIME", "the step as it was measured, like 4.5s", [this](const std::string& text) {
        measured = parse_duration(text);
        if (*measured <= Duration{}) fail(ErrorKind::input, "{}", must_be(text, "a time above 0"));
    });
    options.parsed("memory", "SIZE", "the peak of the fullest GPU, like 61GiB", [this](const std::string& text) {
        memory = parse_bytes(text);
        if (*memory <= Bytes{}) fail(ErrorKind::input, "{}", must_be(text, "a size above 0"));
    });
    options.choice("memory-kind", memory_kind, memory_kinds(),
                   "what that peak is: of tensors, of PyTorch's allocator, or as nvidia-smi shows it (default: "
                   "allocated)");
    options.integer("seed", limits.seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
    options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
    asked.add_to(options);
}

void OwnRunOptions::require_none() const {
    const char* alone = !asked.workload.model.empty()     ? "model"
                        : !asked.workload.cluster.empty() ? "cluster"
                        : memory                          ? "memory"
                        : !memory_kind.empty()            ? "memory-kind"
                                                          : nullptr;
    if (alone != nullptr) fail(ErrorKind::input, "--{}: is of a run of your own: --measured is missing", alone);
}

void OwnRunOptions::run(const Console& console) const {
    const auto execute = limits.executor();
    const auto request = asked.request(static_cast<std::uint64_t>(limits.seed), execute);
    const auto emulation = planner::emulate(request, execute);
    const auto report = measured::own_run(request, emulation, {*measured, memory, memory_kind_called(memory_kind)});
    const auto assumed = assumed_in(*request.job.setup);
    if (console.json) {
        print_json(measured::own_run_json(report, assumed));
        return;
    }
    print_on_stdout(measured::own_run_text(report, assumed));
}

}  // namespace pipeweaver::apps
