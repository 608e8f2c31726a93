#include "emulator/pricing/pass_graph.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::emulator {

namespace {

constexpr std::uint32_t number(Stream stream) { return static_cast<std::uint32_t>(stream); }
constexpr Signal front_ended = Signal::input(0), front_began = Signal::input(1);

// Traffic that nothing waits for at the end of its list.
bool runs_on(const Operator& op) { return op.stream == Stream::data || op.stream == Stream::copy; }

class ListBuilder {
public:
    ListBuilder(std::span<const Operator> operators, std::span<const Duration> durations, const Recipe& recipe)
        : operators_(operators),
          durations_(durations),
          launch_(recipe.launch),
          out_{OperatorGraph(streams, 2), {}},
          waited_for_(operators.size(), false) {}

    ListGraph build(Bytes acquire, Bytes release) {
        const std::size_t last = operators_.size() - 1;
        for (std::size_t i = 0; i <= last; ++i) launch(i, i == 0 ? acquire : Bytes{}, i == last ? release : Bytes{});
        out_.graph.add_output(end());
        out_.graph.add_output(front_ended);
        return std::move(out_);
    }

private:
    // Of the first operators, those that are fetched ahead.
    bool fetched(std::size_t i) const { return i == fetched_ && runs_on(operators_[i]) && operators_[i].after.empty(); }

    std::vector<Signal> waits_of(std::size_t i) {
        if (fetched(i)) {
            ++fetched_;
            return {front_began};
        }
        std::vector<Signal> waits;
        const auto wait_for = [&](std::size_t other) {
            PIPEWEAVER_ASSERT(other < i);
            waits.push_back(kernel_[other]);
            waited_for_[other] = true;
        };
        for (const std::uint32_t other : operators_[i].after) wait_for(other);
        if (!waits.empty()) return waits;
        if (i == fetched_) waits.push_back(front_ended);
        for (std::size_t other = i == fetched_ ? 0 : i - 1; other < i; ++other) wait_for(other);
        return waits;
    }

    void launch(std::size_t i, Bytes acquire, Bytes release) {
        const auto at = static_cast<std::uint32_t>(i);
        auto waits = waits_of(i);
        if (launch_ > Duration{0} && operators_[i].stream != Stream::host) {
            waits.push_back(out_.graph.launch(number(Stream::host), launch_, {}, acquire));
            out_.operator_of.push_back(at);
            acquire = {};
        }
        kernel_.push_back(out_.graph.launch(number(operators_[i].stream), durations_[i], std::span<const Signal>(waits),
                                            acquire, release));
        out_.operator_of.push_back(at);
    }

    // When all that the next list needs has ended.
    Signal end() {
        std::vector<Signal> ends;
        for (std::size_t i = 0; i < kernel_.size(); ++i)
            if (!waited_for_[i] && !runs_on(operators_[i])) ends.push_back(kernel_[i]);
        if (ends.empty()) return front_ended;
        if (ends.size() == 1) return ends.front();
        out_.operator_of.push_back(ListGraph::no_operator);
        return out_.graph.launch(no_stream, Duration{0}, std::span<const Signal>(ends));
    }

    std::span<const Operator> operators_;
    std::span<const Duration> durations_;
    Duration launch_;
    ListGraph out_;
    std::vector<Signal> kernel_;    // per operator
    std::vector<bool> waited_for_;  // by another of the list
    std::size_t fetched_ = 0;
};

}  // namespace

ListGraph list_graph(std::span<const Operator> operators, std::span<const Duration> durations, const Recipe& recipe,
                     Bytes acquire, Bytes release) {
    PIPEWEAVER_ASSERT(!operators.empty() && operators.size() == durations.size());
    return ListBuilder(operators, durations, recipe).build(acquire, release);
}

OperatorGraph empty_pass() {
    OperatorGraph graph(streams, 2);
    graph.add_output(front_ended);
    graph.add_output(front_began);
    return graph;
}

OperatorGraph pass_graph(const std::vector<PassPiece>& pieces, const Recipe& recipe) {
    OperatorGraph graph = empty_pass();
    for (const PassPiece& piece : pieces) {
        std::vector<ListGraph> lists;
        for (const PricedOperators& list : piece.lists)
            lists.push_back(list_graph(list.operators, list.duration, recipe));
        for (std::int64_t i = 0; i < piece.times; ++i)
            for (const ListGraph& list : lists) graph.append(list.graph);
    }
    return graph;
}

bool is_closed(const std::vector<PassPiece>& pieces, const Recipe& recipe) {
    if (!recipe.is_serial()) return false;
    for (const PassPiece& piece : pieces)
        for (const PricedOperators& list : piece.lists)
            if (std::any_of(list.operators.begin(), list.operators.end(), runs_on)) return false;
    return true;
}

namespace {

struct Interval {
    std::int64_t begin, end;
};

// Kernels of every stream in order, from the ends that a replay gave.
std::array<std::vector<Interval>, streams> by_stream(const OperatorGraph& graph, std::span<const std::int64_t> ends) {
    std::array<std::vector<Interval>, streams> all;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const Kernel& kernel = graph.kernels()[i];
        if (kernel.stream == no_stream || kernel.duration == Duration{0}) continue;
        all[kernel.stream].push_back({ends[i] - kernel.duration.count(), ends[i]});
    }
    return all;
}

}  // namespace

std::array<Duration, streams> exposed_between(const OperatorGraph& graph, std::span<const std::int64_t> ends,
                                              std::int64_t begin, std::int64_t end) {
    std::array<Duration, streams> exposed{};
    const auto intervals = by_stream(graph, ends);
    std::array<std::size_t, streams> next{};
    // From one change to the next: who runs?
    for (std::int64_t now = begin; now < end;) {
        std::int64_t until = end;
        std::size_t running = streams;
        for (std::size_t s = streams; s-- > 0;) {
            while (next[s] < intervals[s].size() && intervals[s][next[s]].end <= now) ++next[s];
            if (next[s] == intervals[s].size()) continue;
            const Interval& kernel = intervals[s][next[s]];
            until = std::min(until, kernel.begin > now ? kernel.begin : kernel.end);
            if (kernel.begin <= now) running = s;
        }
        PIPEWEAVER_ASSERT(running < streams);
        if (running != number(Stream::compute)) exposed[running] += Duration{until - now};
        now = until;
    }
    return exposed;
}

void set_times(const OperatorGraph& graph, PassCost& cost) {
    std::vector<std::int64_t> ends;
    const auto after = replay(graph, StreamState(streams + graph.inputs(), 0), ends);
    cost.time = Duration{*std::max_element(after.begin(), after.end())};
    cost.exposed = exposed_between(graph, ends, 0, cost.time.count());
}

}  // namespace pipeweaver::emulator
