// What a replica's action lists say beside the schedule: what stages are, loss weights, which rows go where; which GPU
// of a rank has which positions of a unit, and modules in phases as stages.
#include "emit/plan/parts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

const std::vector<LayerRange>& first_parts(const Chain& chain) { return chain.stages.front().parts; }
const std::vector<LayerRange>& last_parts(const Chain& chain) { return chain.stages.back().parts; }

// Chains and modules in phases whose outputs the first stage of `chain` takes.
std::vector<std::string> inputs_of(const Chain& chain, const partition::Partition& partition,
                                   const workloads::Model& model) {
    const auto phases = phase_modules(partition);
    std::vector<std::string> inputs;
    for (const auto& edge : model.edges) {
        if (edge.to != first_parts(chain).front().module) continue;
        for (const Chain& other : partition.chains)
            if (&other != &chain && last_parts(other).back().module == edge.from) inputs.push_back(other.name);
        if (std::find(phases.begin(), phases.end(), edge.from) != phases.end())
            inputs.push_back(model.modules[edge.from].name);
    }
    return inputs;
}

std::vector<StageRole> roles(const partition::Partition& partition, const workloads::Model& model) {
    const auto reached = gradient_reaches(model);
    std::vector<StageRole> roles;
    for (const Chain& chain : partition.chains)
        for (const StageLayers& stage : chain.stages) {
            const bool first = &stage == &chain.stages.front();
            StageRole role{chain.name, false, false, first, {}, {}};
            if (first) role.inputs = inputs_of(chain, partition, model);
            for (const LayerRange& part : stage.parts) {
                role.parts_trained.push_back(model.modules[part.module].trains());
                role.trained |= trains(model, part);
                role.gradient |= reached[part.module] || trains(model, part);
                role.reads_batch |= part.first == 0;
            }
            roles.push_back(std::move(role));
        }
    return roles;
}

// Positions of a unit in the module that its chain ends with.
double positions(const Chain& chain, const Unit& unit) {
    return static_cast<double>(unit.shapes[last_parts(chain).back().module].positions());
}

double positions_of_microbatch(const Chain& chain, const std::vector<Unit>& units) {
    double sum = 0;
    for (const Unit& unit : units) sum += positions(chain, unit);
    return sum;
}

double loss_weight(const Batch& batch, const ReplicaPlan& replica, const LossTotals& losses, std::size_t m,
                   std::size_t chain, std::size_t unit) {
    const Chain& of = replica.cut.partition.chains[chain];
    const auto& units = replica.cut.units[m][chain];
    const double mine = positions(of, units[unit]);
    if (mine <= 0) return 0;
    if (losses.tokens <= 0) return mine / losses.positions;
    const auto& microbatch = batch.microbatches[replica.microbatches[m]];
    return static_cast<double>(microbatch.loss_tokens) / losses.tokens * (mine / positions_of_microbatch(of, units));
}

// The rows of its items' samples that a generator's unit reads of a backbone's whole microbatch; none: the output as it
// is, where all of it is fewer rows than that.
std::vector<Rows> slices_of(const workloads::Microbatch& microbatch, const Unit& from, const Unit& to,
                            std::int64_t rows, std::int64_t output_rows) {
    std::vector<Rows> slices;
    std::int64_t found = 0;
    bool whole = true;
    if (from.items.empty() && microbatch.lengths.size() == microbatch.samples.size())
        for (const std::size_t i : to.items) {
            std::int64_t begin = 0;
            std::size_t s = 0;
            for (; microbatch.samples[s] != microbatch.items[i].sample; ++s) begin += microbatch.lengths[s];
            whole &= begin == found;
            slices.emplace_back(begin, begin + microbatch.lengths[s]);
            found += microbatch.lengths[s];
        }
    if (rows == output_rows && (whole || found != rows)) return {};
    return found == rows ? slices : std::vector<Rows>{{0, rows}};
}

// Positions of a module that make one row of what it gives to others; 1 where nothing takes its output.
std::int64_t output_reduction(const workloads::Model& model, std::size_t module) {
    for (const auto& edge : model.edges)
        if (edge.from == module) return edge.token_reduction;
    return 1;
}

std::size_t module_of(const Chain& chain) { return chain.stages.front().parts.front().module; }

ModuleLayout layout_of_chain(const Job& job, const partition::Partition& partition, std::size_t chain) {
    return layout_of(partition.layouts, module_of(partition.chains[chain]), job.setup->layout);
}

}  // namespace

std::vector<Share> shares_of_unit(const Job& job, const partition::Partition& partition, std::size_t chain,
                                  const Unit& unit) {
    const std::size_t module = module_of(partition.chains[chain]);
    const ModuleLayout layout = layout_of_chain(job, partition, chain);
    const PassShape& shape = unit.shapes[module];
    if (layout.copies == 1 || shape.lengths.empty()) return {};
    const auto& model = job.setup->model;
    return shares_of(model.modules[module].architecture, shape, layout, output_reduction(model, module));
}

std::vector<Piece> pieces_of(const Share& share) {
    std::vector<Piece> pieces = share.whole;
    pieces.insert(pieces.end(), share.part.begin(), share.part.end());
    return pieces;
}

namespace {

// A module with copies is a chain of its own.
void add_chains(const Job& job, const partition::Partition& partition, ReplicaData& data) {
    for (std::size_t c = 0; c < partition.chains.size(); ++c) {
        const ModuleLayout layout = layout_of_chain(job, partition, c);
        data.layouts.insert(data.layouts.end(), partition.chains[c].stages.size(),
                            layout.copies > 1 ? std::optional(layout) : std::nullopt);
    }
}

void add_shares(const Job& job, const ReplicaPlan& replica, ReplicaData& data) {
    const auto& partition = replica.cut.partition;
    for (std::size_t m = 0; m < replica.cut.units.size(); ++m)
        for (std::size_t c = 0; c < partition.chains.size(); ++c) {
            const std::size_t module = module_of(partition.chains[c]);
            const auto& units = replica.cut.units[m][c];
            for (std::size_t u = 0; u < units.size(); ++u) {
                const auto shares = shares_of_unit(job, partition, c, units[u]);
                if (shares.empty()) continue;
                ActionShare one{partition.chains[c].name, static_cast<std::int64_t>(m), static_cast<std::int64_t>(u)};
                one.lengths = units[u].shapes[module].lengths;
                one.reduction = output_reduction(job.setup->model, module);
                for (const Share& share : shares) one.copies.push_back(pieces_of(share));
                data.shares.push_back(std::move(one));
            }
        }
}

// An item on a GPU, the replica's order of them first.
struct PlacedItem {
    ItemPlace of;
    std::int64_t length = 0;
    std::size_t gpu = 0;  // of its rank
};

// Makes the stages of one module.
class PhaseStages {
public:
    PhaseStages(const Job& job, const ReplicaPlan& replica, std::size_t phase)
        : model_(job.setup->model),
          layout_(job.setup->layout),
          cut_(replica.cut),
          phase_(phase),
          module_(phase_modules(cut_.partition)[phase]) {}

    // The stage of `rank`, under `number`, with the share of its pass if it has items.
    PhaseStage stage(std::size_t rank, std::int64_t number, std::vector<ActionShare>& shares) const {
        PhaseStage made{{number, rank, parts(), role(), cut_.partition.layouts[module_]}, {}, {}, {}};
        const auto items = items_on(rank);
        if (items.empty()) return made;
        for (const PhasePass& pass : cut_.step.phases) {
            const auto& task = cut_.step.problem.tasks[index(pass.task)];
            if (index(task.rank) != rank) continue;
            if (task.kind == schedule::TaskKind::forward)
                made.forward = index(pass.task);
            else if (made.stage.role.gradient)
                made.backward = index(pass.task);
        }
        ActionShare share{made.stage.role.chain, 0, 0, number};
        share.reduction = output_reduction(model_, module_);
        share.copies.resize(static_cast<std::size_t>(layout_.gpus_of_rank()));
        for (const PlacedItem& item : items) {
            share.copies[item.gpu].push_back({share.lengths.size(), 0, item.length});
            share.lengths.push_back(item.length);
            share.of.push_back(item.of);
        }
        made.outputs = outputs(share);
        shares.push_back(std::move(share));
        return made;
    }

private:
    std::vector<schedule::StagePart> parts() const {
        return {{model_.modules[module_].name, 0, model_.modules[module_].architecture.layers}};
    }

    StageRole role() const {
        const auto& module = model_.modules[module_];
        const bool trained = emulator::trains(model_, {module_, 0, module.architecture.layers});
        const bool gradient = trained || workloads::gradient_reaches(model_)[module_];
        return {module.name, trained, gradient, true, {}, {module.trains()}};
    }

    // In the order of microbatches and of the items in each.
    std::vector<PlacedItem> items_on(std::size_t rank) const {
        std::vector<PlacedItem> items;
        const auto gpus = static_cast<std::size_t>(layout_.gpus_of_rank());
        for (std::size_t g = 0; g < gpus; ++g)
            for (const DealtItem& item : cut_.step.dealt[rank * gpus + g]) {
                if (item.phase != phase_) continue;
                const Unit& unit = cut_.units[item.microbatch][cut_.partition.chains.size() + phase_][item.unit];
                items.push_back(
                    {{static_cast<std::int64_t>(item.microbatch), static_cast<std::int64_t>(unit.items.front())},
                     unit.shapes[module_].lengths.front(),
                     g});
            }
        std::sort(items.begin(), items.end(), [](const PlacedItem& a, const PlacedItem& b) { return a.of < b.of; });
        return items;
    }

    std::int64_t columns() const {
        for (const auto& edge : model_.edges)
            if (edge.from == module_ && edge.projector_out > 0) return edge.projector_out;
        return model_.modules[module_].architecture.hidden;
    }

    std::vector<PhaseOutput> outputs(const ActionShare& share) const {
        std::vector<PhaseOutput> outputs;
        std::int64_t positions = 0;
        for (std::size_t s = 0; s < share.lengths.size(); ++s) {
            const std::int64_t row = positions / share.reduction;
            positions += share.lengths[s];
            if (outputs.empty() || outputs.back().microbatch != share.of[s].microbatch)
                outputs.push_back({share.of[s].microbatch, {row, row}, columns()});
            outputs.back().rows.second = positions / share.reduction;
        }
        outputs.front().is_all = outputs.size() == 1;
        return outputs;
    }

    const workloads::Model& model_;
    const Layout& layout_;
    const Cut& cut_;
    std::size_t phase_, module_;
};

// Adds GPUs, layouts and shares, and the stages of modules in phases.
void add_layouts(const Job& job, const ReplicaPlan& replica, ReplicaData& data) {
    const auto& partition = replica.cut.partition;
    data.gpus = job.setup->layout.gpus_of_rank();
    data.sequence_parallel = data.gpus > 1 && job.setup->recipe.execution.sequence_parallel;
    if (!partition.layouts.empty()) add_chains(job, partition, data);
    if (partition::shares_ranks(partition)) add_shares(job, replica, data);
    const std::size_t phases = phase_modules(partition).size();
    auto number = static_cast<std::int64_t>(replica.cut.step.problem.stages.size());
    for (std::size_t r = 0; phases > 0 && r < replica.cut.step.problem.ranks.size(); ++r)
        for (std::size_t d = 0; d < phases; ++d)
            data.phases.push_back(PhaseStages(job, replica, d).stage(r, number++, data.shares));
}

}  // namespace

LossTotals loss_totals(const workloads::Model& model, const Batch& batch, const partition::Partition& partition) {
    LossTotals totals;
    for (const auto& microbatch : batch.microbatches) totals.tokens += static_cast<double>(microbatch.loss_tokens);
    if (totals.tokens > 0) return totals;
    for (const auto& units : partition::units(partition, model, batch.microbatches))
        totals.positions += positions_of_microbatch(partition.chains.back(), units[partition.chains.size() - 1]);
    return totals;
}

double microbatch_weight(const workloads::Microbatch& microbatch, const partition::Partition& partition,
                         const std::vector<std::vector<Unit>>& units, const LossTotals& losses) {
    if (losses.tokens > 0) return static_cast<double>(microbatch.loss_tokens) / losses.tokens;
    const double positions = positions_of_microbatch(partition.chains.back(), units[partition.chains.size() - 1]);
    return positions == 0 ? 0 : positions / losses.positions;
}

ReplicaData replica_data(const Job& job, const Batch& batch, const ReplicaPlan& mine, const LossTotals& losses) {
    const StepProblem& step = mine.cut.step;
    const auto& chains = mine.cut.partition.chains;
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    ReplicaData data{mine.number, replicas, roles(mine.cut.partition, job.setup->model), {}, {}};
    add_layouts(job, mine, data);
    const auto unit_of = [&](const Task& task, std::size_t t) -> const Unit& {
        return mine.cut.units[static_cast<std::size_t>(*task.microbatch)][step.chain[t]][step.unit[t]];
    };
    for (std::size_t t = 0; t < step.problem.tasks.size(); ++t) {
        const Task& task = step.problem.tasks[t];
        data.loss_weight.push_back(task.stage
                                       ? loss_weight(batch, mine, losses, static_cast<std::size_t>(*task.microbatch),
                                                     step.chain[t], step.unit[t])
                                       : 0);
    }
    data.slices.resize(step.transfers.size());
    for (std::size_t k = 0; k < step.transfers.size(); ++k) {
        const Edge& edge = step.problem.edges[step.transfers[k].edge];
        const std::size_t from = index(edge.from), to = index(edge.to);
        const Task& source = step.problem.tasks[from];
        if (step.chain[from] == step.chain[to] || source.kind != TaskKind::forward || !source.stage) continue;
        const auto& microbatch = batch.microbatches[mine.microbatches[static_cast<std::size_t>(*source.microbatch)]];
        const Unit& unit = unit_of(source, from);
        const auto module = last_parts(chains[step.chain[from]]).back().module;
        std::int64_t reduction = 1;
        for (const auto& model_edge : job.setup->model.edges)
            if (model_edge.from == module && model_edge.to == first_parts(chains[step.chain[to]]).front().module)
                reduction = model_edge.token_reduction;
        data.slices[k] = slices_of(microbatch, unit, unit_of(step.problem.tasks[to], to), step.transfers[k].rows,
                                   unit.shapes[module].positions() / reduction);
    }
    return data;
}

ActionLists actions_of(const Job& job, const Batch& batch, const ReplicaPlan& replica, const LossTotals& losses) {
    return derive_actions(replica.cut.step, *replica.found.schedule, replica.found.replay, replica.cut.partition.modes,
                          replica_data(job, batch, replica, losses));
}

}  // namespace pipeweaver::emit
