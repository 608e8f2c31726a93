// Builds the schedule problem of a step: tasks, edges, pairs, memory, tails.
#include "pipeweaver/emulator/step.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "emulator/step/phases.hpp"
#include "emulator/step/stage_prices.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/compile.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

// Tasks of one unit's pass through one stage.
struct StagePass {
    std::optional<TaskId> forward, backward;
};

class StepBuilder {
public:
    explicit StepBuilder(const StepInput& input)
        : in_(input),
          modules_(input.placed()),
          costs_(input),
          gradient_(gradient_reaches(input.setup->model)),
          beside_(workloads::model_beside(input.setup->model)) {}

    BuiltStep build() {
        out_.problem.name = in_.name;
        out_.problem.source = fmt::format("pipeweaver plan: {} on {}", in_.setup->model.name, in_.setup->cluster.name);
        for (std::size_t m = 0; m < in_.setup->model.modules.size(); ++m) out_.mixes.push_back({{m, 1.0}});
        add_stages();
        out_.memory = static_memory(in_);
        for (std::size_t mb = 0; mb < in_.units.size(); ++mb) add_microbatch(mb);
        if (!phase_modules(in_.layouts).empty()) add_phases(in_, out_);
        drop_useless_splits();
        if (auto shortage = add_ranks(in_, largest_message_, out_)) return {{}, std::move(shortage)};
        out_.model_flops = model_flops(in_);
        BuiltStep built = checked(std::move(out_));
        if (built.shortage && !in_.capacity) built.shortage->headroom = in_.setup->headroom;
        return built;
    }

private:
    struct Crossing {
        std::int64_t rows, columns, value_bytes;
        Bytes message{};            // of a GPU
        std::int64_t gathered = 1;  // GPUs that each have a part of what all of them need
    };

    // With what a GPU of the source sends: of a module with copies, of the fullest.
    Crossing sent_by(std::size_t source, const Unit& unit, Crossing crossing) const {
        const bool as_job = module(source).lies.is_as_job();
        const auto& own = modules_[source].own;
        // What lies otherwise than the job has been spread as the backbone, which reads it on its own stage.
        const Layout& layout = as_job ? modules_[source].layout : in_.setup->layout;
        const auto& network = module(source).architecture;
        std::int64_t rows = layout.part(crossing.rows);
        if (own.copies > 1 && as_job) {
            const OnCopy copy(network, unit.shapes[source], own, Fullest::by_positions);
            const std::int64_t all = block_positions(network, unit.shapes[source]);
            rows = (crossing.rows * block_positions_of_group(network, copy.shape(), layout) + all - 1) / all;
        }
        crossing.message = Bytes{crossing.value_bytes * rows * crossing.columns / layout.tp};
        crossing.gathered = layout.tp;
        return crossing;
    }

    const workloads::Module& module(std::size_t m) const { return in_.setup->model.modules[m]; }

    std::int64_t value_bytes(std::size_t m) const { return in_.setup->recipe.execution_of(module(m)).value_bytes(); }

    void add_stages() {
        std::int64_t number = 0;
        for (const Chain& chain : in_.chains) {
            first_stage_.push_back(number);
            alike_.push_back(first_alike(chain));
            for (const StageLayers& stage : chain.stages) {
                Stage entry{number++, stage.rank, {}};
                for (const LayerRange& part : stage.parts)
                    entry.parts.push_back({module(part.module).name, part.first, part.count});
                out_.problem.stages.push_back(std::move(entry));
            }
        }
        largest_message_.assign(static_cast<std::size_t>(in_.setup->layout.pp),
                                std::vector<Bytes>(2 * in_.chains.size()));
    }

    static bool works_on(const StageLayers& stage, const Unit& unit) {
        return std::any_of(stage.parts.begin(), stage.parts.end(),
                           [&](const LayerRange& part) { return !unit.shapes[part.module].lengths.empty(); });
    }

    bool has_backward(const StageLayers& stage) const {
        return std::any_of(stage.parts.begin(), stage.parts.end(), [&](const LayerRange& part) {
            return gradient_[part.module] || trains(in_.setup->model, part);
        });
    }

    // What all passes of a unit through a stage cost; those of passes by their places in StepProblem::costs.
    struct StageCosts {
        std::uint32_t forward = 0, backward = 0, again = 0;
        std::uint32_t forward_mix = 0, backward_mix = 0;
        std::vector<Mode> modes;
        SplitBackward split;
        Duration lost{};  // of W, by Recipe::split_slowdown
    };

    TaskId add_task(std::size_t mb, std::size_t chain, std::size_t unit, std::size_t stage, TaskKind kind,
                    const StageCosts& costs) {
        const Chain& c = in_.chains[chain];
        const bool forward = kind == TaskKind::forward;
        const std::uint32_t cost = forward ? costs.forward : costs.backward;
        Task task;
        task.rank = c.stages[stage].rank;
        task.kind = kind;
        task.duration = lasting(time_of(cost));
        task.stage = first_stage_[chain] + static_cast<std::int64_t>(stage);
        task.microbatch = static_cast<std::int64_t>(mb);
        task.item = static_cast<std::int64_t>(unit);
        task.module = c.name;
        task.label = fmt::format(FMT_COMPILE("m{}.{}{}.s{}.{}"), mb, c.name, unit, *task.stage, letter(kind));
        out_.problem.tasks.push_back(std::move(task));
        out_.cost.push_back(cost);
        out_.recompute.push_back(forward ? 0 : costs.again);
        out_.mix.push_back(forward ? costs.forward_mix : costs.backward_mix);
        out_.unit.push_back(unit);
        out_.chain.push_back(chain);
        feeds_.push_back(false);
        return TaskId{static_cast<std::uint32_t>(out_.problem.tasks.size() - 1)};
    }

    Duration time_of(std::uint32_t cost) const { return out_.costs[cost].time; }

    // What an I or W of that time takes besides.
    Duration lost_by_split(Duration part) const {
        const auto kernels = static_cast<double>((part - in_.setup->recipe.action).count());
        return Duration{std::llround((in_.setup->recipe.split_slowdown - 1) * kernels)};
    }

    static Duration lasting(Duration pass) { return std::max(Duration{1}, pass); }

    // Which modules a pass works for: nearly every stage has layers of one alone.
    std::uint32_t mix_of(const StageLayers& stage, PassKind pass) {
        if (stage.parts.size() == 1) return static_cast<std::uint32_t>(stage.parts.front().module);
        ModuleMix mix;
        double whole = 0;
        for (std::size_t p = 0; p < stage.parts.size(); ++p) {
            const Duration time = costs_.part_time(p, pass);
            if (time == Duration{0}) continue;
            mix.push_back({stage.parts[p].module, static_cast<double>(time.count())});
            whole += mix.back().part;
        }
        if (mix.size() < 2)
            return static_cast<std::uint32_t>(mix.empty() ? stage.parts.front().module : mix.front().module);
        for (ModulePart& one : mix) one.part /= whole;
        out_.mixes.push_back(std::move(mix));
        return static_cast<std::uint32_t>(out_.mixes.size() - 1);
    }

    // Passes that copy are replayed kernel by kernel, the others are sums of their layers, whose traffic hides in no
    // other layer. Where one of both is chosen, that must decide nothing: a pass is no shorter for what it copies.
    Duration task_time(PassKind pass, Recompute recompute, const StageLayers& stage) {
        const Duration time = costs_.task_time(pass, recompute);
        if (!recompute.copies() || in_.modes_on(stage.rank).size() == 1) return time;
        return std::max(time, costs_.task_time(pass, Recompute::none));
    }

    PassCost first_cost(PassKind pass, const StageLayers& stage) {
        const Recompute first = in_.modes_on(stage.rank).front();
        PassCost cost = costs_.task(pass, first);
        if (first.copies()) take_up(cost, task_time(pass, first, stage));
        return cost;
    }

    // I and W together take at least as long as B, and the host's work for one task more: what hides traffic in B may
    // be missing beside them.
    void add_modes(const StageLayers& stage, Recompute recompute, StageCosts& all) {
        const PassMemory memory = costs_.memory(recompute, true);
        Mode whole;
        const Recompute first = in_.modes_on(stage.rank).front();
        const bool as_first = (recompute == Recompute::offload) == (first == Recompute::offload);
        const auto forward = as_first ? time_of(all.forward) : task_time(PassKind::forward, recompute, stage);
        whole.forward = lasting(forward);
        const auto backward =
            recompute == first ? time_of(all.backward) : task_time(PassKind::backward, recompute, stage);
        whole.backward = lasting(backward);
        whole.held = memory.held;
        whole.forward_transient = memory.forward_transient;
        whole.transient = memory.transient;
        all.modes.push_back(whole);
        if (!in_.priced_split) return;
        Mode split = whole;
        split.weight = time_of(all.split.weight);
        const auto input = task_time(PassKind::input_gradient, recompute, stage);
        const Duration own_work = whole.backward - (split.weight - all.lost) + in_.setup->recipe.action;
        const Duration lost = lost_by_split(costs_.task_time(PassKind::input_gradient, Recompute::none));
        split.backward = lasting(std::max(input, own_work) + lost);
        split.transient = memory.input_transient;
        split.kept = in_.input_gradient_frees ? memory.kept : split.held + split.transient;
        all.split.modes.push_back(split);
    }

    // Of the unit that was begun, and so above.
    StageCosts stage_costs(const StageLayers& stage) {
        StageCosts all;
        costs_.begin(stage);
        const auto modes = in_.modes_on(stage.rank);
        all.forward = out_.keep(first_cost(PassKind::forward, stage));
        all.forward_mix = mix_of(stage, PassKind::forward);
        if (!has_backward(stage)) return all;
        all.backward_mix = mix_of(stage, PassKind::backward);
        if (modes.size() > 1 || in_.priced_split) all.again = out_.keep(costs_.blocks_forward(Recompute::full));
        all.backward = out_.keep(first_cost(PassKind::backward, stage));
        if (in_.priced_split) {
            PassCost weight = costs_.task(PassKind::weight_gradient);
            if (weight.time != in_.setup->recipe.action) {  // else none is trained
                all.lost = lost_by_split(weight.time);
                take_up(weight, weight.time + all.lost);
                all.split.weight = out_.keep(weight);
            }
            all.split.weight_mix = mix_of(stage, PassKind::weight_gradient);
        }
        for (const Recompute recompute : modes) add_modes(stage, recompute, all);
        if (!in_.priced_split) return all;
        PassCost input = costs_.task(PassKind::input_gradient, modes.front());
        take_up(input, all.split.modes.front().backward);
        all.split.input = out_.keep(input);
        return all;
    }

    bool are_alike(const StageLayers& a, const StageLayers& b) const {
        const workloads::Model& model = in_.setup->model;
        const bool rank_tells = !in_.setup->what_if.devices.empty() || !in_.mode_of_rank.empty();
        if (rank_tells && a.rank != b.rank) return false;
        if (model.teacher.empty()) return are_alike_in(model, a, b);
        return are_alike_in(model, a, b) &&
               are_alike_in(*beside_, stage_beside(model, *beside_, a), stage_beside(model, *beside_, b));
    }

    bool are_alike_in(const workloads::Model& model, const StageLayers& a, const StageLayers& b) const {
        if (a.parts.size() != b.parts.size()) return false;
        for (std::size_t p = 0; p < a.parts.size(); ++p) {
            const LayerRange &one = a.parts[p], &other = b.parts[p];
            if (one.module != other.module || one.count != other.count) return false;
            const auto& network = model.modules[one.module].architecture;
            if (!are_in_like_formats(model.modules[one.module], one, other)) return false;
            const auto reaches_end = [&](const LayerRange& part) { return part.first + part.count == network.layers; };
            if ((one.first == 0) != (other.first == 0) || reaches_end(one) != reaches_end(other)) return false;
            for (std::int64_t i = 0; i < one.count; ++i)
                if (block_kind(network, one.first + i) != block_kind(network, other.first + i) ||
                    sparsity_of(network, one.first + i) != sparsity_of(network, other.first + i))
                    return false;
        }
        return true;
    }

    bool are_in_like_formats(const workloads::Module& module, const LayerRange& a, const LayerRange& b) const {
        const Recipe& recipe = in_.setup->recipe;
        for (std::int64_t i = 0; i < a.count && recipe.tells_layers_apart(module); ++i)
            if (recipe.products_of(module, a.first + i) != recipe.products_of(module, b.first + i)) return false;
        return true;
    }

    // Per stage of the chain: the first one with the same costs.
    std::vector<std::size_t> first_alike(const Chain& chain) const {
        std::vector<std::size_t> alike;
        for (std::size_t s = 0; s < chain.stages.size(); ++s) {
            std::size_t first = 0;
            while (alike.size() > first && !are_alike(chain.stages[first], chain.stages[s])) ++first;
            alike.push_back(first);
        }
        return alike;
    }

    StagePass add_pass(std::size_t mb, std::size_t chain, std::size_t unit_number, std::size_t stage_number,
                       std::vector<std::optional<StageCosts>>& known) {
        const StageLayers& stage = in_.chains[chain].stages[stage_number];
        const Unit& unit = in_.units[mb][chain][unit_number];
        StagePass pass;
        if (!works_on(stage, unit)) return pass;
        auto& costs = known[alike_[chain][stage_number]];
        if (!costs) costs = stage_costs(stage);
        pass.forward = add_task(mb, chain, unit_number, stage_number, TaskKind::forward, *costs);
        if (!has_backward(stage)) {
            costs_.begin(stage);
            const auto memory = costs_.memory(Recompute::none, false);
            Task& task = out_.problem.tasks[index(*pass.forward)];
            task.acquire = task.release = memory.forward_transient;
            return pass;
        }
        pass.backward = add_task(mb, chain, unit_number, stage_number, TaskKind::backward, *costs);
        add_pair(*costs, pass);
        return pass;
    }

    // What rounding leaves between B and I with W, and what the split costs.
    static void take_up(PassCost& cost, Duration whole) {
        const Duration rest = whole - cost.time;
        PassCost::Share* largest = &cost.shares.front().front();
        for (auto& row : cost.shares)
            for (auto& share : row)
                if (share.time > largest->time) largest = &share;
        largest->time += rest;
        cost.time = whole;
    }

    void add_pair(const StageCosts& stage, const StagePass& pass) {
        Pair pair{*pass.forward, *pass.backward, {}, stage.modes};
        const auto costs = costs_in(pair, pair.modes.front());
        apply(out_.problem.tasks[index(pair.forward)], costs[0]);
        apply(out_.problem.tasks[index(pair.backward)], costs[1]);
        out_.problem.pairs.push_back(std::move(pair));
        if (in_.priced_split) out_.split.push_back(stage.split);
    }

    // Where nothing waits for the input gradient (raw data, frozen modules before), or no weight is trained.
    void drop_useless_splits() {
        std::vector<bool> waited_for(out_.problem.tasks.size(), false);
        for (const Edge& edge : out_.problem.edges) waited_for[index(edge.from)] = true;
        for (std::size_t k = 0; k < out_.split.size(); ++k) {
            auto& modes = out_.split[k].modes;
            const auto without_weight = [](const Mode& mode) { return mode.weight < Duration{1}; };
            if (!waited_for[index(out_.problem.pairs[k].backward)] ||
                std::any_of(modes.begin(), modes.end(), without_weight))
                modes.clear();
        }
    }

    // What a forward sends: in front of the model's own the tensor of the model beside it.
    static Crossing with_beside(Crossing crossing, const Crossing& other) {
        crossing.rows += (other.rows * other.columns + crossing.columns - 1) / crossing.columns;
        crossing.message += other.message;
        return crossing;
    }

    Crossing forward_inside_chain(const LayerRange& part, const Unit& unit) const {
        const workloads::Model& model = in_.setup->model;
        const Crossing own = inside_chain(model, part, unit);
        if (!beside_) return own;
        const LayerRange others = range_beside(model, *beside_, part);
        // Of a teacher with fewer layers none may have run yet.
        return others.first + others.count == 0 ? own : with_beside(own, inside_chain(*beside_, others, unit));
    }

    // The tensor that leaves a module's layers `part` for what comes next in the chain.
    Crossing inside_chain(const workloads::Model& of, const LayerRange& part, const Unit& unit) const {
        const auto& network = of.modules[part.module].architecture;
        const PassShape& shape = unit.shapes[part.module];
        const std::int64_t bytes = value_bytes(part.module);
        if (part.first + part.count < network.layers) {
            // A head's condition is of every position, and as wide as they are.
            if (network.kind == workloads::ModuleKind::head)
                return sent_by(part.module, unit, {2 * shape.positions(), network.hidden, bytes});
            // Every block of a generator reads the context: it travels with the activations. So do embeddings of the
            // layers to come.
            const std::int64_t to_come = network.layers - part.first - part.count;
            const std::int64_t beside = shape.context_positions() * network.cross_attention_dim +
                                        shape.positions() * to_come * network.layer_embedding;
            const std::int64_t rows = block_positions(network, shape) + (beside + network.hidden - 1) / network.hidden;
            return sent_by(part.module, unit, {rows, network.hidden, bytes});
        }
        for (const auto& edge : of.edges)
            if (edge.from == part.module) return between(of, edge, unit, unit);
        return sent_by(part.module, unit, {shape.positions(), network.hidden, bytes});
    }

    // What a unit of `edge.from` sends to one of `edge.to`: to a generator, the tokens that it is conditioned on, to a
    // head, those that it predicts.
    Crossing between(const workloads::Model& of, const workloads::ModelEdge& edge, const Unit& from,
                     const Unit& to) const {
        const std::int64_t columns = columns_of(of, edge);
        const std::int64_t rows = from.shapes[edge.from].positions() / edge.token_reduction;
        const auto& reader = of.modules[edge.to].architecture;
        const std::int64_t wanted = reader.kind == workloads::ModuleKind::head
                                        ? to.shapes[edge.to].positions() / reader.repeats
                                        : to.shapes[edge.to].context_positions();
        auto crossing =
            sent_by(edge.from, from, {wanted > 0 ? std::min(rows, wanted) : rows, columns, value_bytes(edge.from)});
        crossing.gathered = in_.setup->layout.tp;
        return crossing;
    }

    // The last part of a stage in which the unit has work.
    static const LayerRange& last_part(const StageLayers& stage, const Unit& unit) {
        const auto found = std::find_if(stage.parts.rbegin(), stage.parts.rend(), [&](const LayerRange& part) {
            return !unit.shapes[part.module].lengths.empty();
        });
        return *found;
    }

    void connect(TaskId from, TaskId to, const Crossing& crossing, std::size_t buffer) {
        const RankId source = out_.problem.tasks[index(from)].rank, target = out_.problem.tasks[index(to)].rank;
        const Bytes message = crossing.message;
        TransferLag lag;
        std::optional<costdb::PointToPoint> sent;
        if (source != target) {
            sent = between_ranks(*in_.setup, source, target, message);
            lag = transfer_time(*sent, crossing.gathered);
            Bytes& largest = largest_message_[index(target)][buffer];
            largest = std::max(largest, message);
        }
        feeds_[index(from)] = true;
        out_.transfers.push_back(
            {out_.problem.edges.size(), message, crossing.rows, crossing.columns, sent, lag.error, lag.time, lag.wire});
        out_.problem.edges.push_back({from, to, lag.time});
    }

    const TransferLag& transfer_time(const costdb::PointToPoint& sent, std::int64_t gathered) {
        const auto [place, added] =
            transfer_times_.try_emplace({sent.gpus_per_node, sent.message.count, gathered,
                                         sent.network.bytes_per_second, sent.node_link.bytes_per_second});
        if (added) place->second = transfer_lag(*in_.setup, sent, gathered);
        return place->second;
    }

    void add_chain(std::size_t mb, std::size_t chain, std::vector<std::vector<StagePass>>& passes) {
        const Chain& c = in_.chains[chain];
        for (std::size_t u = 0; u < in_.units[mb][chain].size(); ++u) {
            const Unit& unit = in_.units[mb][chain][u];
            costs_.begin(unit);
            std::vector<StagePass> row;
            std::vector<std::optional<StageCosts>> known(c.stages.size());
            for (std::size_t s = 0; s < c.stages.size(); ++s) row.push_back(add_pass(mb, chain, u, s, known));
            // Gradients pass by stages without a backward, whose modules are frozen.
            std::optional<std::size_t> before, before_backward;
            for (std::size_t s = 0; s < row.size(); ++s) {
                if (!row[s].forward) continue;
                const auto part = [&](std::size_t from) { return last_part(c.stages[from], unit); };
                if (before)
                    connect(*row[*before].forward, *row[s].forward, forward_inside_chain(part(*before), unit),
                            2 * chain);
                before = s;
                if (!row[s].backward) continue;
                if (before_backward)
                    connect(*row[s].backward, *row[*before_backward].backward,
                            inside_chain(in_.setup->model, part(*before_backward), unit), 2 * chain + 1);
                before_backward = s;
            }
            passes.push_back(std::move(row));
        }
    }

    // Activations go one way, gradients the other.
    void join(const StagePass& before, const StagePass& after, const Crossing& forward, const Crossing& backward,
              std::size_t chain) {
        connect(*before.forward, *after.forward, forward, 2 * chain);
        if (before.backward && after.backward) connect(*after.backward, *before.backward, backward, 2 * chain + 1);
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
        const workloads::Model& model = in_.setup->model;
        for (std::size_t e = 0; e < model.edges.size(); ++e) {
            const workloads::ModelEdge& edge = model.edges[e];
            const auto from = chain_of(edge.from, false), to = chain_of(edge.to, true);
            if (!from || !to || *from == *to) continue;
            for (std::size_t u = 0; u < passes[*from].size(); ++u)
                for (std::size_t v = 0; v < passes[*to].size(); ++v) {
                    const StagePass* source = last_of(passes[*from][u]);
                    const StagePass* target = first_of(passes[*to][v]);
                    if (source && target) {
                        const Unit &first = in_.units[mb][*from][u], &second = in_.units[mb][*to][v];
                        const Crossing own = between(model, edge, first, second);
                        join(*source, *target,
                             beside_ ? with_beside(own, between(*beside_, beside_->edges[e], first, second)) : own, own,
                             *to);
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
    std::vector<PlacedModule> modules_;
    StagePrices costs_;
    std::vector<bool> gradient_;
    std::optional<workloads::Model> beside_;           // runs forward, too
    std::vector<bool> feeds_;                          // per task: another task takes its output
    std::vector<std::int64_t> first_stage_;            // per chain
    std::vector<std::vector<std::size_t>> alike_;      // per chain, stage: the first stage with the same costs
    std::vector<std::vector<Bytes>> largest_message_;  // per rank, per (chain, direction)
    std::map<std::array<std::int64_t, 5>, TransferLag> transfer_times_;
    StepProblem out_;
};

}  // namespace

BuiltStep build_step(const StepInput& input) { return StepBuilder(input).build(); }

}  // namespace pipeweaver::emulator
