#include "tests/emulator/random_graph.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace pipeweaver::emulator::random_graphs {

namespace {

// A kernel before `kernels`, or an input; nothing where there is neither.
std::optional<Signal> random_signal(Random& random, std::uint32_t kernels, std::uint32_t inputs) {
    if (kernels + inputs == 0) return std::nullopt;
    const auto chosen = static_cast<std::uint32_t>(random.below(kernels + inputs));
    return chosen < kernels ? Signal::kernel(chosen) : Signal::input(chosen - kernels);
}

}  // namespace

OperatorGraph random_graph(Random& random, std::uint32_t streams, std::uint32_t inputs, std::uint32_t outputs,
                           std::uint32_t most) {
    OperatorGraph graph(streams, inputs);
    const auto kernels = static_cast<std::uint32_t>(1 + random.below(most));
    for (std::uint32_t i = 0; i < kernels; ++i) {
        std::vector<Signal> waits;
        for (std::uint64_t w = random.below(3); w > 0; --w)
            if (const auto signal = random_signal(random, i, inputs)) waits.push_back(*signal);
        const auto duration = random.below(8) == 0 ? 0 : random.below(100);
        const bool is_transfer = !waits.empty() && random.below(6) == 0;
        const auto stream = is_transfer ? no_stream : static_cast<std::uint32_t>(random.below(streams));
        graph.launch(stream, Duration{static_cast<std::int64_t>(duration)}, waits,
                     Bytes{static_cast<std::int64_t>(random.below(50))},
                     Bytes{static_cast<std::int64_t>(random.below(50))});
    }
    for (std::uint32_t i = 0; i < outputs; ++i) graph.add_output(*random_signal(random, kernels, inputs));
    return graph;
}

StreamState random_state(Random& random, std::size_t size) {
    StreamState state(size);
    for (auto& time : state) time = static_cast<std::int64_t>(random.below(200));
    return state;
}

StreamState simulate(const OperatorGraph& graph, const StreamState& before) {
    struct Stream {
        std::vector<std::size_t> queue;  // kernels, the next one last
        std::int64_t free_at = 0;
    };
    std::vector<Stream> streams(graph.streams());
    for (std::size_t s = 0; s < streams.size(); ++s) streams[s].free_at = before[s];
    for (std::size_t i = graph.kernels().size(); i-- > 0;) {
        const std::uint32_t stream = graph.kernels()[i].stream;
        if (stream == no_stream) streams.emplace_back();  // one of its own
        (stream == no_stream ? streams.back() : streams[stream]).queue.push_back(i);
    }
    std::vector<std::optional<std::int64_t>> ended(graph.kernels().size());
    std::set<std::int64_t> clock(before.begin(), before.end());
    const auto is_there = [&](Signal signal, std::int64_t now) {
        if (signal.is_input()) return before[graph.streams() + signal.index()] <= now;
        return ended[signal.index()].has_value() && *ended[signal.index()] <= now;
    };
    while (!clock.empty()) {
        const std::int64_t now = *clock.begin();
        clock.erase(clock.begin());
        for (bool started = true; started;) {  // kernels of no duration let others start at the same time
            started = false;
            for (Stream& stream : streams) {
                if (stream.queue.empty() || stream.free_at > now) continue;
                const std::size_t kernel = stream.queue.back();
                const auto waits = graph.waits(kernel);
                if (!std::all_of(waits.begin(), waits.end(), [&](Signal s) { return is_there(s, now); })) continue;
                stream.queue.pop_back();
                stream.free_at = now + graph.kernels()[kernel].duration.count();
                ended[kernel] = stream.free_at;
                clock.insert(stream.free_at);
                started = true;
            }
        }
    }
    StreamState after;
    for (std::size_t s = 0; s < graph.streams(); ++s) after.push_back(streams[s].free_at);
    for (const Signal output : graph.outputs())
        after.push_back(output.is_input() ? before[graph.streams() + output.index()] : ended[output.index()].value());
    return after;
}

OperatorGraph without(const OperatorGraph& graph, std::size_t left_out) {
    OperatorGraph result(graph.streams(), graph.inputs());
    const auto moved = [&](Signal signal) {
        return signal.is_input() || signal.index() < left_out ? signal : Signal::kernel(signal.index() - 1);
    };
    // What stands for the kernel as an output: the last that it waited for, or what is there anyway.
    const auto waits_of_it = graph.waits(left_out);
    const Signal otherwise = graph.inputs() > 0 ? Signal::input(0) : Signal::kernel(0);
    const Signal instead = waits_of_it.empty() ? otherwise : moved(waits_of_it.back());
    const auto is_it = [&](Signal signal) { return !signal.is_input() && signal.index() == left_out; };
    for (std::size_t i = 0; i < graph.kernels().size(); ++i) {
        if (i == left_out) continue;
        const Kernel& kernel = graph.kernels()[i];
        std::vector<Signal> waits;
        for (const Signal wait : graph.waits(i)) {
            if (!is_it(wait))
                waits.push_back(moved(wait));
            else
                for (const Signal other : waits_of_it) waits.push_back(moved(other));
        }
        const bool is_cut_off = kernel.stream == no_stream && waits.empty();
        result.launch(is_cut_off ? 0 : kernel.stream, kernel.duration, waits, kernel.acquire, kernel.release);
    }
    for (const Signal output : graph.outputs()) result.add_output(is_it(output) ? instead : moved(output));
    return result;
}

OperatorGraph shrunk(OperatorGraph graph, const std::function<bool(const OperatorGraph&)>& fails) {
    for (std::size_t i = 0; graph.kernels().size() > 1 && i < graph.kernels().size();) {
        auto smaller = without(graph, i);
        if (fails(smaller)) {
            graph = std::move(smaller);
            i = 0;
        } else {
            ++i;
        }
    }
    return graph;
}

}  // namespace pipeweaver::emulator::random_graphs
