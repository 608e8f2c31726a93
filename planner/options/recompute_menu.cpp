#include "planner/options/recompute_menu.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

using emulator::Recompute;

namespace {

constexpr std::string_view automatic = "auto",
                           what_is_allowed = "auto, or some of none, selective, half, full and blocks:N";

// What --target calls those whose passes carry it.
std::vector<std::string> that_carry_selective() {
    return target_options([](const Target& one) { return one.selective_passes; });
}

}  // namespace

void add_recompute_menu(OptionTable& options, std::string& menu) {
    options.text("recompute", menu, "auto|SETTING,...",
                 fmt::format("what each pass may compute again: some of none, selective, half, full and blocks:N "
                             "(default: auto: none, half, full, and selective with --target {})",
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
    return menu;
}

std::vector<Recompute> menu_of(const Job& job) {
    if (!job.recompute.empty()) return job.recompute;
    auto menu = emulator::usual_modes();
    if (target(job.target).selective_passes) menu.insert(menu.begin() + 1, Recompute::selective);
    return menu;
}

}  // namespace pipeweaver::planner
