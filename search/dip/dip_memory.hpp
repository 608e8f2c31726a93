// Memory modes for a schedule whose order is fixed: the third phase of DIP (arXiv 2504.14145), per-layer memory
// optimisation. Each rank alone: of every forward/backward pair one candidate, the smallest sum of their times, and at
// every task's start no more memory than the rank has (a multiple-choice knapsack with one limit per moment).
//
// The paper solves this as an integer program with an unnamed solver, a greedy warm start and a stop at a gap of 5 %.
// Here: the same greedy start, a Lagrangian bound (a price per byte and moment, raised where memory is short: M. L.
// Fisher, "The Lagrangian relaxation method for solving integer programming problems", Management Science 27, 1981),
// a new greedy filling from every set of prices, and the same stop at 5 %, at the latest after 20 prices.
#pragma once

#include "search/instance/flat.hpp"

namespace pipeweaver::search {

class DipMemory {
public:
    explicit DipMemory(const Flat& flat);

    /// Modes for the order of `sequence`, of no larger sum of times on any rank than under `base`.
    /// Pre: the order fits every rank's memory under `base`.
    const std::vector<std::uint32_t>& choose(std::span<const std::uint32_t> sequence,
                                             std::span<const std::uint32_t> base);

private:
    struct Item {
        std::uint32_t pair;
        std::uint32_t forward, backward, last;  // places in the rank's order
    };
    struct Wish {
        double worth;
        std::uint32_t item, mode;
    };

    void set_up(std::span<const std::uint32_t> order);
    void solve_rank();
    void fill(std::span<const std::uint32_t> wanted);
    void add(const Item& item, std::uint32_t mode, std::int64_t sign);
    bool fits(const Item& item, std::uint32_t from, std::uint32_t to) const;
    bool try_mode(std::uint32_t item, std::uint32_t mode);
    double bound_at_prices();
    void raise_prices(double bound);
    std::int64_t time(const Item& item, std::uint32_t mode) const;
    std::int64_t level(const Item& item, std::uint32_t mode, std::uint32_t place) const;
    std::int64_t bytes_by_span(const Item& item, std::uint32_t mode) const;

    const Flat& flat_;
    std::vector<std::uint32_t> mode_;  // the answer, per pair
    std::span<const std::uint32_t> base_;

    // One rank.
    std::int64_t room_ = 0;
    std::vector<Item> items_;
    std::vector<std::uint32_t> place_of_;  // per task
    std::vector<std::int64_t> fixed_;      // per place: memory at its start, of tasks without a pair
    std::vector<std::int64_t> load_;       // the same, of all under the current choice
    std::vector<std::uint32_t> choice_, best_choice_, priced_choice_;
    std::int64_t sum_ = 0, best_sum_ = 0;
    std::vector<double> price_, total_price_;  // per place; sums of those before
    std::vector<Wish> wishes_;
};

}  // namespace pipeweaver::search
