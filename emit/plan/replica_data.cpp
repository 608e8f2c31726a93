// What a replica's action lists say beside the schedule: what stages are, loss weights, which rows go where.
#include "emit/plan/layout_data.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <numeric>

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

}  // namespace

LossTotals loss_totals(const Job& job, const Batch& batch, const partition::Partition& partition) {
    LossTotals totals;
    for (const auto& microbatch : batch.microbatches) totals.tokens += static_cast<double>(microbatch.loss_tokens);
    if (totals.tokens > 0) return totals;
    const std::size_t last = partition.chains.size() - 1;
    for (const auto& units : partition::units(partition, job.setup->model, batch.microbatches))
        totals.positions += positions_of_microbatch(partition.chains[last], units[last]);
    return totals;
}

double microbatch_weight(const Batch& batch, const ReplicaPlan& replica, const LossTotals& losses,
                         std::size_t microbatch) {
    if (losses.tokens > 0)
        return static_cast<double>(batch.microbatches[replica.microbatches[microbatch]].loss_tokens) / losses.tokens;
    const auto& chains = replica.cut.partition.chains;
    const std::size_t last = chains.size() - 1;
    return positions_of_microbatch(chains[last], replica.cut.units[microbatch][last]) / losses.positions;
}

std::vector<double> microbatch_weights(const partition::Partition& partition, const Batch& batch,
                                       const std::vector<std::vector<std::vector<Unit>>>& units) {
    const std::size_t last = partition.chains.size() - 1;
    const bool has_tokens = std::any_of(batch.microbatches.begin(), batch.microbatches.end(),
                                        [](const auto& microbatch) { return microbatch.loss_tokens > 0; });
    std::vector<double> weights(batch.microbatches.size());
    for (std::size_t m = 0; m < weights.size(); ++m)
        weights[m] = has_tokens ? static_cast<double>(batch.microbatches[m].loss_tokens)
                                : positions_of_microbatch(partition.chains[last], units[m][last]);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (all > 0)
        for (double& one : weights) one /= all;
    return weights;
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
