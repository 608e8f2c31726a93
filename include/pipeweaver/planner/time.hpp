// How much time is left, and whether work may go on: one type for both, from the command line down to the last search.
//
//   Time whole = Time::until(left, ask);        a clock of the caller's, and what else may end the work
//   Time policies = whole.fraction(0.25);       begins now: a quarter of what is left
//
// Threads      any number may ask at once; the caller's clock and `ask` are asked by one at a time.
// Determinism  time decides how many rounds a search has and what is left out, never what the rest of a plan is like.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/found.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace pipeweaver::planner {

class Time {
public:
    /// What is left until the end. It may shrink by more than a clock's time, where the end comes nearer.
    using Left = std::function<Duration()>;

    /// Where a Time comes from: a caller's clock, or a record of one (planner/session.hpp).
    class Source {
    public:
        virtual ~Source() = default;
        virtual std::optional<schedule::StopReason> stop(const search::Progress& progress) = 0;
        virtual Time fraction(double part, Duration reserve) = 0;
        /// None: no clock is read, or there is no end.
        virtual std::optional<Duration> left() { return std::nullopt; }
    };

    /// Time without an end.
    Time() = default;

    explicit Time(std::shared_ptr<Source> source) : source_(std::move(source)) {}

    /// Time that ends when nothing is left, or when `ask`, which is told how a search is doing, says so. Either may be
    /// null: then it never ends so.
    [[nodiscard]] static Time until(Left left, search::KeepGoing ask = {});

    /// A part of what is left now, less `reserve`. It ends no later than this does.
    [[nodiscard]] Time fraction(double part, Duration reserve = {}) const;

    /// Why work must end; none: it may go on.
    [[nodiscard]] std::optional<schedule::StopReason> stop(const search::Progress& progress = {}) const;

    [[nodiscard]] bool is_over() const { return stop().has_value(); }

    /// What is left, where a clock is read.
    [[nodiscard]] std::optional<Duration> left() const;

    /// The question as searches ask it; null: time without an end.
    [[nodiscard]] search::KeepGoing keep_going() const;

private:
    std::shared_ptr<Source> source_;  // shared by the copies that searches keep
};

// What a plan is at: told to whoever shows it, while it is made. Nothing of a plan depends on it.

/// Kinds of work of a plan, in their order, and the part of its time that each takes, about.
namespace doing {
inline constexpr std::string_view known_schedules = "known schedules", other_layouts = "other layouts",
                                  tuned_cuts = "tuned cuts", partition = "partition", opponents = "opponents",
                                  replica = "replica", own_gpus = "modules on GPUs of their own";
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
