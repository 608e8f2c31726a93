// Modules on GPUs of their own: does their launch construct, and does every group hold its part.
//
// Memory       As groups are planned (groups/plan.hpp), in the layout, cut and recomputation that are said.
#include "launch/check_parts.hpp"
#include "launch/read/grids.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/megatron_words.hpp"
#include "pipeweaver/planner/groups_words.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

namespace {

// What the launch is planned for, or what is said of it, and what is asked for beside that.
struct GridJob {
    planner::WorkloadOptions workload;
    std::int64_t seed = 1;
};

// How long microbatches are, and how many a step has: one of each replica's samples in a row. Of none as many as all
// replicas share.
void put_sizes(const GridsLaunch& launch, planner::WorkloadOptions& workload) {
    constexpr std::int64_t usual = 64;
    const std::int64_t replicas = launch.language.dp;
    const std::int64_t samples = std::max(std::int64_t{1}, launch.micro_batch.value_or(replicas) / replicas);
    if (launch.seq_length) workload.microbatch_tokens = *launch.seq_length * samples;
    if (!workload.batch.empty()) return;
    const std::int64_t shared = (usual + replicas - 1) / replicas * replicas;
    workload.global_batch = planner::GlobalBatch{launch.global_batch ? *launch.global_batch / samples : shared, true};
}

GridJob job_of(const CheckAsked& asked, const GridsLaunch& launch) {
    GridJob job;
    planner::WorkloadOptions& workload = job.workload;
    job.seed = asked.seed;
    if (!launch.planned.empty())
        planner::take_planned(fmt::format("{}: {}", asked.said.from, planned_variable), launch.planned, workload,
                              job.seed);
    const auto put = [](const std::string& said, std::string& option) {
        if (!said.empty()) option = said;
    };
    put(asked.model, workload.model);
    put(asked.recipe, workload.recipe);
    put(asked.encoders.built_by, workload.encoders);
    workload.deal_images = workload.deal_images || asked.encoders.deals_images;
    workload.cluster = asked.cluster;
    if (!asked.batch.empty() || !asked.dataset.empty()) {
        workload.batch = asked.batch;
        workload.dataset = asked.dataset;
    }
    if (launch.planned.empty()) put_sizes(launch, workload);
    return job;
}

// A step of the job, asked for as the grids say it.
class GridStep {
public:
    GridStep(const CheckAsked& asked, const GridsLaunch& launch, const GridJob& job)
        : asked_(asked), launch_(launch), setup_(job.workload.setup()) {
        setup_.recipe.zero = std::min(setup_.recipe.zero, 1);
        auto drawn = planner::drawn_for_groups(job.workload, setup_.model, job.seed);
        name_ = std::move(drawn.name);
        setup_.headroom = job.workload.headroom_for(setup_.model, drawn.microbatches);
        request_.setup = &setup_;
        request_.microbatches = std::move(drawn.microbatches);
        request_.groups = groups::groups_with_work(setup_.model, request_.microbatches);
        if (!planner::ask_for_launched(planner::target("megatron-mimo"), request_))
            fail(ErrorKind::input,
                 "{}: MIMO_IMAGES_TP: grids are for a language model and one encoder of images, "
                 "which {} is not in {}",
                 asked.said.from, setup_.model.name, name_);
        for (groups::Asked& group : request_.groups) ask_for(grid_of(group.modules.front()), group);
    }
    GridStep(const GridStep&) = delete;
    GridStep& operator=(const GridStep&) = delete;

    // What is not followed of the grids; none: all is.
    std::optional<Open> not_followed() const {
        const Grid &language = launch_.language, &images = launch_.images;
        if (images.dp > language.dp)
            return Open{
                "MIMO_IMAGES_DP", "more replicas than the language model has share samples of a microbatch", {}};
        const auto count = static_cast<std::int64_t>(request_.microbatches.size());
        if (count % language.dp != 0)
            return Open{
                "MIMO_LANGUAGE_DP",
                fmt::format("{} has {} microbatches, which {} replicas do not divide", name_, count, language.dp),
                "name another batch"};
        return std::nullopt;
    }

    // As far ahead as 1F1B runs: a plan's as it was planned; if it does not fit, and of other grids, whatever the
    // memory. None: the model has no such layout.
    std::optional<groups::Placing> placing() {
        if (const auto why = groups::why_not(request_)) fail(ErrorKind::input, "{}: {}", asked_.said.from, *why);
        if (!launch_.planned.empty())
            if (auto fits = groups::on_own_gpus(request_)) return fits;
        constexpr Bytes endless{std::int64_t{1} << 50};
        request_.capacity = endless;
        return groups::on_own_gpus(request_);
    }

    const emulator::Setup& setup() const { return setup_; }
    const Grid& grid_of(std::size_t module) const {
        return module == setup_.model.backbone() ? launch_.language : launch_.images;
    }
    Fit fit_of(const groups::Placing& placing) const;

private:
    void ask_for(const Grid& grid, groups::Asked& group) const {
        group.gpus = grid.gpus();
        group.tp = grid.tp;
        group.cp = grid.cp;
        group.pp = grid.pp;
        group.dp = grid.dp;
        group.recompute = grid.recompute;
        group.layers = grid.layers;
        if (group.layers.empty() && group.modules.front() == setup_.model.backbone())  // as many on each
            group.layers.assign(static_cast<std::size_t>(grid.pp), launch_.layers / grid.pp);
    }

    const CheckAsked& asked_;
    const GridsLaunch& launch_;
    emulator::Setup setup_;
    std::string name_;
    groups::Request request_;
};

RankUse use_of(const groups::Placed& placed, std::size_t stage, bool is_backbone) {
    const emulator::StaticMemory& at_rest = placed.at_rest[stage];
    RankUse use;
    use.weights = at_rest.weights;
    use.gradients = at_rest.gradients;
    use.optimizer = at_rest.optimizer;
    use.buffers = at_rest.buffers + at_rest.workspace + placed.received;
    use.activations = placed.ahead[stage] * placed.held[stage];
    use.transient = placed.base[stage] - at_rest.total() - placed.received;
    use.peak = placed.base[stage] + use.activations;
    if (at_rest.at_update > use.peak) {
        use.transient += at_rest.at_update - use.peak;
        use.peak = at_rest.at_update;
    }
    if (is_backbone) use.layers = placed.layers()[stage];
    return use;
}

Fit GridStep::fit_of(const groups::Placing& placing) const {
    Fit fit;
    fit.usable = emulator::capacity_of(setup_);
    fit.device = setup_.cluster.device;
    fit.device_memory = workloads::device(fit.device).memory;
    fit.holds = name_;
    fit.step = placing.step;
    fit.microbatches = placing.rounds;
    fit.recipe = setup_.recipe.name;
    for (const groups::Placed& placed : placing.groups)
        for (std::size_t s = 0; s < placed.base.size(); ++s)
            fit.ranks.push_back(use_of(placed, s, placed.modules.front() == setup_.model.backbone()));
    for (std::size_t r = 0; r < fit.ranks.size(); ++r)
        if (fit.ranks[r].peak > fit.ranks[fit.fullest].peak) fit.fullest = r;
    return fit;
}

void add_groups(const groups::Placing& placing, const GridStep& step, Checked& checked) {
    for (const groups::Placed& placed : placing.groups) {
        GroupUse use{placed.name, step.grid_of(placed.modules.front()).offset, placed.tp,  placed.cp, placed.pp,
                     placed.dp,   emulator::name_of(placed.recompute),         placed.peak};
        checked.groups.push_back(std::move(use));
        if (placed.modules.front() == step.setup().model.backbone()) checked.layers = placed.layers();
    }
}

void decide_grids(const CheckAsked& asked, const GridsLaunch& launch, const GridJob& job, Checked& checked) {
    GridStep step(asked, launch, job);
    if (auto open = step.not_followed()) return decide(Verdict::undecided, {std::move(*open)}, checked);
    const auto placing = step.placing();
    if (!placing)
        return decide(Verdict::undecided,
                      {{"MIMO_LANGUAGE_TP",
                        "no layout of such degrees is known: tensor parallel GPUs are of one node "
                        "and divide a module's heads",
                        {}}},
                      checked);
    checked.fit = step.fit_of(*placing);
    add_groups(*placing, step, checked);
    const emulator::Setup& setup = step.setup();
    checked.error = memory_error_of(checked.fit->recipe, checked.entry, setup.model, checked.fit->ranks.size() > 1);
    decide(verdict_of(*checked.fit, *checked.error, {}), turning(*checked.fit, *checked.error, {}), checked);
}

bool lacks_model(const CheckAsked& asked, const GridJob& job, Checked& checked) {
    if (!job.workload.model.empty()) return false;
    const std::string& named = asked.said.named_model;
    if (named.empty())
        fail_missing("--model MODEL", "grids say no sizes; `pipeweaver list models` names the known ones");
    decide(Verdict::undecided, {{"HF_MODEL", fmt::format("'{}' sets the sizes", named), how_to_name_a_model(named)}},
           checked);
    return true;
}

}  // namespace

Checked check_grids(const CheckAsked& asked) {
    if (!asked.assigned.empty())
        fail(ErrorKind::input,
             "--assigned: samples of grids are packed as they were planned; allowed is --batch alone");
    if (asked.anchor != nullptr) fail(ErrorKind::input, "--anchor: is of shared GPUs; allowed with grids is none");
    Checked checked = begun(asked);
    GridsLaunch launch = read_grids(asked.said);
    const GridJob job = job_of(asked, launch);
    checked.assumed.insert(checked.assumed.end(), launch.assumed.begin(), launch.assumed.end());
    const Grid& language = launch.language;
    checked.degrees = {{"tp", language.tp}, {"cp", language.cp}, {"pp", language.pp}, {"dp", language.dp}};
    if (!job.workload.model.empty()) {
        const workloads::Model model = job.workload.found_model();
        launch.layers = model.modules[model.backbone()].architecture.layers;
    }
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    if (!checked.constructs()) {
        decide(Verdict::does_not_construct, {}, checked);
        return checked;
    }
    if (!asked.fits || lacks_model(asked, job, checked)) return checked;
    if (job.workload.batch.empty() && job.workload.dataset.empty())
        decide(Verdict::undecided,
               {{"--dataset", "what samples hold beside text decides what fits", "name a data set, or --batch FILE"}},
               checked);
    else
        decide_grids(asked, launch, job, checked);
    return checked;
}

}  // namespace pipeweaver::launch
