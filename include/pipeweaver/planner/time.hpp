// How much time is left, and whether work may go on: one type for both, from the command line down to the last search.
//
//   Time whole = Time::until(left, ask);        a clock of the caller's, and what else may end the work
//   Time policies = whole.fraction(0.25);       begins now: a quarter of what is left
//
// Threads      any number may ask at once; the caller's clock and `ask` are asked by one at a time.
// Determinism  time decides how many rounds a search has and what is left out, never what the rest of a plan is like.
#pragma once

#include "pipeweaver/search/found.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace pipeweaver::planner {

class Time {
public:
    /// What is left until the end. It may shrink by more than a clock's time, where the end comes nearer.
    using Left = std::function<Duration()>;

    /// Where a Time comes from: a caller's clock, or a record of one (planner/endings.hpp).
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

}  // namespace pipeweaver::planner
