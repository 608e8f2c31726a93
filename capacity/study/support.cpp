#include "pipeweaver/capacity/support.hpp"

#include "capacity/study/rows.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

using costdb::Basis;
using workloads::ModuleKind;

// Data whose items the model takes.
std::string usual_dataset(const workloads::Model& model) {
    const auto has = [&](ModuleKind kind) {
        return std::any_of(model.modules.begin(), model.modules.end(),
                           [&](const workloads::Module& module) { return module.architecture.kind == kind; });
    };
    if (has(ModuleKind::diffusion_transformer)) return "t2v-mix";
    if (has(ModuleKind::vision_encoder)) return "vlm-mix";
    if (has(ModuleKind::audio_encoder)) return "speech";
    return "constant-4096";
}

// One cell, of which the fastest layout is judged.
Study study_of(const SupportAsked& asked, const std::string& dataset, const std::string& cluster, std::int64_t gpus) {
    // Enough for every layout to have a pipeline's microbatches, few enough to be quick.
    constexpr std::int64_t least_samples = 64;
    nlohmann::json study{{"format", "pipeweaver-study/1"}, {"name", "support"}, {"shown", 1}, {"planned", 0}};
    if (asked.batch.empty())
        study["plan"] = {{"dataset", dataset}, {"global-batch", std::to_string(std::max(least_samples, 4 * gpus))}};
    else
        study["plan"] = {{"batch", asked.batch}};
    if (!asked.recipe.empty()) study["plan"]["recipe"] = asked.recipe;
    if (!asked.costs.empty()) study["plan"]["costs"] = asked.costs;
    study["axes"] = {{"model", asked.model}, {"cluster", cluster}, {"gpus", gpus}};
    return read_study(JsonDocument("support", study.dump()));
}

struct Found {
    Study study;
    CellResult result;
    Point point;
};

// Nothing where no layout fits.
std::optional<Found> find(Study study, const Executor& execute) {
    Shared shared;
    auto result = judge_cell(study, study.cells.front(), shared, execute);
    if (!result->why_not.empty()) fail(ErrorKind::input, "{}", result->why_not);
    const auto best = fastest_point(*result);
    if (!best) return std::nullopt;
    const Point point = result->points[*best];
    return Found{std::move(study), std::move(*result), point};
}

// On the GPUs that are said, or the fewest.
Found fitting(const SupportAsked& asked, const std::string& dataset, const Executor& execute) {
    constexpr std::int64_t most = 65'536;
    const auto colon = asked.cluster.rfind(':');
    const std::string cluster = asked.cluster.substr(0, colon);
    const std::int64_t said =
        colon == std::string::npos ? 0 : parse_integer("--cluster", asked.cluster.substr(colon + 1), 1, most);
    for (std::int64_t gpus = said > 0 ? said : 1; gpus <= most; gpus *= 2) {
        if (auto found = find(study_of(asked, dataset, cluster, gpus), execute)) return std::move(*found);
        if (said > 0)
            fail(ErrorKind::limit, "--cluster: no layout of {} fits {} GPUs of {}", asked.model, said, cluster);
    }
    fail(ErrorKind::limit, "no layout of {} fits {} GPUs of {} or fewer", asked.model, most, cluster);
}

planner::Emulation emulated(const Found& found, const Executor& execute) {
    const auto job = job_in(found.study.cells.front(), found.point.as);
    auto request = job.plan.request(job.limits, execute);
    planner::EmulationRequest wanted;
    wanted.job = std::move(request.job);
    wanted.batch = std::move(request.batch);
    wanted.job.partition = found.point.partition;
    wanted.policy = found.point.policy;
    wanted.chunks_per_rank = found.point.chunks;
    wanted.recompute = planner::step_recompute_named(found.point.recompute);
    wanted.any_memory = true;
    return planner::emulate(wanted, execute);
}

std::vector<BasisShares> shares_of(const emulator::TimeShares& shares) {
    std::vector<BasisShares> all(1);
    all.front().what = "all";
    for (std::size_t c = 0; c < emulator::operator_classes; ++c) {
        const auto of = [&](Basis basis) { return shares.by[c][static_cast<std::size_t>(basis)]; };
        BasisShares row{.what = std::string(name_of(static_cast<emulator::OperatorClass>(c))),
                        .of_time = 0,
                        .measured = of(Basis::exact) + of(Basis::interpolated),
                        .transferred = of(Basis::extrapolated),
                        .modelled = of(Basis::modelled)};
        row.of_time = row.measured + row.transferred + row.modelled;
        all.front().of_time += row.of_time;
        all.front().measured += row.measured;
        all.front().transferred += row.transferred;
        all.front().modelled += row.modelled;
        if (row.of_time > 0) all.push_back(row);
    }
    std::stable_sort(all.begin() + 1, all.end(),
                     [](const BasisShares& a, const BasisShares& b) { return a.of_time > b.of_time; });
    return all;
}

}  // namespace

Support support_of(const SupportAsked& asked, const Executor& execute) {
    const auto model = workloads::find_model(asked.model);
    Support support;
    if (!asked.batch.empty() && !asked.dataset.empty())
        fail(ErrorKind::input, "--batch, --dataset: allowed is one of the two");
    support.dataset = !asked.batch.empty() ? asked.batch : asked.dataset.empty() ? usual_dataset(model) : asked.dataset;
    const Found found = fitting(asked, support.dataset, execute);
    const auto emulation = emulated(found, execute);
    const auto cluster = found.study.cells.front().machine;
    support.gpus = cluster.gpus;
    support.footing = found.result.facts.footing;
    support.error_percent = found.result.facts.error_percent;
    support.factors_source = emulator::in_situ_factors(cluster.device).source;
    support.confidence = model.confidence;
    support.assumed = model.assumed;
    support.point = found.point;
    support.shares = shares_of(emulation.shares);
    return support;
}

}  // namespace pipeweaver::capacity
