// Steps under wrong costs: draws of everything that may be off (uncertainty.hpp), and schedules replayed in them.
//
// Method       A draw has log-normal factors exp(sigma * z), z standard normal, and is the same for all schedules: the
//              modules, GPUs and links are the same whatever runs on them. A cost's error is the half-width that holds
//              nine of ten measurements, so sigma = error / 1.645, the mean over all schedules weighted by time.
// Own          Jitter of passes and a schedule's own error belong to the schedule. It is known by a key, its signature,
//              so that the same schedule always meets the same. Of one key, jitter goes by the task's number.
// Determinism  random numbers by counter: a draw is a function of sigmas, seed and number.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/uncertainty.hpp"
#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::planner {

/// What errors of costs are told apart by: module, operator class and basis.
inline constexpr std::size_t kinds_of_module = emulator::operator_classes * emulator::PassCost::bases;

/// How far factors are spread: standard deviations of their logarithms.
struct Spread {
    std::vector<double> kind;  ///< kinds_of_module for each module: by the errors of costs alone
    double transfer = 0;       ///< likewise
    emulator::Uncertainty beyond;
};

/// Of all schedules that are compared. Pre: at least one.
[[nodiscard]] Spread spread_of(std::span<const Side> sides, const emulator::Uncertainty& beyond);

/// One draw.
class Factors {
public:
    Factors(const Spread& spread, std::uint64_t seed, std::uint64_t number);

    std::vector<double> kind;  ///< kinds_of_module for each module, by which its passes' time on them is longer
    double transfer = 1;
    std::vector<double> activations;  ///< per module

    /// Per rank of a replica.
    std::vector<double> ranks(std::size_t replica, std::size_t count) const;

    /// Of all that schedules with this key take.
    double schedule(std::uint64_t key) const;

    /// Jitter of a replica's passes: a task takes the stream's number of its own.
    class Jitter {
    public:
        Jitter(Random random, double sigma) : random_(random), sigma_(sigma) {}
        double next();

    private:
        Random random_;
        double sigma_;
    };
    Jitter jitter(std::uint64_t key, std::size_t replica) const;

private:
    enum class Source : std::uint64_t { operators, module, rank, task, transfer, schedule, activations };
    Random stream(Source source, std::uint64_t of) const;

    emulator::Uncertainty beyond_;
    std::uint64_t seed_, number_;
};

/// Which of the replicas, and the key of its side's schedules.
struct Run {
    std::size_t replica = 0;
    std::uint64_t key = 0;
};

/// Used again from replay to replay.
struct ReplaySpace {
    std::vector<std::int64_t> duration, end;
};

/// A schedule with the kinds that every task's time is made of.
class UncertainSchedule {
public:
    explicit UncertainSchedule(const Scheduled& scheduled);

    /// Keeps order and memory modes; tails stay as they are. Without the schedule's own factor.
    Duration makespan(const Factors& factors, const Run& run, ReplaySpace& space) const;

    std::uint64_t key() const { return key_; }

private:
    struct Share {
        std::uint32_t kind;
        double time_ns;
    };

    void add_shares(const emulator::StepProblem& step, std::size_t task, double again);

    schedule::FixedOrder order_;
    std::vector<std::uint32_t> rank_;  // per task
    std::vector<std::size_t> first_;   // per task: of its shares
    std::vector<Share> shares_;
    std::size_t ranks_;
    std::uint64_t key_;
};

/// A side: its makespan is its slowest replica's, by the factor of its schedules.
class UncertainSide {
public:
    UncertainSide(const Side& side, bool paired);
    Duration makespan(const Factors& factors, ReplaySpace& space) const;

private:
    std::vector<UncertainSchedule> replicas_;
    std::uint64_t key_ = 0;  // of all that are paired
};

/// Whether some rank of the schedule holds more than it may, as Draws::memory. What a rank always holds is not drawn.
class UncertainMemory {
public:
    UncertainMemory(const Scheduled& scheduled, std::optional<Bytes> memory);
    bool exceeded(const Factors& factors) const;

private:
    Scheduled scheduled_;
    std::optional<Bytes> memory_;
    std::vector<schedule::TaskCost> costs_;
};

/// Some of the row of draws that a seed gives, which does not end: as many as `draws` has replays.
class DrawnFactors {
public:
    DrawnFactors(std::span<const Side> sides, const Draws& draws, std::size_t first);

    std::size_t size() const { return count_; }
    Factors operator[](std::size_t i) const { return {spread_, seed_, first_ + i}; }

private:
    Spread spread_;
    std::uint64_t seed_;
    std::size_t first_, count_;
};

/// Per draw, per side.
using Makespans = std::vector<std::vector<Duration>>;

[[nodiscard]] Makespans makespans_in(const DrawnFactors& drawn, std::span<const Side> sides, bool paired,
                                     const Executor& execute);

/// Of one side.
[[nodiscard]] std::vector<Duration> sorted_makespans(const Makespans& makespans, std::size_t side);

/// Nearest rank. Pre: sorted, not empty.
template <class T>
T at_percent(const std::vector<T>& sorted, std::size_t percent) {
    return sorted[(percent * sorted.size() + 99) / 100 - 1];
}

}  // namespace pipeweaver::planner
