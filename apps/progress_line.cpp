#include "apps/progress_line.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::apps {

std::string rounds_of(std::uint64_t count) { return plural(count, "round"); }

namespace {

std::string search_line(const search::Progress& search) {
    std::string text = ": " + rounds_of(search.rounds);
    if (search.found_by.empty()) return text + ", no schedule yet";
    text += ", " + human(search.best);
    if (search.bound <= Duration{}) return text;
    return text + fmt::format(", gap {}", percent(schedule::relative_gap(search.best, search.bound)));
}

}  // namespace

std::string progress_line(const planner::Doing& doing) {
    std::string text(doing.what);
    if (doing.of > 0) text += fmt::format(" {}/{}", doing.number, doing.of);
    if (doing.search) text += search_line(*doing.search);
    if (doing.share) text += fmt::format(", {:.0f} % done", 100 * *doing.share);
    if (doing.left) text += fmt::format(", {} left", human(*doing.left));
    return text;
}

planner::Doing PlanShare::operator()(planner::Doing doing) {
    const auto& parts = planner::parts_of_plan;
    const auto found = std::find_if(parts.begin(), parts.end(),
                                    [&](const planner::Part& one) { return doing.what.starts_with(one.what); });
    const std::scoped_lock lock(mutex_);
    if (found != parts.end()) {
        double before = 0;
        for (auto part = parts.begin(); part != found; ++part) before += part->part;
        const auto place = static_cast<std::size_t>(found - parts.begin());
        share_ = std::max(share_, before + found->part * of_its_part(doing, place));
    }
    constexpr double enough_to_tell = 0.03;
    doing.share = share_;
    const Duration spent = since_.elapsed();
    if (share_ >= enough_to_tell)
        doing.left = Duration{static_cast<std::int64_t>(static_cast<double>(spent.count()) * (1 - share_) / share_)};
    if (budget_) doing.left = std::min(doing.left.value_or(Duration::max()), std::max(Duration{}, *budget_ - spent));
    return doing;
}

double PlanShare::of_its_part(const planner::Doing& doing, std::size_t part) {
    constexpr double rounds_of_a_search = 200;  // as many as end most of them
    if (part_ != part) left_of_part_ = 1;
    part_ = part;
    if (doing.of == 0) return 0;
    const auto of = static_cast<double>(doing.of);
    if (doing.search)
        return (static_cast<double>(doing.number) - 1 +
                std::min(1.0, static_cast<double>(doing.search->rounds) / rounds_of_a_search)) /
               of;
    const double half = left_of_part_ * (1 - static_cast<double>(doing.number) / of / 2);
    if (doing.number == doing.of) left_of_part_ /= 2;
    return 1 - half;
}

Duration PlanShare::longer_for(double parts) const {
    const std::scoped_lock lock(mutex_);
    const double done = std::max(0.01, 1 - parts);
    return Duration{static_cast<std::int64_t>(static_cast<double>(since_.elapsed().count()) * parts / done)};
}

}  // namespace pipeweaver::apps
