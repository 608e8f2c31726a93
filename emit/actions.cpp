#include "pipeweaver/emit/actions.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::emit {

using namespace emulator;
using Writer = nlohmann::ordered_json;

namespace {

std::vector<std::size_t> by_start(const Replay& replay, const Problem& problem) {
    std::vector<std::size_t> order(problem.tasks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(replay.start[a], index(problem.tasks[a].rank), a) <
               std::tuple(replay.start[b], index(problem.tasks[b].rank), b);
    });
    return order;
}

// Transfers by one of their tasks.
std::vector<std::vector<std::size_t>> transfers_by(const StepProblem& step, bool sender) {
    std::vector<std::vector<std::size_t>> by(step.problem.tasks.size());
    for (std::size_t t = 0; t < step.transfers.size(); ++t) {
        const Edge& edge = step.problem.edges[step.transfers[t].edge];
        by[index(sender ? edge.from : edge.to)].push_back(t);
    }
    return by;
}

Writer place_of(const Task& task) {
    return {{"stage", *task.stage}, {"microbatch", *task.microbatch}, {"item", *task.item}};
}

Writer tensor_list(const StepProblem& step) {
    Writer list = Writer::array();
    for (std::size_t t = 0; t < step.transfers.size(); ++t) {
        const Transfer& transfer = step.transfers[t];
        const Edge& edge = step.problem.edges[transfer.edge];
        const Task& from = step.problem.tasks[index(edge.from)];
        const Task& to = step.problem.tasks[index(edge.to)];
        list.push_back({{"tensor", t},
                        {"kind", from.kind == TaskKind::forward ? "activation" : "gradient"},
                        {"from", place_of(from)},
                        {"to", place_of(to)},
                        {"rows", transfer.rows},
                        {"columns", transfer.columns},
                        {"dtype", "bf16"},
                        {"bytes_per_gpu", transfer.message.count}});
    }
    return list;
}

Writer compute(const Problem& problem, std::size_t task, const std::string& recompute) {
    const Task& t = problem.tasks[task];
    Writer action{{"op", std::string(1, letter(t.kind))}, {"task", task}};
    action.update(place_of(t));
    action["module"] = t.module;
    if (t.kind != TaskKind::weight_gradient) action["recompute"] = recompute;
    return action;
}

Writer message(std::string_view op, std::size_t tensor, std::optional<std::size_t> peer) {
    Writer action{{"op", op}, {"tensor", tensor}};
    if (peer) {
        action["peer"] = *peer;
        action["tag"] = tensor;
    }
    return action;
}

}  // namespace

std::string actions(const StepProblem& step, const Schedule& schedule, const Replay& replay,
                    const std::vector<Recompute>& modes) {
    const Problem& problem = step.problem;
    const Replayer replayer(problem);
    const auto sent = transfers_by(step, true), received = transfers_by(step, false);
    std::vector<std::vector<std::string>> rows(problem.ranks.size());
    const auto rank_of = [&](TaskId task) { return index(problem.tasks[index(task)].rank); };
    for (const std::size_t task : by_start(replay, problem)) {
        auto& row = rows[index(problem.tasks[task].rank)];
        for (const std::size_t t : received[task]) {
            const Edge& edge = problem.edges[step.transfers[t].edge];
            if (rank_of(edge.from) != rank_of(edge.to)) row.push_back(message("wait", t, {}).dump());
        }
        const std::uint32_t pair = replayer.pair_of(task);
        const std::string recompute(pair == Replayer::unpaired ? "none" : name_of(modes[schedule.mode[pair]]));
        row.push_back(compute(problem, task, recompute).dump());
        for (const std::size_t t : sent[task]) {
            const Edge& edge = problem.edges[step.transfers[t].edge];
            if (rank_of(edge.from) == rank_of(edge.to)) continue;
            row.push_back(message("send", t, rank_of(edge.to)).dump());
            rows[rank_of(edge.to)].push_back(message("receive", t, rank_of(edge.from)).dump());
        }
    }
    std::string out = fmt::format("{{\"format\":\"pipeweaver-actions/1\",\"problem\":{},\"ranks\":{},\n\"tensors\":[\n",
                                  Writer(problem.name).dump(), problem.ranks.size());
    const Writer tensors = tensor_list(step);
    for (std::size_t t = 0; t < tensors.size(); ++t) out += tensors[t].dump() + (t + 1 < tensors.size() ? ",\n" : "\n");
    out += "],\n\"actions\":[\n";
    for (std::size_t r = 0; r < rows.size(); ++r)
        out += fmt::format("[{}]{}\n", fmt::join(rows[r], ",\n "), r + 1 < rows.size() ? "," : "");
    return out + "]}\n";
}

std::vector<Bytes> receive_buffers_needed(const StepProblem& step, const Replay& replay) {
    struct Event {
        Duration time;
        int order;  // at one instant, buffers are freed before others are taken
        std::int64_t change;
    };
    const Problem& problem = step.problem;
    std::vector<std::vector<Event>> events(problem.ranks.size());
    for (const Transfer& transfer : step.transfers) {
        const Edge& edge = problem.edges[transfer.edge];
        const std::size_t to = index(problem.tasks[index(edge.to)].rank);
        if (index(problem.tasks[index(edge.from)].rank) == to) continue;
        events[to].push_back({replay.start[index(edge.from)], 1, transfer.message.count});
        events[to].push_back({replay.start[index(edge.to)], 0, -transfer.message.count});
    }
    std::vector<Bytes> peaks;
    for (auto& rank : events) {
        std::sort(rank.begin(), rank.end(), [](const Event& a, const Event& b) {
            return std::tuple(a.time, a.order, a.change) < std::tuple(b.time, b.order, b.change);
        });
        std::int64_t used = 0, peak = 0;
        for (const Event& event : rank) peak = std::max(peak, used += event.change);
        peaks.push_back({peak});
    }
    return peaks;
}

}  // namespace pipeweaver::emit
