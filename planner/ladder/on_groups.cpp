#include "planner/ladder/on_groups.hpp"

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/groups/priced_step.hpp"
#include "pipeweaver/planner/groups_words.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

namespace {

// The job's options as `groups` takes them, without the split. None: it has not all of them.
std::optional<OptionValues> words_of_groups(const Request& request, int zero) {
    const Job& job = request.job;
    if (!job.words || job.defer || job.setup->recipe.anchored) return std::nullopt;
    if (job.equal_microbatches && !target(job.target).launches_grids) return std::nullopt;
    auto [words, not_there] = groups_words(*job.words);
    if (!not_there.empty()) return std::nullopt;
    if (job.packing != workloads::Packing::given) words.set("packing", std::string(name_of(job.packing)));
    if (request.batch.drawn_microbatches > 0)
        words.set("global-batch", fmt::format("{}mb", request.batch.drawn_microbatches * job.setup->layout.dp));
    words.set("seed", std::to_string(job.seed));
    words.set("headroom", text_of_headroom(job.setup->headroom));
    words.set("zero", std::to_string(zero));
    return words;
}

// As that command packs them, which knows no replicas that have equally many.
std::vector<workloads::Microbatch> packed_alone(const Request& request) {
    const Batch& batch = request.batch;
    if (batch.drawn && !request.job.equal_microbatches) return batch.microbatches;
    return workloads::pack(batch.samples, request.job.setup->model, request.job.packing, {}, batch.drawn_into);
}

std::string words_of_group(const groups::Placed& placed) {
    const auto cp = placed.cp > 1 ? fmt::format(" x cp {}", placed.cp) : std::string();
    const auto again = placed.recompute == emulator::Recompute::none
                           ? std::string()
                           : fmt::format(", {}", emulator::name_of(placed.recompute));
    return fmt::format("{} on {} GPUs, tp {}{} x pp {} x dp {}{}", placed.name, placed.gpus(), placed.tp, cp, placed.pp,
                       placed.dp, again);
}

Rung rung_of_groups(const groups::Placing& placing, const groups::Request& asked, OptionValues words) {
    Rung rung{.name = std::string(groups_rung)};
    rung.step = placing.step;
    rung.microbatches = asked.microbatches.size();
    for (const workloads::Microbatch& one : asked.microbatches) rung.tokens += one.tokens;
    rung.usable = emulator::capacity_of(*asked.setup);
    for (const groups::Placed& one : placing.groups) {
        rung.way += (rung.way.empty() ? "" : "; ") + words_of_group(one);
        rung.peak = std::max(rung.peak, one.peak);
    }
    rung.needs = "GPUs of its own for each module, as Megatron-Bridge's MegatronMIMO has them for encoders";
    rung.planned = planned_for(words);
    words.set("groups", groups::text_of(placing));
    rung.command = words.command("pipeweaver groups");
    return rung;
}

}  // namespace

std::optional<OnGroups> on_groups(const Request& request) {
    emulator::Setup own = *request.job.setup;
    own.recipe.zero = std::min(own.recipe.zero, 1);
    auto words = words_of_groups(request, own.recipe.zero);
    if (!words) return std::nullopt;
    OnGroups on;
    on.setup = std::make_shared<const emulator::Setup>(std::move(own));
    groups::Request& asked = on.asked;
    asked.setup = on.setup.get();
    asked.microbatches = packed_alone(request);
    asked.groups = groups::groups_with_work(on.setup->model, asked.microbatches);
    const Target& runs = target(request.job.target);
    if (asked.groups.size() < 2 || groups::why_not(asked)) return std::nullopt;
    if (!ask_for_launched(runs, asked)) return std::nullopt;
    auto found = groups::on_own_gpus_soon(asked);
    if (!found) return std::nullopt;
    on.rung = rung_of_groups(*found, asked, std::move(*words));
    on.placing = std::make_shared<const groups::Placing>(std::move(*found));
    if (!runs.launches_grids) return on;
    on.rung.target = runs.option;
    on.rung.needs = "launch MegatronMIMO's grids (Megatron-Bridge 067f987d, of August 2026)";
    on.rung.placing = on.placing;
    return on;
}

RungSchedules schedules_of(const OnGroups& found) {
    groups::PricedStep priced = groups::priced_step(found.asked, *found.placing);
    RungSchedules all;
    all.steps.push_back(std::move(priced.step));
    all.schedules.push_back(std::move(priced.schedule));
    return all;
}

}  // namespace pipeweaver::planner
