#include "pipeweaver/emulator/ports.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

constexpr std::uint32_t links_of_gpu = 2;  // its node's, and the network

// From one port to another. Its transfers go in the order in which they become ready.
struct Channel {
    std::uint32_t sender, receiver;    // ports
    std::vector<std::uint32_t> ready;  // edges
    std::size_t gone = 0;              // of them

    bool is_empty() const { return gone == ready.size(); }
    std::uint32_t head() const { return ready[gone]; }
};

// Runs the schedule in the order of time; what happens at one moment, ports that come free before tasks that end.
class PortRun {
public:
    PortRun(const StepProblem& step, const Schedule& schedule, const Replayer& replayer, std::vector<Duration>& lags)
        : problem_(step.problem),
          schedule_(schedule),
          costs_(replayer.costs(schedule.mode)),
          lags_(lags),
          edges_(static_cast<std::uint32_t>(lags.size())),
          wire_(lags.size()),
          channel_(lags.size()),
          ready_at_(lags.size()),
          missing_(problem_.tasks.size()),
          first_(problem_.tasks.size() + 1),
          by_task_(lags.size()),
          arrived_(problem_.tasks.size()),
          next_(problem_.ranks.size()),
          clock_(problem_.ranks.size()) {
        group_edges();
        add_channels(step);
    }

    // Changes the lags of those that wait; returns how many do.
    std::size_t run() {
        for (std::size_t r = 0; r < next_.size(); ++r) run_rank(r);
        while (!events_.empty()) {
            const auto [time, what] = events_.top();
            events_.pop();
            if (what < edges_)
                free_ports(channels_[channel_[what]], time);
            else
                end_task(what - edges_, time);
        }
        return waited_;
    }

private:
    using Event = std::pair<std::int64_t, std::uint32_t>;  // when; an edge whose wire is free, or edges_ + a task

    void group_edges() {
        for (const Edge& edge : problem_.edges) {
            ++first_[index(edge.from) + 1];
            ++missing_[index(edge.to)];
        }
        for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
        auto next = first_;
        for (std::uint32_t e = 0; e < edges_; ++e) by_task_[next[index(problem_.edges[e].from)]++] = e;
    }

    void add_channels(const StepProblem& step) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
        const auto ports = links_of_gpu * static_cast<std::uint32_t>(problem_.ranks.size());
        of_port_.resize(2 * std::size_t{ports});
        busy_.resize(of_port_.size());
        const auto rank_of = [&](TaskId task) {
            return static_cast<std::uint32_t>(index(problem_.tasks[index(task)].rank));
        };
        for (const Transfer& transfer : step.transfers) {
            if (transfer.wire == Duration{0}) continue;
            const Edge& edge = problem_.edges[transfer.edge];
            const std::uint32_t link = transfer.asked->gpus_per_node == 1 ? 1 : 0;
            const std::uint32_t sender = links_of_gpu * rank_of(edge.from) + link;
            const std::uint32_t receiver = ports + links_of_gpu * rank_of(edge.to) + link;
            const auto number = static_cast<std::uint32_t>(channels_.size());
            const auto [place, added] = known.try_emplace({sender, receiver}, number);
            if (added) {
                channels_.push_back({sender, receiver, {}});
                of_port_[sender].push_back(number);
                of_port_[receiver].push_back(number);
            }
            wire_[transfer.edge] = transfer.wire.count();
            channel_[transfer.edge] = place->second;
        }
    }

    // As far as what its tasks wait for is known to arrive.
    void run_rank(std::size_t rank) {
        const auto& order = schedule_.order[rank];
        while (next_[rank] < order.size() && missing_[index(order[next_[rank]])] == 0) {
            const std::size_t task = index(order[next_[rank]++]);
            clock_[rank] = std::max(clock_[rank], arrived_[task]) + costs_[task].duration.count();
            events_.emplace(clock_[rank], edges_ + static_cast<std::uint32_t>(task));
        }
    }

    void end_task(std::size_t task, std::int64_t now) {
        for (std::size_t i = first_[task]; i < first_[task + 1]; ++i) {
            const std::uint32_t edge = by_task_[i];
            if (wire_[edge] == 0) {
                arrive(edge, now);
                continue;
            }
            ready_at_[edge] = now;
            Channel& channel = channels_[channel_[edge]];
            channel.ready.push_back(edge);
            if (may_go(channel)) go(channel, now);
        }
    }

    bool may_go(const Channel& channel) const {
        return !channel.is_empty() && !busy_[channel.sender] && !busy_[channel.receiver];
    }

    void go(Channel& channel, std::int64_t now) {
        const std::uint32_t edge = channel.ready[channel.gone++];
        const std::int64_t waits = now - ready_at_[edge];
        lags_[edge] += Duration{waits};
        waited_ += waits > 0 ? 1 : 0;
        busy_[channel.sender] = busy_[channel.receiver] = 1;
        events_.emplace(now + wire_[edge], edge);
        arrive(edge, ready_at_[edge]);
    }

    // What was ready at `sent` gets there after its lag.
    void arrive(std::uint32_t edge, std::int64_t sent) {
        const std::size_t to = index(problem_.edges[edge].to);
        arrived_[to] = std::max(arrived_[to], sent + lags_[edge].count());
        if (--missing_[to] > 0) return;
        run_rank(index(problem_.tasks[to].rank));
    }

    void free_ports(const Channel& freed, std::int64_t now) {
        busy_[freed.sender] = busy_[freed.receiver] = 0;
        while (Channel* channel = longest_ready(freed)) go(*channel, now);
    }

    // Of all that could go through these two ports; null: none can.
    Channel* longest_ready(const Channel& ports) {
        Channel* longest = nullptr;
        const auto key = [&](const Channel& one) { return std::tuple(ready_at_[one.head()], one.head()); };
        for (const std::uint32_t port : {ports.sender, ports.receiver})
            for (const std::uint32_t number : of_port_[port]) {
                Channel& one = channels_[number];
                if (may_go(one) && (longest == nullptr || key(one) < key(*longest))) longest = &one;
            }
        return longest;
    }

    const Problem& problem_;
    const Schedule& schedule_;
    std::vector<TaskCost> costs_;
    std::vector<Duration>& lags_;                      // per edge
    std::uint32_t edges_;                              // how many
    std::vector<std::int64_t> wire_;                   // per edge; 0: it needs no port
    std::vector<std::uint32_t> channel_;               // per edge, if it needs ports
    std::vector<std::int64_t> ready_at_;               // per edge, if it needs ports
    std::vector<std::uint32_t> missing_;               // per task: edges that have not arrived
    std::vector<std::size_t> first_;                   // per task: its first edge in by_task_
    std::vector<std::uint32_t> by_task_;               // edges, by the task that they leave
    std::vector<std::int64_t> arrived_;                // per task: the last of what it waits for
    std::vector<std::size_t> next_;                    // per rank: in its order
    std::vector<std::int64_t> clock_;                  // per rank: the end of what it has begun
    std::vector<Channel> channels_;                    // that some transfer takes
    std::vector<std::vector<std::uint32_t>> of_port_;  // channels
    std::vector<char> busy_;                           // per port
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::size_t waited_ = 0;
};

// If every transfer went at once; those that need no port always do.
std::vector<Duration> lags_alone(const StepProblem& step) {
    std::vector<Duration> lags;
    lags.reserve(step.problem.edges.size());
    for (const Edge& edge : step.problem.edges) lags.push_back(edge.lag);
    for (const Transfer& transfer : step.transfers)
        if (transfer.wire > Duration{0}) lags[transfer.edge] = transfer.lag;
    return lags;
}

}  // namespace

PortReplay replay_on_ports(const StepProblem& step, const Schedule& schedule) {
    PortReplay result;
    result.lags = lags_alone(step);
    const Replayer alone(step.problem, result.lags);
    result.replay = alone.replay(schedule);
    PIPEWEAVER_ASSERT(result.replay.outcome == Outcome::completed);
    result.waits.transfers = static_cast<std::size_t>(
        std::count_if(step.transfers.begin(), step.transfers.end(), [](const Transfer& one) { return one.asked; }));
    result.waits.waited = PortRun(step, schedule, alone, result.lags).run();
    if (result.waits.waited == 0) return result;
    const Duration before = result.replay.makespan;
    result.replay = Replayer(step.problem, result.lags).replay(schedule);
    result.waits.lost = result.replay.makespan - before;
    return result;
}

Problem with_lags(Problem problem, const std::vector<Duration>& lags) {
    PIPEWEAVER_ASSERT(lags.size() == problem.edges.size());
    for (std::size_t e = 0; e < lags.size(); ++e) problem.edges[e].lag = lags[e];
    return problem;
}

PortWaits set_lags(StepProblem& step, const Schedule& schedule) {
    const PortReplay on_ports = replay_on_ports(step, schedule);
    step.problem = with_lags(std::move(step.problem), on_ports.lags);
    return on_ports.waits;
}

}  // namespace pipeweaver::emulator
