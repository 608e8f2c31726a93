#include "groups/prices.hpp"

#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

constexpr Bytes endless{std::int64_t{1} << 50};  // what does not fit is left out when it is known what runs ahead

// The fullest of the copies that share the items of a unit.
void deal(Unit& unit, const workloads::Model& model, std::int64_t copies) {
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        if (model.modules[m].unit == workloads::PassUnit::items && !unit.shapes[m].lengths.empty())
            unit.shapes[m] = shape_of_copy(model.modules[m].architecture, unit.shapes[m], {.tp = 1, .copies = copies});
}

// The items of so many microbatches like this one.
void join(Unit& unit, const workloads::Model& model, std::int64_t microbatches) {
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        if (model.modules[m].unit != workloads::PassUnit::items) continue;
        for (std::vector<std::int64_t>* const all : {&unit.shapes[m].lengths, &unit.shapes[m].context}) {
            const std::vector<std::int64_t> once = *all;
            for (std::int64_t n = 1; n < microbatches; ++n) all->insert(all->end(), once.begin(), once.end());
        }
    }
}

void take_up(const schedule::Pair& pair, std::size_t microbatch, std::array<StagePasses, mode_count>& stage) {
    for (std::size_t mode = 0; mode < mode_count; ++mode) {
        const schedule::Mode& as = pair.modes[mode];
        StagePasses& passes = stage[mode];
        passes.forward[microbatch] = as.forward;
        passes.backward[microbatch] = as.backward;
        passes.held = std::max(passes.held, as.held);
        passes.transient = std::max({passes.transient, as.transient, as.forward_transient});
    }
}

// Of a stage that no gradient reaches.
void take_up(const schedule::Task& forward, std::array<StagePasses, mode_count>& stage) {
    for (StagePasses& passes : stage) {
        passes.forward[static_cast<std::size_t>(*forward.microbatch)] = forward.duration;
        passes.transient = std::max(passes.transient, forward.acquire);
    }
}

// So many times the work.
void add_part(PassCost& to, double times, const PassCost& work) {
    for (std::size_t c = 0; c < work.shares.size(); ++c)
        for (std::size_t b = 0; b < PassCost::bases; ++b) {
            const PassCost::Share& share = work.shares[c][b];
            to.shares[c][b].time += Duration{std::llround(times * static_cast<double>(share.time.count()))};
            to.shares[c][b].error_ns += times * share.error_ns;
        }
}

}  // namespace

Setup on_their_own(const Setup& setup) {
    Setup own = with_layout(setup, Layout{}.on(setup.cluster));
    own.model.built.reset();
    for (workloads::Module& module : own.model.modules) module.lies = {};
    return own;
}

Bytes Fixed::update() const {
    Bytes most;
    for (const StaticMemory& one : at_rest) most = std::max(most, one.at_update);
    return most;
}

Prices::Prices(const Setup& setup, const std::vector<workloads::Microbatch>& priced, std::optional<Bytes> capacity)
    : setup_(setup), priced_(priced), capacity_(capacity) {
    for (const workloads::Module& module : setup.model.modules) {
        auto& all = positions_.emplace_back();
        for (const workloads::Microbatch& one : priced)
            all.push_back(partition::shape_in(module, one, 0, one.items.size()).positions());
    }
}

bool Prices::takes_items(const Chain& chain) const {
    for (const StageLayers& stage : chain.stages)
        for (const LayerRange& part : stage.parts)
            if (setup_.model.modules[part.module].unit != workloads::PassUnit::items) return false;
    return true;
}

std::int64_t Prices::most_positions(std::size_t module) const {
    return *std::max_element(positions_[module].begin(), positions_[module].end());
}

const workloads::Microbatch& Prices::largest_for(const Chain& chain) const {
    std::set<std::size_t> modules;
    for (const StageLayers& stage : chain.stages)
        for (const LayerRange& part : stage.parts) modules.insert(part.module);
    std::size_t largest = 0;
    std::int64_t most = -1;
    for (std::size_t p = 0; p < priced_.size(); ++p) {
        std::int64_t all = 0;
        for (const std::size_t m : modules) all += positions_[m][p];
        if (all < most) continue;
        most = all;
        largest = p;
    }
    return priced_[largest];
}

const std::array<Recompute, mode_count>& Prices::modes() {
    static const std::array<Recompute, mode_count> all{Recompute::none, Recompute::selective, Recompute::full};
    return all;
}

Setup Prices::setup_in(const Degrees& degrees) {
    Layout layout;
    layout.tp = degrees.tp;
    layout.cp = degrees.cp;
    layout.pp = degrees.pp;
    layout.dp = degrees.dp;
    layout.ep = default_ep(layout, setup_.model, setup_.recipe.execution.experts.tensor_parallel);
    Setup setup = with_layout(setup_, layout.on(setup_.cluster));
    setup.recipe.zero = degrees.zero;
    auto& store = stores_[{degrees.tp, degrees.cp, degrees.zero}];
    if (store) return setup.store = store, setup;
    store = setup.store;
    return setup;
}

StepProblem Prices::built(const Setup& setup, const Chain& chain,
                          const std::vector<workloads::Microbatch>& microbatches, const Portion& portion) const {
    partition::Partition partition;
    partition.name = chain.name;
    partition.chains = {chain};
    partition.unit_items = {0};
    partition.modes.assign(modes().begin(), modes().end());
    auto units = partition::units(partition, setup.model, microbatches);
    for (auto& microbatch : units)
        for (Unit& unit : microbatch.front()) {
            if (portion.copies > 1) deal(unit, setup.model, portion.copies);
            if (portion.joined > 1) join(unit, setup.model, portion.joined);
        }
    StepInput input = partition::step_input(setup, partition, std::move(units));
    input.name = chain.name;
    input.priced_split = false;
    input.capacity = endless;
    return require_step(build_step(input));
}

const std::vector<std::array<StagePasses, mode_count>>& Prices::passes(const Chain& chain, const Degrees& degrees,
                                                                       const Portion& portion) {
    const Degrees alone{degrees.tp, degrees.pp, 1, degrees.cp, degrees.zero};
    const auto [place, added] = passes_.try_emplace({chain.name, alone, portion});
    if (!added) return place->second;
    const StepProblem step = built(setup_in(alone), chain, priced_, portion);
    StagePasses none{std::vector<Duration>(priced_.size()), std::vector<Duration>(priced_.size())};
    place->second.resize(chain.stages.size());
    for (auto& stage : place->second) stage.fill(none);
    std::vector<bool> paired(step.problem.tasks.size());  // such a forward takes what it holds for its backward, too
    for (const schedule::Pair& pair : step.problem.pairs) paired[index(pair.forward)] = true;
    for (std::size_t t = 0; t < paired.size(); ++t) {
        const schedule::Task& task = step.problem.tasks[t];
        if (task.kind == schedule::TaskKind::forward && !paired[t])
            take_up(task, place->second[static_cast<std::size_t>(*task.stage)]);
    }
    for (const schedule::Pair& pair : step.problem.pairs) {
        const schedule::Task& forward = step.problem.tasks[index(pair.forward)];
        auto& stage = place->second[static_cast<std::size_t>(*forward.stage)];
        take_up(pair, static_cast<std::size_t>(*forward.microbatch), stage);
    }
    return place->second;
}

Fixed Prices::fixed(const Chain& chain, const Degrees& degrees, const Portion& portion) {
    const StepProblem step = built(setup_in(degrees), chain, {largest_for(chain)}, {1, portion.joined});
    Fixed fixed;
    const Bytes usable = capacity();
    for (std::size_t r = 0; r < step.problem.ranks.size(); ++r) {
        fixed.base.push_back(step.problem.ranks[r].base);
        fixed.at_rest.push_back(step.memory[r]);
        fixed.tail = std::max(fixed.tail, step.problem.ranks[r].tail + step.optimizer);
        fixed.fits = fixed.fits && step.memory[r].at_update <= usable;
    }
    for (const Transfer& transfer : step.transfers) fixed.hop = std::max(fixed.hop, transfer.lag);
    return fixed;
}

std::vector<StageCost> Prices::costs(const Chain& chain, const Degrees& degrees, const Portion& portion,
                                     std::uint32_t mode) {
    const Degrees alone{degrees.tp, degrees.pp, 1, degrees.cp, degrees.zero};
    const StepProblem step = built(setup_in(alone), chain, {largest_for(chain)}, portion);
    std::vector<StageCost> costs(chain.stages.size());
    const auto stage_of = [&](std::size_t task) { return static_cast<std::size_t>(*step.problem.tasks[task].stage); };
    for (std::size_t t = 0; t < step.problem.tasks.size(); ++t) {
        StageCost& stage = costs[stage_of(t)];
        const bool forward = step.problem.tasks[t].kind == schedule::TaskKind::forward;
        (forward ? stage.forward : stage.backward) = step.cost_of(t);
        if (forward) stage.mix = step.mixes[step.mix[t]];
    }
    for (const schedule::Pair& pair : step.problem.pairs) {
        const PassCost& again = step.recomputed_by(index(pair.backward));
        if (again.total() == Duration{0}) continue;
        const Duration repeated = repeated_time(pair, mode);
        add_part(costs[stage_of(index(pair.backward))].backward,
                 static_cast<double>(repeated.count()) / static_cast<double>(again.total().count()), again);
    }
    return costs;
}

Duration Prices::bridge(Bytes message) const {
    const workloads::Cluster& cluster = setup_.cluster;
    const Layout layout = Layout{}.on(cluster);
    const costdb::PointToPoint sent{cluster.gpus <= cluster.gpus_per_node ? 2 : 1, std::max(message, Bytes{1}),
                                    layout.network_of_gpu(), layout.node_link};
    return setup_.costs->cost(sent).duration;
}

}  // namespace pipeweaver::groups
