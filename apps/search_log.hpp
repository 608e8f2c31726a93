// solve --log: what a search found, and when in rounds. No times, so that the logs of two runs can be compared.
#pragma once

#include "pipeweaver/search/search.hpp"

#include <string>

namespace pipeweaver::apps {

class SearchLog {
public:
    /// Asks `inner` and writes down what has become better since. Must outlive the search.
    search::KeepGoing watch(search::KeepGoing inner);

    /// The file: a heading, a line for every round after which the best or the bound was better, the end of the search.
    [[nodiscard]] std::string text(const search::Found& found);

private:
    void add(const search::Progress& progress);

    std::string lines_;
    Duration best_ = Duration::max(), bound_{};
};

}  // namespace pipeweaver::apps
