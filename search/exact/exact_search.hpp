// Exact search as the engine uses it: of the problem itself and, where several ranks have a choice of memory modes, of
// two variants (variants.hpp) alternately with it.
//
// Easier       The variant with choices on the busiest rank only gives a bound, usually long before the problem itself
//              is searched through; where that rank decides, the bound is the optimum.
// Narrower     Each better schedule of the easier problem says in which order and modes the busiest rank could run.
//              With these given, exact search of the other ranks tells whether they can follow.
//
// Determinism  as of exact.hpp.
#pragma once

#include "search/exact/exact.hpp"
#include "search/exact/variants.hpp"

namespace pipeweaver::search {

class ExactSearch {
public:
    /// Pre: Exact::suits(flat); `makespan` is of a known schedule. Only smaller ones are looked for.
    ExactSearch(const Flat& flat, const Rules& rules, std::int64_t makespan);

    /// A smaller makespan was found elsewhere.
    void offer(std::int64_t makespan);

    /// Works on. Pre: working(). Returns a schedule smaller than all known before, if one was found.
    std::optional<Candidate> round(const Executor& execute);

    bool working() const { return works(whole_) || (easier_ && works(*easier_)); }

    /// Nothing is smaller than the smallest makespan known.
    bool proven() const { return whole_.state() == Exact::State::proven || bound() >= whole_.makespan(); }

    /// No makespan is smaller; 0 as long as nothing is known.
    std::int64_t bound() const;

    std::uint64_t nodes() const;

private:
    static bool works(const Exact& exact) { return exact.state() == Exact::State::working; }
    std::optional<Candidate> round_of_variants(const Executor& execute);
    void begin_narrower(const Candidate& of_easier);
    std::optional<Candidate> round_of_narrower(const Executor& execute);
    Candidate as_of_problem(const Candidate& of_narrower) const;

    const Flat& flat_;
    const Rules& rules_;
    std::uint32_t rank_ = 0;  // whose choices the variants are about
    Exact whole_;
    std::unique_ptr<const Variant> easier_problem_, narrower_problem_;
    std::optional<Exact> easier_, narrower_;
    std::uint64_t turns_ = 0;
    std::vector<std::uint32_t> given_mode_;  // of the narrower problem, per pair
    std::uint64_t nodes_of_done_ = 0;        // of narrower problems before
};

}  // namespace pipeweaver::search
