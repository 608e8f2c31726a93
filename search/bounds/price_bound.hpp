// A lower bound that understands memory: every moment of a rank's machine, and its memory at that moment, gets a price;
// if what must be bought costs more than all that there is up to T, no schedule ends by T.
//
// Proof sketch. Let a schedule have a makespan of T at most. For any prices m_r(t), l_r(t) >= 0 of rank r's machine and
// of its whole room for memory, 0 <= t <= T:
//
//     sum over tasks of the price of the time they run and of the memory they hold
//         = sum over r of  integral of m_r(t) busy_r(t) + l_r(t) used_r(t)
//        <= sum over r of  integral of m_r(t) + l_r(t)                                          (the *worth* of T)
//
// as a rank runs one task at a time and memory never exceeds its room. The left side is a sum of functions of the
// tasks' starts: with M and L the integrals of m and l, a task that runs from s to e costs M(e) - M(s) + acquire (L(T)
// - L(s)) - release (L(T) - L(e)); pairs need not be known. In no schedule does a connected part of the task graph pay
// less than it would if it alone could choose its starts, anywhere between its heads and tails and along its arcs. If
// these smallest sums together exceed the worth of T for some prices, no schedule ends by T, and T + 1 is a bound.
//   This is the Lagrangian dual of the time-indexed relaxation (R. Moehring, A. Schulz, F. Stork, M. Uetz, "Solving
// project scheduling problems by minimum cut computations", Management Science 49 (2003)) as a test of one T.
//
// Starts      are taken in slots that begin at a task's head: slot k is [head + k w, head + (k + 1) w]. An arc without
//             slack, later head = earlier head + length, says later k >= earlier k exactly; with slack it says later k
//             >= earlier k - slack / w, rounded up. A slot costs the least that a start in it costs. Arcs are those of
//             a forest (price_forest.hpp): the least sum over a tree is found from its leaves up.
// Prices      Trees take their cheapest starts in turn, and prices grow by what each uses, as in D. Mueller, K. Radke,
//             J. Vygen, "Faster min-max resource sharing in theory and practice", Mathematical Programming Computation
//             3 (2011). Whenever prices refute a T it rises.
// Numbers     are doubles. Rounding, some 1e-12 of the worth, is far below the margin by which it must be exceeded.
// Modes       Each number is the smallest over modes that fit, so the bound sees no choice between time and memory.
//             (With the choice as part of the relaxation it hardly grew: half a time for half the memory is cheap.)
// Determinism a function of the problem and of the calls; one thread.
#pragma once

#include "search/bounds/price_forest.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

class PriceBound {
public:
    /// Looks for bounds above `bound`, which is one. Tasks of other ranks than `ranks` count as delays only.
    PriceBound(const Flat& flat, const Tightened& windows, std::span<const std::uint32_t> ranks, std::int64_t bound);

    /// A bound on the makespan: the given one, or what was found since.
    std::int64_t value() const { return refuted_ + 1; }

    /// Works for about this many units of some 10 ns, one phase at least.
    void improve(std::uint64_t units);

    /// Units used so far.
    std::uint64_t work() const { return work_; }

    /// Memory times time that tasks hold at least, as a fraction of all there is until value().
    double memory_pressure();

private:
    using Node = PriceForest::Node;
    struct Rank {
        std::vector<double> machine, memory;          // prices of cells
        std::vector<double> machine_sum, memory_sum;  // of the cells before a cell
        std::vector<double> busy, used;               // by one tree; as changes from cell to cell
        bool touched = false;
    };

    void try_limit(std::int64_t limit);
    double worth() const;
    std::size_t slots(const Node& node) const;
    std::size_t slack_slots(const Node& node) const;
    std::array<double, 3> bends(const Node& node) const;
    std::array<double, 4> starts(const Node& node, std::size_t slot) const;
    double price(const Node& node, double start) const;
    void price_starts(const Node& node, double later, std::size_t count);
    void price_slots(const Node& node, double* row);
    double cheapest(std::size_t tree);
    void choose(std::size_t tree);
    void use(std::size_t tree, double step);
    void scale();
    void phase();
    double evaluate();
    void raise();

    PriceForest forest_;
    std::vector<Rank> ranks_;
    std::int64_t longest_;
    std::int64_t refuted_;
    std::int64_t limit_ = 0;  // the T being tried
    double width_ = 1;        // of a cell and of a slot
    std::vector<double> rows_, row_;
    std::vector<std::size_t> slot_;
    std::vector<double> start_;  // per node, as chosen
    std::uint64_t work_ = 0, phases_ = 0;
};

}  // namespace pipeweaver::search
