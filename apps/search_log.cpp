#include "apps/search_log.hpp"

#include "pipeweaver/search/bounds.hpp"

#include <fmt/format.h>

namespace pipeweaver::apps {

void SearchLog::add(const search::Progress& progress) {
    if (progress.best >= best_ && progress.bound <= bound_) return;
    best_ = progress.best;
    bound_ = progress.bound;
    lines_ += fmt::format("{}\t{}\t{}\t{}\t{:.6f}\t{}\n", progress.rounds, progress.evaluations, best_.count(),
                          bound_.count(), search::relative_gap(best_, bound_), progress.found_by);
}

search::KeepGoing SearchLog::watch(search::KeepGoing inner) {
    return [this, inner = std::move(inner)](const search::Progress& progress) {
        add(progress);
        return inner(progress);
    };
}

std::string SearchLog::text(const search::Found& found) {
    add({found.rounds, found.evaluations, found.replay.makespan, found.bound, found.strategy});
    return "round\tevaluations\tbest_ns\tbound_ns\tgap\tfound_by\n" + lines_;
}

}  // namespace pipeweaver::apps
