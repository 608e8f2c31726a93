// What a plan is at: told to whoever shows it, while it is made. Nothing of a plan depends on it.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/time.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace pipeweaver::planner {

/// A piece of work: one of several of its kind.
struct Doing {
    std::string_view what;                   ///< "partition", "opponents", "replica"
    std::size_t number = 0;                  ///< so many of them are done; of a search, which one it is, from 1
    std::size_t of = 0;                      ///< of so many
    std::optional<search::Progress> search;  ///< how its search goes
    std::optional<Duration> left{};          ///< until all are done, if they go on as they went
};

/// Is told by any thread, several at once.
using OnDoing = std::function<void(const Doing&)>;

/// `execute`, telling after each job how many are done of its round. Whom it tells, and `execute`, must outlive it. It
/// is of one thread for threads_of().
[[nodiscard]] Executor told(const Executor& execute, const OnDoing& on, std::string_view what);

/// `time`, telling how the search that asks it goes. Whom it tells must outlive it.
[[nodiscard]] Time told(Time time, const OnDoing& on, const Doing& search);

}  // namespace pipeweaver::planner
