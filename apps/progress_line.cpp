#include "apps/progress_line.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

namespace pipeweaver::apps {

std::string rounds_of(std::uint64_t count) { return fmt::format("{} round{}", count, count == 1 ? "" : "s"); }

std::string progress_line(const planner::Doing& doing) {
    std::string text(doing.what);
    if (doing.of > 0) text += fmt::format(" {}/{}", doing.number, doing.of);
    if (doing.left) text += fmt::format(", {} left", human(*doing.left));
    if (!doing.search) return text;
    const search::Progress& search = *doing.search;
    text += ": " + rounds_of(search.rounds);
    if (search.found_by.empty()) return text + ", no schedule yet";
    text += ", " + human(search.best);
    if (search.bound <= Duration{}) return text;
    return text + fmt::format(", gap {:.1f} %", 100 * schedule::relative_gap(search.best, search.bound));
}

}  // namespace pipeweaver::apps
