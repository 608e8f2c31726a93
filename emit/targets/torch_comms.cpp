#include "emit/targets/torch_csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/actions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

// PyTorch itself keeps so many stages of a rank whole: one for a forward, one for a backward, one fetched ahead.
constexpr std::size_t stages_unsharded = 3;

// An action of PyTorch with its stage; what is no pass has only that.
struct Cell {
    std::int64_t stage = 0;
    std::string text;
    bool pass = false;
    bool gradients = false;  ///< B or W: the stage's gradients of the microbatch are there
};

// Problems need not list their stages; action lists do.
Problem with_stages(const Problem& problem) {
    std::map<std::int64_t, Stage> stages;
    for (const Task& task : problem.tasks) stages[*task.stage] = {*task.stage, task.rank, {}};
    Problem whole = problem;
    whole.stages.clear();
    for (auto& [number, stage] : stages) whole.stages.push_back(std::move(stage));
    return whole;
}

std::string message_text(const ActionTensor& tensor, bool sends) {
    const Pass& pass = sends ? tensor.from : tensor.to;
    return fmt::format("{}{}_{}{}", pass.stage, sends ? "SEND" : "RECV", tensor.gradient ? 'B' : 'F', pass.microbatch);
}

Cell cell_of(const Compute& action, bool joined) {
    const bool full = joined || action.kind == TaskKind::backward;
    const char kind = full ? 'B' : letter(action.kind);
    return {action.pass.stage, fmt::format("{}{}{}", action.pass.stage, kind, action.pass.microbatch), true,
            full || action.kind == TaskKind::weight_gradient};
}

// Passes and messages of a rank. The W of an I that is written as B falls away.
std::vector<Cell> cells_of(const ActionLists& lists, std::size_t rank, const std::vector<bool>& whole) {
    std::vector<Cell> cells;
    cells.reserve(lists.ranks[rank].size());
    std::set<Pass> joined;
    for (const Action& action : lists.ranks[rank]) {
        if (const auto* compute = std::get_if<Compute>(&action)) {
            const bool joins = whole[compute->task];
            if (joins) joined.insert(compute->pass);
            if (compute->kind != TaskKind::weight_gradient || !joined.contains(compute->pass))
                cells.push_back(cell_of(*compute, joins));
        } else if (const auto* message = std::get_if<Message>(&action);
                   message != nullptr && message->op != Message::Op::wait) {
            const bool sends = message->op == Message::Op::send;
            const ActionTensor& tensor = lists.tensors[message->tensor];
            cells.push_back({(sends ? tensor.from : tensor.to).stage, message_text(tensor, sends)});
        }
    }
    return cells;
}

// Of each cell that is a pass: the stages of it and of the passes behind it, each once, as many as are kept whole.
std::vector<std::vector<std::int64_t>> next_stages(const std::vector<Cell>& cells) {
    std::vector<std::vector<std::int64_t>> next(cells.size());
    std::vector<std::int64_t> order;  // of the stages, by their next pass
    for (std::size_t i = cells.size(); i-- > 0;) {
        if (!cells[i].pass) continue;
        std::erase(order, cells[i].stage);
        order.insert(order.begin(), cells[i].stage);
        next[i].assign(order.begin(),
                       order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), stages_unsharded)));
    }
    return next;
}

// How many passes of a stage end in gradients.
std::map<std::int64_t, std::size_t> gradients_of(const std::vector<Cell>& cells) {
    std::map<std::int64_t, std::size_t> count;
    for (const Cell& cell : cells)
        if (cell.gradients) ++count[cell.stage];
    return count;
}

// A rank's row: its cells, and around them what its stages' weights and gradients need.
class Row {
public:
    explicit Row(const std::vector<Cell>& cells) : to_come_(gradients_of(cells)) {
        row_.reserve(cells.size());
        const auto next = next_stages(cells);
        for (std::size_t i = 0; i < cells.size(); ++i) add(cells[i], next[i]);
        reduce();
        for (const std::int64_t stage : whole_) say(stage, "RESHARD");
    }

    std::string text() const { return fmt::format("{}\n", fmt::join(row_, ",")); }

private:
    void say(std::int64_t stage, std::string_view what) { row_.push_back(fmt::format("{}{}", stage, what)); }

    // What a stage's last backward sends goes first.
    void reduce() {
        if (complete_) say(*complete_, "REDUCE_GRAD");
        complete_.reset();
    }

    void add(const Cell& cell, const std::vector<std::int64_t>& next) {
        if (cell.pass) {
            reduce();
            keep_whole(next);
        }
        row_.push_back(cell.text);
        if (cell.gradients && --to_come_[cell.stage] == 0) complete_ = cell.stage;
    }

    void keep_whole(const std::vector<std::int64_t>& next) {
        const auto unused = [&](std::int64_t stage) {
            return std::find(next.begin(), next.end(), stage) == next.end();
        };
        for (const std::int64_t stage : whole_)
            if (unused(stage)) say(stage, "RESHARD");
        std::erase_if(whole_, unused);
        for (const std::int64_t stage : next)
            if (whole_.insert(stage).second) say(stage, "UNSHARD");
    }

    std::map<std::int64_t, std::size_t> to_come_;  // passes with gradients, by stage
    std::optional<std::int64_t> complete_;         // the stage whose gradients are, and are not yet reduced
    std::set<std::int64_t> whole_;
    std::vector<std::string> row_;
};

}  // namespace

std::string torch_comms(const Problem& problem, const Schedule& schedule, const std::vector<bool>& whole) {
    const ActionLists lists = derive_actions(with_stages(problem), schedule);
    if (const auto why = why_not_runnable(lists)) fail(ErrorKind::limit, "torch-csv: {}: {}", problem.name, *why);
    std::string csv;
    for (std::size_t r = 0; r < lists.ranks.size(); ++r) csv += Row(cells_of(lists, r, whole)).text();
    return csv;
}

}  // namespace pipeweaver::emit
