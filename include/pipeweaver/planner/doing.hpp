// What a plan is at: told to whoever shows it, while it is made. Nothing of a plan depends on it.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/time.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace pipeweaver::planner {

/// Kinds of work of a plan, in their order, and the part of its time that each takes, about.
namespace doing {
inline constexpr std::string_view known_schedules = "known schedules", other_layouts = "other layouts",
                                  tuned_cuts = "tuned cuts", partition = "partition", opponents = "opponents",
                                  replica = "replica";
}
struct Part {
    std::string_view what;
    double part = 0;
};
inline constexpr std::array<Part, 6> parts_of_plan{{{doing::known_schedules, 0.2},
                                                    {doing::other_layouts, 0.2},
                                                    {doing::tuned_cuts, 0.15},
                                                    {doing::partition, 0.2},
                                                    {doing::opponents, 0.05},
                                                    {doing::replica, 0.2}}};

/// A piece of work: one of several of its kind.
struct Doing {
    std::string_view what;                   ///< "partition", "opponents", "replica"
    std::size_t number = 0;                  ///< so many of them are done; of a search, which one it is, from 1
    std::size_t of = 0;                      ///< of so many
    std::optional<search::Progress> search;  ///< how its search goes
    std::optional<Duration> left{};          ///< until all are done, if they go on as they went
    std::optional<double> share{};           ///< of the whole plan that is done, about
};

/// Is told by any thread, several at once.
using OnDoing = std::function<void(const Doing&)>;

/// `execute`, telling after each job how many are done of its round. Whom it tells, and `execute`, must outlive it. It
/// is of one thread for threads_of().
[[nodiscard]] Executor told(const Executor& execute, const OnDoing& on, std::string_view what);

/// `time`, telling how the search that asks it goes. Whom it tells must outlive it.
[[nodiscard]] Time told(Time time, const OnDoing& on, const Doing& search);

}  // namespace pipeweaver::planner
