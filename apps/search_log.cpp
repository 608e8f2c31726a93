#include "apps/search_log.hpp"

#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

namespace pipeweaver::apps {

namespace {

std::string line(const search::Improvement& one) {
    return fmt::format("{}\t{}\t{}\t{}\t{:.6f}\t{}\n", one.rounds, one.evaluations, one.best.count(), one.bound.count(),
                       schedule::relative_gap(one.best, one.bound), one.found_by);
}

}  // namespace

std::string search_log(const search::Found& found) {
    std::string text = "round\tevaluations\tbest_ns\tbound_ns\tgap\tfound_by\n";
    for (const auto& one : found.history) text += line(one);
    if (found.replay.makespan < found.history.back().best)  // by the second objective, on its way
        text += line({found.rounds, found.evaluations, found.replay.makespan, found.bound, found.strategy});
    return text;
}

}  // namespace pipeweaver::apps
