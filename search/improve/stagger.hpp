// Search over staggered pipelines: a few numbers per kind of microbatch make a whole schedule.
//
// All microbatches that begin with one module are of one kind: those of each model where several share the ranks, or
// those with and without images. The first of a kind begins at some moment, the next ones at equal distances; its
// backwards have a beginning and a distance of their own.
//
//   a and b, which pass the ranks in opposite directions, both at distance 2
//     both begin at 0                      b begins at 2
//     rank 0  |a0 b0 a1 b1 a2 b2|          rank 0  |a0 .. a1 b0 a2 b1 .. b2|
//     rank 1  |b0 a0 b1 a1 b2 a2|          rank 1  |.. a0 b0 a1 b1 a2 b2 ..|
//
// No task starts before its moment, so that ranks wait where that keeps memory or a rank's time for others; which kind
// goes first where two meet is a number, too. One random change moves hundreds of tasks together, which is what
// pipelines in opposite directions need: from there, single steps find what remains.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/construct/dispatch.hpp"
#include "search/construct/gap_filling.hpp"

#include <array>

namespace pipeweaver::search {

/// How one kind runs. Times in ns.
struct Pace {
    std::int64_t begin = 0;                  ///< of its first microbatch
    std::int64_t hold = 0;                   ///< its backwards begin this much later than they could
    std::array<std::int64_t, 2> distance{};  ///< between microbatches: forwards; what is late
};

struct Staggering {
    Choice choice = Choice::list;
    bool gaps = false;                  ///< microbatch by microbatch into gaps, instead of along time by `choice`
    std::vector<Pace> pace;             ///< per kind
    std::vector<std::uint32_t> before;  ///< per kind; the smaller goes first, equal ones by their moments
};

class StaggerSearch {
public:
    StaggerSearch(const Flat& flat, const TaskGroups& groups);

    std::optional<Shortage> prepare(std::span<const std::uint32_t> mode);

    /// A change of where it stands, kept unless the makespan grows by more than a trifle; or, at first and where it has
    /// been stuck for long, the best of a few random beginnings within `horizon` ns. Pre: prepare() found nothing
    /// short. The schedule made last is in sequence(), its makespan is returned; INT64_MAX if none was made.
    std::int64_t step(Random& random, std::int64_t horizon);

    /// Did the last step begin anew?
    bool anew() const { return anew_; }

    const std::vector<std::uint32_t>& sequence() const {
        return made_of_gaps_ ? gap_filling_.sequence() : dispatcher_.sequence();
    }
    const std::vector<std::uint32_t>& mode() const { return mode_; }

private:
    Staggering draw(Random& random, std::int64_t horizon) const;
    std::int64_t draw_distance(Random& random, std::size_t kind, std::size_t late, std::int64_t horizon) const;
    void change(Staggering& made, Random& random, std::int64_t horizon) const;
    void set_release(const Staggering& made);
    std::int64_t fill_gaps(const Staggering& made);
    std::int64_t evaluate(const Staggering& made);
    void begin_anew(Random& random, std::int64_t horizon);

    const Flat& flat_;
    const TaskGroups& groups_;
    Dispatcher dispatcher_;
    GapFilling gap_filling_;
    std::vector<std::uint32_t> mode_;
    bool made_of_gaps_ = false;
    std::vector<std::int64_t> count_;  // of microbatches, per kind
    Staggering here_;
    std::int64_t makespan_ = INT64_MAX;
    std::uint64_t stuck_ = 0;     // steps since the last better one
    std::uint64_t patience_ = 0;  // so many, and it begins anew
    bool anew_ = false;
    std::vector<std::int64_t> release_;
    std::vector<std::uint32_t> line_, position_, microbatches_;
};

}  // namespace pipeweaver::search
