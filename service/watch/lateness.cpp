#include "service/watch/lateness.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::service {

namespace {

std::string rough(Duration time) {
    const double ms = std::chrono::duration<double, std::milli>(time).count();
    if (ms < 1) return human(time);
    if (ms < 1000) return fmt::format("{:.{}f} ms", ms, ms < 10 ? 1 : 0);
    return fmt::format("{:.1f} s", ms / 1000);
}

std::string no_turn(std::size_t before) {
    if (before == 0) return "no turn before its deadline: no thread was free";
    return fmt::format("no turn before its deadline: {} due earlier or of a higher priority went first",
                       before == 1 ? "a step" : fmt::format("{} steps", before));
}

// Of a plan that was found in time.
std::string put_together_late(const Course& course) {
    const std::string reserved = fmt::format("{} were reserved", rough(course.reserve));
    const Duration storing = course.settled - course.made;
    if (storing < course.made - course.found)
        return fmt::format("the plan took {} to put together and to store, {}", rough(course.settled - course.found),
                           reserved);
    return course.stored ? fmt::format("the plan took {} to store, {}", rough(storing), reserved)
                         : fmt::format("not stored: the disk took {} to refuse the plan, {}", rough(storing), reserved);
}

}  // namespace

std::string why_late(const Course& course) {
    if (course.settled <= course.deadline) return {};
    const TimePoint end_of_search = course.deadline - course.reserve;
    const Duration putting = course.settled - course.found;
    // With its turn after that it took the plan by policy, which had to be taken from among those that were tried.
    const bool took = !course.searched && course.turn >= end_of_search;
    const Duration taken = took ? course.found - course.turn : Duration{};
    const Duration by_policy = course.drafted - course.policy + taken + putting;
    const Duration whole = course.deadline - course.submitted;
    if (course.moved && *course.moved > end_of_search)
        return fmt::format("a collect wanted it in {}, less than the {} reserved to put a plan together",
                           rough(course.deadline - *course.moved), rough(course.reserve));
    if (whole < by_policy)
        return fmt::format("submitted with less time ({}) than a plan by policy takes ({})", rough(whole),
                           rough(by_policy));
    if (course.drafted > course.deadline)
        return fmt::format("its plan by policy took {}, after it had waited {} for a thread",
                           rough(course.drafted - course.policy), rough(course.policy - course.submitted));
    // These make up what it was late by.
    const Duration waited = std::max(course.turn - end_of_search, Duration{}), put = putting - course.reserve;
    const Duration searched = course.found - std::max(end_of_search, course.turn);
    if (waited >= std::max(searched, put)) return no_turn(course.before);
    if (put > searched) return put_together_late(course);
    return course.has_draft
               ? fmt::format("its search ended {} after it was told to", rough(searched))
               : fmt::format("no policy's plan fits: the search had its first one {} after it was told to end",
                             rough(searched));
}

}  // namespace pipeweaver::service
