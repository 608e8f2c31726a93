// Builds the schedule problem of a step: tasks, edges, pairs, memory, tails.
#include "pipeweaver/emulator/step.hpp"

#include "emulator/module_roles.hpp"
#include "emulator/stage_memory.hpp"
#include "emulator/step_parts.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

// Tasks of one unit's pass through one stage.
struct StagePass {
    std::optional<TaskId> forward, backward, weight;  // backward is I if split
};

class StepBuilder {
public:
    explicit StepBuilder(const StepInput& input)
        : in_(input),
          costs_(*input.model, *input.cluster, input.layout, *input.costs),
          gradient_(gradient_reaches(*input.model)) {}

    StepProblem build() {
        out_.problem.name = in_.name;
        out_.problem.source = fmt::format("pipeweaver plan: {} on {}", in_.model->name, in_.cluster->name);
        add_stages();
        out_.memory = static_memory(in_);
        for (std::size_t mb = 0; mb < in_.units.size(); ++mb) add_microbatch(mb);
        add_ranks(in_, largest_message_, out_);
        out_.model_flops = model_flops(in_);
        return std::move(out_);
    }

private:
    struct Crossing {
        std::int64_t rows, columns;
    };

    const workloads::Module& module(std::size_t m) const { return in_.model->modules[m]; }

    void add_stages() {
        std::int64_t number = 0;
        for (const Chain& chain : in_.chains) {
            first_stage_.push_back(number);
            for (const StageLayers& stage : chain.stages) {
                Stage entry{number++, stage.rank, {}};
                for (const LayerRange& part : stage.parts)
                    entry.parts.push_back({module(part.module).name, part.first, part.count});
                out_.problem.stages.push_back(std::move(entry));
            }
        }
        largest_message_.assign(static_cast<std::size_t>(in_.layout.pp), std::vector<Bytes>(2 * in_.chains.size()));
    }

    static bool works_on(const StageLayers& stage, const Unit& unit) {
        return std::any_of(stage.parts.begin(), stage.parts.end(),
                           [&](const LayerRange& part) { return !unit.shapes[part.module].lengths.empty(); });
    }

    bool has_backward(const StageLayers& stage) const {
        return std::any_of(stage.parts.begin(), stage.parts.end(),
                           [&](const LayerRange& part) { return gradient_[part.module]; });
    }

    // Whether an input gradient leaves the stage: something before it in the model is trained.
    bool sends_gradient(std::size_t chain, std::size_t stage) const {
        const StageLayers& layers = in_.chains[chain].stages[stage];
        const LayerRange& first = layers.parts.front();
        if (first.first > 0) return gradient_[first.module];
        return std::any_of(in_.model->edges.begin(), in_.model->edges.end(),
                           [&](const auto& edge) { return edge.to == first.module && gradient_[edge.from]; });
    }

    TaskId add_task(std::size_t mb, std::size_t chain, std::size_t unit, std::size_t stage, TaskKind kind,
                    const PassCost& cost, const PassCost& again) {
        const Chain& c = in_.chains[chain];
        Task task;
        task.rank = c.stages[stage].rank;
        task.kind = kind;
        task.duration = std::max(Duration{1}, cost.total());
        task.stage = first_stage_[chain] + static_cast<std::int64_t>(stage);
        task.microbatch = static_cast<std::int64_t>(mb);
        task.item = static_cast<std::int64_t>(unit);
        task.module = c.name;
        task.label = fmt::format("m{}.{}{}.s{}.{}", mb, c.name, unit, *task.stage, letter(kind));
        out_.problem.tasks.push_back(std::move(task));
        out_.cost.push_back(cost);
        out_.recompute.push_back(again);
        out_.unit.push_back(unit);
        out_.chain.push_back(chain);
        feeds_.push_back(false);
        return TaskId{static_cast<std::uint32_t>(out_.problem.tasks.size() - 1)};
    }

    Mode mode_of(const StageLayers& stage, const Unit& unit, Recompute recompute, bool source_split) {
        const PassMemory memory = pass_memory(in_, stage, unit.shapes, recompute, true, in_.split_backward);
        Mode mode;
        mode.forward = std::max(Duration{1}, costs_.stage(stage, unit.shapes, PassKind::forward).total());
        const Duration again = costs_.blocks_forward(stage, unit.shapes, recompute).total();
        mode.held = memory.held;
        mode.forward_transient = memory.forward_transient;
        mode.transient = memory.transient;
        if (!in_.split_backward) {
            mode.backward = std::max(Duration{1}, costs_.stage(stage, unit.shapes, PassKind::backward).total() + again);
        } else if (source_split) {
            // Nothing waits for the input gradient of raw data: I does nothing, W is the full backward.
            mode.backward = Duration{1};
            mode.weight = std::max(Duration{1}, costs_.stage(stage, unit.shapes, PassKind::backward).total() + again);
            mode.kept = mode.held + mode.transient;
        } else {
            mode.backward =
                std::max(Duration{1}, costs_.stage(stage, unit.shapes, PassKind::input_gradient).total() + again);
            mode.weight = std::max(Duration{1}, costs_.stage(stage, unit.shapes, PassKind::weight_gradient).total());
            mode.kept = mode.held + mode.transient;
        }
        return mode;
    }

    StagePass add_pass(std::size_t mb, std::size_t chain, std::size_t unit_number, std::size_t stage_number) {
        const StageLayers& stage = in_.chains[chain].stages[stage_number];
        const Unit& unit = in_.units[mb][chain][unit_number];
        StagePass pass;
        if (!works_on(stage, unit)) return pass;
        const auto forward = costs_.stage(stage, unit.shapes, PassKind::forward);
        pass.forward = add_task(mb, chain, unit_number, stage_number, TaskKind::forward, forward, {});
        if (!has_backward(stage)) {
            const auto memory = pass_memory(in_, stage, unit.shapes, Recompute::none, false, false);
            Task& task = out_.problem.tasks[index(*pass.forward)];
            task.acquire = task.release = memory.forward_transient;
            return pass;
        }
        const bool source = !sends_gradient(chain, stage_number);
        const auto again = costs_.blocks_forward(stage, unit.shapes, Recompute::full);
        const auto cost_of = [&](PassKind kind) { return costs_.stage(stage, unit.shapes, kind); };
        if (!in_.split_backward) {
            pass.backward =
                add_task(mb, chain, unit_number, stage_number, TaskKind::backward, cost_of(PassKind::backward), again);
        } else {
            pass.backward = add_task(mb, chain, unit_number, stage_number, TaskKind::input_gradient,
                                     source ? PassCost{} : cost_of(PassKind::input_gradient), again);
            pass.weight = add_task(mb, chain, unit_number, stage_number, TaskKind::weight_gradient,
                                   source ? cost_of(PassKind::backward) : cost_of(PassKind::weight_gradient), {});
            out_.problem.edges.push_back({*pass.backward, *pass.weight, Duration{0}});
        }
        add_pair(stage, unit, pass, source);
        return pass;
    }

    void add_pair(const StageLayers& stage, const Unit& unit, const StagePass& pass, bool source) {
        Pair pair{*pass.forward, *pass.backward, pass.weight, {}};
        for (const Recompute recompute : in_.modes) pair.modes.push_back(mode_of(stage, unit, recompute, source));
        const auto costs = costs_in(pair, pair.modes.front());
        const auto apply = [&](TaskId task, const TaskCost& cost) {
            Task& t = out_.problem.tasks[index(task)];
            t.duration = cost.duration;
            t.acquire = cost.acquire;
            t.release = cost.release;
        };
        apply(pair.forward, costs[0]);
        apply(pair.backward, costs[1]);
        if (pair.weight) apply(*pair.weight, costs[2]);
        out_.problem.pairs.push_back(std::move(pair));
    }

    // The tensor that leaves a module's layers `part` for what comes next in the chain.
    Crossing inside_chain(const LayerRange& part, const Unit& unit) const {
        const auto& network = module(part.module).architecture;
        const PassShape& shape = unit.shapes[part.module];
        if (part.first + part.count < network.layers) {
            // Every block of a generator reads the context: it travels with the activations.
            const std::int64_t context = shape.context_positions() * network.cross_attention_dim;
            return {block_positions(network, shape) + (context + network.hidden - 1) / network.hidden, network.hidden};
        }
        for (const auto& edge : in_.model->edges)
            if (edge.from == part.module) return between(edge, unit, unit);
        return {shape.positions(), network.hidden};
    }

    // What a unit of `edge.from` sends to one of `edge.to`: to a generator, the tokens that it is conditioned on.
    Crossing between(const workloads::ModelEdge& edge, const Unit& from, const Unit& to) const {
        const std::int64_t columns =
            edge.projector_out > 0 ? edge.projector_out : module(edge.from).architecture.hidden;
        const std::int64_t rows = from.shapes[edge.from].positions() / edge.token_reduction;
        const std::int64_t wanted = to.shapes[edge.to].context_positions();
        return {wanted > 0 ? std::min(rows, wanted) : rows, columns};
    }

    // The last part of a stage in which the unit has work.
    static const LayerRange& last_part(const StageLayers& stage, const Unit& unit) {
        const auto found = std::find_if(stage.parts.rbegin(), stage.parts.rend(), [&](const LayerRange& part) {
            return !unit.shapes[part.module].lengths.empty();
        });
        return *found;
    }

    std::int64_t node_of(RankId rank) const {
        // GPUs are numbered tensor parallel first, then replicas, then pipeline ranks (Megatron-LM's order).
        return static_cast<std::int64_t>(index(rank)) * in_.layout.tp * in_.layout.dp / in_.cluster->gpus_per_node;
    }

    void connect(TaskId from, TaskId to, const Crossing& crossing, std::size_t buffer) {
        const RankId source = out_.problem.tasks[index(from)].rank, target = out_.problem.tasks[index(to)].rank;
        const Bytes message{2 * crossing.rows * crossing.columns / in_.layout.tp};
        Duration lag{};
        if (source != target) {
            const std::int64_t per_node = node_of(source) == node_of(target) ? 2 : 1;
            lag = transfer_time(per_node, message);
            Bytes& largest = largest_message_[index(target)][buffer];
            largest = std::max(largest, message);
        }
        feeds_[index(from)] = true;
        out_.transfers.push_back({out_.problem.edges.size(), message, crossing.rows, crossing.columns});
        out_.problem.edges.push_back({from, to, lag});
    }

    Duration transfer_time(std::int64_t per_node, Bytes message) {
        const auto [place, added] = transfer_times_.try_emplace({per_node, message.count});
        if (added)
            place->second = in_.costs->cost(costdb::PointToPoint{per_node, std::max(message, Bytes{1})}).duration;
        return place->second;
    }

    void add_chain(std::size_t mb, std::size_t chain, std::vector<std::vector<StagePass>>& passes) {
        const Chain& c = in_.chains[chain];
        for (std::size_t u = 0; u < in_.units[mb][chain].size(); ++u) {
            const Unit& unit = in_.units[mb][chain][u];
            std::vector<StagePass> row;
            for (std::size_t s = 0; s < c.stages.size(); ++s) row.push_back(add_pass(mb, chain, u, s));
            std::optional<std::size_t> before;
            for (std::size_t s = 0; s < row.size(); ++s) {
                if (!row[s].forward) continue;
                if (before) join(row[*before], row[s], inside_chain(last_part(c.stages[*before], unit), unit), chain);
                before = s;
            }
            passes.push_back(std::move(row));
        }
    }

    // Activations go one way, gradients the other.
    void join(const StagePass& before, const StagePass& after, const Crossing& crossing, std::size_t chain) {
        connect(*before.forward, *after.forward, crossing, 2 * chain);
        if (before.backward && after.backward) connect(*after.backward, *before.backward, crossing, 2 * chain + 1);
    }

    static const StagePass* first_of(const std::vector<StagePass>& row) {
        const auto found =
            std::find_if(row.begin(), row.end(), [](const StagePass& pass) { return pass.forward.has_value(); });
        return found == row.end() ? nullptr : &*found;
    }
    static const StagePass* last_of(const std::vector<StagePass>& row) {
        const auto found =
            std::find_if(row.rbegin(), row.rend(), [](const StagePass& pass) { return pass.forward.has_value(); });
        return found == row.rend() ? nullptr : &*found;
    }

    std::optional<std::size_t> chain_of(std::size_t module_number, bool starts) const {
        for (std::size_t c = 0; c < in_.chains.size(); ++c) {
            const auto& stage = starts ? in_.chains[c].stages.front() : in_.chains[c].stages.back();
            const auto& part = starts ? stage.parts.front() : stage.parts.back();
            if (part.module == module_number) return c;
        }
        return std::nullopt;
    }

    void add_microbatch(std::size_t mb) {
        std::vector<std::vector<std::vector<StagePass>>> passes(in_.chains.size());
        for (std::size_t c = 0; c < in_.chains.size(); ++c) add_chain(mb, c, passes[c]);
        for (const auto& edge : in_.model->edges) {
            const auto from = chain_of(edge.from, false), to = chain_of(edge.to, true);
            if (!from || !to || *from == *to) continue;
            for (std::size_t u = 0; u < passes[*from].size(); ++u)
                for (std::size_t v = 0; v < passes[*to].size(); ++v) {
                    const StagePass* source = last_of(passes[*from][u]);
                    const StagePass* target = first_of(passes[*to][v]);
                    if (source && target) {
                        const auto crossing = between(edge, in_.units[mb][*from][u], in_.units[mb][*to][v]);
                        join(*source, *target, crossing, *to);
                    }
                }
        }
        for (const auto& rows : passes)
            for (const auto& row : rows) tie_ends(row);
    }

    // A forward whose output nobody takes is followed by its own backward; the others reach theirs through the loss.
    void tie_ends(const std::vector<StagePass>& row) {
        for (const StagePass& pass : row)
            if (pass.forward && pass.backward && !feeds_[index(*pass.forward)])
                out_.problem.edges.push_back({*pass.forward, *pass.backward, Duration{0}});
    }

    const StepInput& in_;
    LayerCosts costs_;
    std::vector<bool> gradient_;
    std::vector<bool> feeds_;                          // per task: another task takes its output
    std::vector<std::int64_t> first_stage_;            // per chain
    std::vector<std::vector<Bytes>> largest_message_;  // per rank, per (chain, direction)
    std::map<std::pair<std::int64_t, std::int64_t>, Duration> transfer_times_;
    StepProblem out_;
};

}  // namespace

StepProblem build_step(const StepInput& input) {
    require_supported(*input.model);
    StepProblem step = StepBuilder(input).build();
    validate(step.problem);
    return step;
}

}  // namespace pipeweaver::emulator
