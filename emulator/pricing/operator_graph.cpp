#include "emulator/pricing/operator_graph.hpp"

#include "emulator/pricing/checked_sum.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

Signal OperatorGraph::launch(std::uint32_t stream, Duration duration, std::span<const Signal> waits, Bytes acquire,
                             Bytes release) {
    PIPEWEAVER_ASSERT(stream < streams_ || (stream == no_stream && !waits.empty()));
    PIPEWEAVER_ASSERT(duration.count() >= 0 && acquire.count >= 0 && release.count >= 0);
    const auto index = static_cast<std::uint32_t>(kernels_.size());
    kernels_.push_back({duration, acquire, release, stream, static_cast<std::uint32_t>(waits_.size())});
    for (const Signal wait : waits) {
        PIPEWEAVER_ASSERT(wait.index() < (wait.is_input() ? inputs_ : index));
        waits_.push_back(wait);
    }
    return Signal::kernel(index);
}

void OperatorGraph::add_output(Signal signal) {
    PIPEWEAVER_ASSERT(signal.index() < (signal.is_input() ? inputs_ : kernels_.size()));
    outputs_.push_back(signal);
}

void OperatorGraph::append(const OperatorGraph& later) {
    PIPEWEAVER_ASSERT(later.streams_ == streams_ && later.inputs_ == outputs_.size());
    const auto kernels = static_cast<std::uint32_t>(kernels_.size());
    const auto waits = static_cast<std::uint32_t>(waits_.size());
    const auto moved = [&](Signal signal) {
        return signal.is_input() ? outputs_[signal.index()] : Signal::kernel(kernels + signal.index());
    };
    for (Kernel kernel : later.kernels_) {
        kernel.first_wait += waits;
        kernels_.push_back(kernel);
    }
    for (const Signal wait : later.waits_) waits_.push_back(moved(wait));
    std::vector<Signal> outputs;
    outputs.reserve(later.outputs_.size());
    for (const Signal output : later.outputs_) outputs.push_back(moved(output));
    outputs_ = std::move(outputs);
}

void OperatorGraph::reserve(std::size_t kernels, std::size_t waits) {
    kernels_.reserve(kernels);
    waits_.reserve(waits);
}

std::size_t OperatorGraph::bytes() const {
    return kernels_.size() * sizeof(Kernel) + (waits_.size() + outputs_.size()) * sizeof(Signal);
}

StreamState replay(const OperatorGraph& graph, std::span<const std::int64_t> before, std::vector<std::int64_t>& ends) {
    PIPEWEAVER_ASSERT(before.size() == graph.streams() + graph.inputs());
    const auto kernels = graph.kernels();
    ends.resize(kernels.size());
    StreamState state(before.begin(), before.begin() + graph.streams());
    const auto time_of = [&](Signal signal) {
        return signal.is_input() ? before[graph.streams() + signal.index()] : ends[signal.index()];
    };
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Kernel& kernel = kernels[i];
        std::int64_t start = kernel.stream == no_stream ? INT64_MIN : state[kernel.stream];
        for (const Signal wait : graph.waits(i)) start = std::max(start, time_of(wait));
        ends[i] = checked_sum(start, kernel.duration.count());
        if (kernel.stream != no_stream) state[kernel.stream] = ends[i];
    }
    for (const Signal output : graph.outputs()) state.push_back(time_of(output));
    return state;
}

}  // namespace pipeweaver::emulator
