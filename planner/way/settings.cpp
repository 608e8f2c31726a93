#include "planner/way/settings.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

namespace {

constexpr std::string_view by_rank_name = "by-rank", of_ranks_name = "by-rank:";
constexpr char between_ranks = '/';

constexpr std::string_view automatic = "auto",
                           what_is_allowed = "auto, or some of none, selective, half, full, offload and blocks:N";

std::optional<StepRecompute> named_of_ranks(std::string_view text) {
    StepRecompute setting = recompute_by_rank;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(between_ranks, from), text.size());
        const auto one = recompute_named(text.substr(from, end - from));
        if (!one) return std::nullopt;
        setting.of_ranks.push_back(*one);
        from = end + 1;
    }
    return setting;
}

// What --target calls those whose passes carry it.
std::vector<std::string> that_carry_selective() {
    return target_options([](const Target& one) { return one.selective_passes; });
}

std::vector<std::string> that_carry_offload() {
    return target_options([](const Target& one) { return one.offloaded_passes; });
}

}  // namespace

std::string name_of(const StepRecompute& setting) {
    if (!setting.by_rank) return name_of(setting.everywhere);
    std::string name(setting.of_ranks.empty() ? by_rank_name : of_ranks_name);
    for (std::size_t r = 0; r < setting.of_ranks.size(); ++r) {
        if (r > 0) name += between_ranks;
        name += name_of(setting.of_ranks[r]);
    }
    return name;
}

std::optional<StepRecompute> step_recompute_named(std::string_view name) {
    if (name == by_rank_name) return recompute_by_rank;
    if (name.starts_with(of_ranks_name)) return named_of_ranks(name.substr(of_ranks_name.size()));
    const auto everywhere = recompute_named(name);
    return everywhere ? std::optional(StepRecompute{.everywhere = *everywhere}) : std::nullopt;
}

std::vector<std::string> step_recompute_names() {
    auto names = recompute_names();
    names.emplace_back(by_rank_name);
    return names;
}

std::vector<Recompute> said_in(const StepRecompute& setting) {
    if (!setting.by_rank) return {setting.everywhere};
    std::vector<Recompute> said;
    for (const Recompute one : setting.of_ranks)
        if (std::find(said.begin(), said.end(), one) == said.end()) said.push_back(one);
    return said;
}

std::vector<Recompute> usual_settings(const Setup& setup, const partition::Partition& partition) {
    const auto reached = workloads::gradient_reaches(setup.model);
    std::int64_t most = 0;
    for (const Chain& chain : partition.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts)
                if (reached[part.module]) most = std::max(most, part.count);
    std::vector<Recompute> settings{Recompute::none, Recompute::selective};
    for (std::int64_t n = 1; n < most; ++n) settings.push_back(Recompute::blocks(n));
    settings.push_back(Recompute::full);
    return settings;
}

std::vector<Recompute> opponent_settings(const Setup& setup, const partition::Partition& partition) {
    auto all = usual_settings(setup, partition);
    if (setup.recipe.is_serial()) return all;
    const auto layers = static_cast<std::int64_t>(all.size()) - 2;
    return {Recompute::none,
            Recompute::selective,
            Recompute::blocks(std::max<std::int64_t>(1, layers / 4)),
            Recompute::blocks(std::max<std::int64_t>(1, layers / 3)),
            Recompute::blocks(std::max<std::int64_t>(1, layers / 2)),
            Recompute::full};
}

std::vector<Recompute> recompute_of_ranks(const Problem& problem, const Schedule& schedule,
                                          const std::vector<Recompute>& menu) {
    std::vector<Recompute> ranks(problem.ranks.size(), Recompute::none);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k)
        ranks[index(problem.tasks[index(problem.pairs[k].forward)].rank)] = menu[schedule.mode[k]];
    return ranks;
}

void add_recompute_menu(OptionTable& options, std::string& menu) {
    options.text("recompute", menu, "auto|SETTING,...",
                 fmt::format("what each pass may compute again: some of none, selective, half, full and blocks:N, or "
                             "offload: its activations go to the host over --host-link (default: auto: none, half, "
                             "full, with --target {} selective, and offload where --host-link is given)",
                             fmt::join(that_carry_selective(), "|")));
}

std::vector<Recompute> recompute_menu(const std::string& text, const Target& target) {
    std::vector<Recompute> menu;
    if (text.empty() || text == automatic) return menu;
    for (const std::string& name : parts_of(text)) {
        const auto known = emulator::recompute_named(name);
        if (!known || !emulator::is_for_plans(*known))
            fail(ErrorKind::input, "--recompute: {}, N is 1 or more", must_be(name, what_is_allowed));
        if (std::find(menu.begin(), menu.end(), *known) != menu.end())
            fail(ErrorKind::input, "--recompute: '{}' is there twice", name);
        if (*known == Recompute::selective && !target.selective_passes)
            fail(ErrorKind::limit,
                 "--recompute: {} carries no selective recomputation of single passes; allowed with "
                 "--target {}",
                 target.option, fmt::join(that_carry_selective(), ", "));
        menu.push_back(*known);
    }
    require_offload_carried(menu, "--recompute", target);
    return menu;
}

void require_for_passes(const std::vector<Recompute>& menu) {
    for (const Recompute one : menu)
        if (!is_for_plans(one))
            fail(ErrorKind::input,
                 "--partition: its memory_modes have {}, of whole steps alone; allowed are none, selective, half, "
                 "full, offload and blocks:N, which --recompute says in their place",
                 name_of(one));
}

void require_offload_carried(const std::vector<Recompute>& menu, const std::string& who, const Target& target) {
    if (target.offloaded_passes || std::none_of(menu.begin(), menu.end(), [](Recompute one) { return one.copies(); }))
        return;
    fail(ErrorKind::limit, "{}: {} offloads no activations of single passes; allowed with --target {}", who,
         target.option, fmt::join(that_carry_offload(), ", "));
}

std::optional<Job> keeping_all(const Job& job) {
    const auto without = [](std::vector<Recompute> menu) {
        std::erase_if(menu, [](Recompute one) { return one.copies(); });
        return menu;
    };
    const auto& asked = job.fixed ? job.fixed->partition.modes : job.recompute;
    auto rest = without(asked);
    const bool offers = asked.empty() ? job.offloads : rest.size() < asked.size() && !rest.empty();
    if (!offers) return std::nullopt;
    Job kept = job;
    kept.offloads = false;
    kept.recompute = without(job.recompute);
    if (kept.fixed) kept.fixed->partition.modes = std::move(rest);
    return kept;
}

std::vector<Recompute> menu_of(const Job& job) {
    if (!job.recompute.empty()) return job.recompute;
    auto menu = emulator::usual_modes();
    if (target(job.target).selective_passes) menu.insert(menu.begin() + 1, Recompute::selective);
    if (job.offloads) menu.insert(menu.begin() + 1, Recompute::offload);
    return menu;
}

}  // namespace pipeweaver::planner
