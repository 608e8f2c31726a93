#include "planner/ladder/on_groups.hpp"

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

namespace {

constexpr std::size_t priced_to_find = 16;

// Options of a plan that say nothing of a split's step: layouts of shared GPUs, what feeds them, the whole run.
constexpr std::array<std::string_view, 15> without_effect{
    "layout", "tp",    "pp",   "dp",         "cp",     "ep",       "context",    "microbatches",
    "tokens", "price", "zero", "assignment", "loader", "headroom", "deal-images"};

bool is_without_effect(std::string_view name) {
    return std::find(without_effect.begin(), without_effect.end(), name) != without_effect.end();
}

// The job's options as `groups` takes them, without the split. None: it has not all of them.
std::optional<OptionValues> words_of_groups(const Request& request, int zero) {
    const Job& job = request.job;
    if (!job.words || job.equal_microbatches || job.defer || job.setup->recipe.anchored) return std::nullopt;
    OptionTable table;
    WorkloadOptions known;
    known.add_apart_from_layout(table);
    OptionValues words;
    for (const OptionValues::Value& one : job.words->all()) {
        if (is_without_effect(one.name)) continue;
        const bool takes = std::any_of(table.entries().begin(), table.entries().end(),
                                       [&](const auto& entry) { return entry.name == one.name; });
        if (!takes && one.name != "seed") return std::nullopt;
        one.flag ? words.set_flag(one.name) : words.set(one.name, one.text);
    }
    if (job.packing != workloads::Packing::given) words.set("packing", std::string(name_of(job.packing)));
    if (request.batch.drawn_microbatches > 0)
        words.set("global-batch", fmt::format("{}mb", request.batch.drawn_microbatches * job.setup->layout.dp));
    words.set("seed", std::to_string(job.seed));
    words.set("headroom", text_of_headroom(job.setup->headroom));
    words.set("zero", std::to_string(zero));
    return words;
}

// As that command packs them.
std::vector<workloads::Microbatch> packed_alone(const Request& request) {
    if (request.batch.drawn) return request.batch.microbatches;
    return workloads::pack(request.batch.samples, request.job.setup->model, request.job.packing);
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
    std::string split;
    for (const groups::Placed& one : placing.groups) {
        rung.way += (rung.way.empty() ? "" : "; ") + words_of_group(one);
        split += (split.empty() ? "" : ",") + groups::text_of(one);
        rung.peak = std::max(rung.peak, one.peak);
    }
    rung.needs = "GPUs of its own for each module, as Megatron-Bridge's MegatronMIMO has them for encoders";
    words.set("groups", std::move(split));
    rung.command = words.command("pipeweaver groups");
    return rung;
}

}  // namespace

std::optional<Rung> rung_on_groups(const Request& request) {
    emulator::Setup setup = *request.job.setup;
    setup.recipe.zero = std::min(setup.recipe.zero, 1);
    auto words = words_of_groups(request, setup.recipe.zero);
    if (!words) return std::nullopt;
    groups::Request asked;
    asked.setup = &setup;
    asked.microbatches = packed_alone(request);
    asked.groups = groups::groups_with_work(setup.model, asked.microbatches);
    if (asked.groups.size() < 2 || groups::why_not(asked)) return std::nullopt;
    asked.priced = priced_to_find;
    const auto found = groups::on_own_gpus(asked);
    if (!found) return std::nullopt;
    for (std::size_t g = 0; g < asked.groups.size(); ++g) groups::take_layout(found->groups[g], asked.groups[g]);
    asked.priced = groups::most_priced;
    const auto exact = groups::on_own_gpus(asked);
    if (!exact) return std::nullopt;
    return rung_of_groups(*exact, asked, std::move(*words));
}

}  // namespace pipeweaver::planner
