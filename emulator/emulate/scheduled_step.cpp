// What the tasks of a schedule run: their passes, the operators of these, and those as kernels.
#include "emulator/emulate/step_times.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <map>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

PassKind pass_of(TaskKind kind) {
    switch (kind) {
        case TaskKind::backward:
            return PassKind::backward;
        case TaskKind::input_gradient:
            return PassKind::input_gradient;
        case TaskKind::weight_gradient:
            return PassKind::weight_gradient;
        default:
            return PassKind::forward;
    }
}

bool makes_weight_gradients(const StepInput& input, const TaskPass& task) {
    if (task.dealt != nullptr) return false;
    if (task.pass != PassKind::backward && task.pass != PassKind::weight_gradient) return false;
    return std::any_of(task.stage->parts.begin(), task.stage->parts.end(), [&](const LayerRange& part) {
        return trains(input.setup->model, part) && !task.unit->shapes[part.module].lengths.empty();
    });
}

// An operator of a pass.
struct OperatorAt {
    std::size_t piece = 0, list = 0, row = 0;
};

// The longest that computes, or where none does the longest but the host's.
OperatorAt longest_of(const std::vector<PassPiece>& pieces) {
    OperatorAt at;
    Duration longest{-1};
    bool computes = false;
    for (std::size_t p = 0; p < pieces.size(); ++p)
        for (std::size_t l = 0; l < pieces[p].lists.size(); ++l)
            for (std::size_t i = 0; i < pieces[p].lists[l].duration.size(); ++i) {
                const Stream stream = pieces[p].lists[l].operators[i].stream;
                const Duration time = pieces[p].lists[l].duration[i];
                const bool compute = stream == Stream::compute;
                if (stream == Stream::host || (computes && !compute) || (compute == computes && time <= longest))
                    continue;
                longest = time, computes = compute;
                at = {p, l, i};
            }
    return at;
}

// The one that ends last: if it takes longer, so does the pass, by as much.
OperatorAt last_to_end(const std::vector<PassPiece>& pieces, const Recipe& recipe) {
    const OperatorGraph whole = pass_graph(pieces, recipe);
    std::vector<std::int64_t> ends;
    static_cast<void>(replay(whole, StreamState(streams + whole.inputs(), 0), ends));
    OperatorAt at;
    std::int64_t latest = 0;
    std::size_t kernel = 0;  // in the whole pass
    for (std::size_t p = 0; p < pieces.size(); ++p)
        for (std::int64_t i = 0; i < pieces[p].times; ++i)
            for (std::size_t l = 0; l < pieces[p].lists.size(); ++l) {
                const PricedOperators& list = pieces[p].lists[l];
                for (const std::uint32_t row : list_graph(list.operators, list.duration, recipe).operator_of) {
                    const std::int64_t end = ends[kernel++];
                    if (row == ListGraph::no_operator || end < latest) continue;
                    latest = end;
                    at = {p, l, row};
                }
            }
    return at;
}

// Gives one operator the difference: a split backward is a few nanoseconds off the sum of its parts, or by
// Recipe::split_slowdown more, and a pass that copies no shorter than one that keeps all.
void fit(std::vector<PassPiece>& pieces, Duration wanted, const Recipe& recipe) {
    const Duration rest = wanted - cost_of(pieces, recipe).time;
    if (rest == Duration{0}) return;
    const bool closed = is_closed(pieces, recipe);
    const auto [place, in_list, in_row] = closed ? longest_of(pieces) : last_to_end(pieces, recipe);
    PassPiece one = pieces[place];
    PIPEWEAVER_ASSERT(rest > Duration{0} || (closed && one.lists[in_list].duration[in_row] + rest >= Duration{0}));
    one.times = 1;
    one.lists[in_list].duration[in_row] += rest;
    one.lists[in_list].cost.time += rest;
    if (--pieces[place].times == 0)
        pieces[place] = std::move(one);
    else
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(place) + 1, std::move(one));
}

}  // namespace

ScheduledStep::ScheduledStep(const StepInput& input, const StepProblem& step, const Schedule& schedule)
    : input_(input),
      step_(step),
      schedule_(schedule),
      replayer_(step.problem),
      layers_(*input.setup, input.layouts, input.replica, LayerCosts::Store::own),
      costs_(replayer_.costs(schedule.mode)) {
    std::vector<std::int64_t> first_stage;
    std::int64_t stages = 0;
    for (const Chain& chain : input.chains) {
        first_stage.push_back(stages);
        stages += static_cast<std::int64_t>(chain.stages.size());
    }
    for (std::size_t i = 0; i < step.problem.tasks.size(); ++i) {
        const Task& task = step.problem.tasks[i];
        const std::size_t chain = step.chain[i];
        TaskPass pass;
        if (chain < input.chains.size()) {
            pass.stage = &input.chains[chain].stages[static_cast<std::size_t>(*task.stage - first_stage[chain])];
            pass.unit = &input.units[static_cast<std::size_t>(*task.microbatch)][chain][step.unit[i]];
        }
        pass.pass = pass_of(task.kind);
        if (const auto pair = replayer_.pair_of(i); pair != Replayer::unpaired)
            pass.recompute = input.modes_on(task.rank)[schedule.mode[pair]];
        passes_.push_back(pass);
    }
    if (!step.phases.empty()) dealt_ = std::make_unique<const DealtCosts>(input);
    for (const PhasePass& phase : step.phases) {
        const auto pair = replayer_.pair_of(index(phase.task));
        const std::size_t mode = pair == Replayer::unpaired ? 0 : schedule.mode[pair];
        passes_[index(phase.task)].dealt = &phase.longest[mode];
    }
    for (const auto& order : schedule.order) {
        std::map<std::int64_t, std::size_t> last;
        for (const TaskId task : order)
            if (makes_weight_gradients(input, passes_[index(task)]))
                last[*step.problem.tasks[index(task)].stage] = index(task);
        for (const auto& [stage, task] : last) passes_[task].makes_last_gradients = true;
    }
}

bool ScheduledStep::beside_data(std::size_t task) const {
    return passes_[task].makes_last_gradients && input_.setup->recipe.bucket > Bytes{};
}

std::vector<PassPiece> ScheduledStep::pieces(std::size_t task) const {
    const TaskPass& pass = passes_[task];
    auto pieces =
        pass.dealt != nullptr
            ? dealt_->pieces(step_.problem.tasks[task].rank, *pass.dealt, pass.pass, pass.recompute)
            : layers_.task_pieces(*pass.stage, pass.unit->shapes, pass.pass, pass.recompute, beside_data(task));
    if (pieces.empty()) {
        // Nothing to do takes a nanosecond.
        const auto moment = costdb::Elementwise{Bytes{1}};
        pieces.push_back({{{{Operator{"nothing", moment}}, {Duration{1}}, {}}}, 0, 0, 1, false, 0});
        pieces.front().lists.front().cost.time = Duration{1};
    } else if (!beside_data(task)) {
        fit(pieces, costs_[task].duration, input_.setup->recipe);
    }
    return pieces;
}

namespace {

// What each list of a task takes and gives back: activations block by block, the rest with the pass.
class ListMemory {
public:
    ListMemory(const ScheduledStep& step, std::size_t task, const std::vector<PassPiece>& pieces)
        : take_(step.costs()[task].acquire), give_(step.costs()[task].release) {
        const TaskPass& pass = step.passes()[task];
        const bool forward = pass.pass == PassKind::forward;
        const bool paired = step.replayer().pair_of(task) != Replayer::unpaired;
        for (const PassPiece& piece : pieces) lists_ += static_cast<std::size_t>(piece.times) * piece.lists.size();
        // A phase takes and gives all at once: items of the fullest GPU need not be those of the slowest.
        if (pass.dealt != nullptr) return;
        if (!paired || (!forward && pass.pass != PassKind::backward)) return;
        blocks_ = held_by_blocks(step, pass, pieces);
        if (!forward) std::reverse(blocks_.begin(), blocks_.end());
        for (const Bytes held : blocks_) (forward ? take_ : give_) -= held;
        backward_ = !forward;
    }

    // Of the next list; the last of a block gives back what the block held.
    std::pair<Bytes, Bytes> next(const PassPiece& piece, bool first_of_block, bool last_of_block) {
        Bytes take, give;
        if (at_++ == 0) take += take_;
        if (piece.blocks && block_ < blocks_.size()) {
            if (!backward_ && first_of_block) take += blocks_[block_];
            if (backward_ && last_of_block) give += blocks_[block_];
            if (last_of_block) ++block_;
        }
        if (at_ == lists_) give += give_;
        return {take, give};
    }

private:
    // Those that the pass runs through: no backward goes on in frozen modules that no gradient reaches.
    static std::vector<Bytes> held_by_blocks(const ScheduledStep& step, const TaskPass& pass,
                                             const std::vector<PassPiece>& pieces) {
        const auto all = pass_memory(step.input(), *pass.stage, pass.unit->shapes, pass.recompute, true).held_by_block;
        std::vector<Bytes> held;
        auto next = all.begin();
        for (const LayerRange& part : pass.stage->parts) {
            if (pass.unit->shapes[part.module].lengths.empty()) continue;
            const bool runs = std::any_of(pieces.begin(), pieces.end(), [&](const PassPiece& piece) {
                return piece.blocks && piece.module == part.module;
            });
            if (runs) held.insert(held.end(), next, next + part.count);
            next += part.count;
        }
        return held;
    }

    Bytes take_, give_;
    std::vector<Bytes> blocks_;
    bool backward_ = false;
    std::size_t lists_ = 0, at_ = 0, block_ = 0;
};

}  // namespace

TaskGraph task_graph(const ScheduledStep& step, std::size_t task, const std::vector<PassPiece>& pieces) {
    TaskGraph all{empty_pass(), {}, {}, {}, {}};
    ListMemory memory(step, task, pieces);
    for (const PassPiece& piece : pieces)
        for (std::int64_t i = 0; i < piece.times; ++i)
            for (std::size_t l = 0; l < piece.lists.size(); ++l) {
                const PricedOperators& list = piece.lists[l];
                const auto [take, give] = memory.next(piece, l == 0, l + 1 == piece.lists.size());
                const auto kernels = list_graph(list.operators, list.duration, step.input().setup->recipe, take, give);
                all.first_kernel.push_back(static_cast<std::uint32_t>(all.graph.kernels().size()));
                all.operators.push_back(&list);
                all.piece.push_back(&piece);
                all.graph.append(kernels.graph);
                all.operator_of.insert(all.operator_of.end(), kernels.operator_of.begin(), kernels.operator_of.end());
            }
    all.first_kernel.push_back(static_cast<std::uint32_t>(all.graph.kernels().size()));
    return all;
}

}  // namespace pipeweaver::emulator
