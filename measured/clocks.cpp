#include "pipeweaver/measured/clocks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace pipeweaver::measured {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t largest = std::int64_t{1} << 61;  // 73 years; contradictions grow along circles

// limit[a][b]: offset of a less offset of b is at most that.
using Limits = std::vector<std::vector<std::int64_t>>;

Limits direct_limits(std::size_t ranks, std::span<const Message> messages) {
    Limits limit(ranks, std::vector<std::int64_t>(ranks, unbounded));
    for (std::size_t r = 0; r < ranks; ++r) limit[r][r] = 0;
    for (const Message& one : messages) {
        std::int64_t& known = limit[one.from][one.to];
        known = std::min(known, (one.arrived - one.sent).count());
    }
    return limit;
}

// Along paths over other ranks.
void close(Limits& limit) {
    const std::size_t ranks = limit.size();
    for (std::size_t k = 0; k < ranks; ++k)
        for (std::size_t a = 0; a < ranks; ++a)
            for (std::size_t b = 0; b < ranks; ++b)
                if (limit[a][k] != unbounded && limit[k][b] != unbounded)
                    limit[a][b] = std::min(limit[a][b], std::clamp(limit[a][k] + limit[k][b], -largest, largest));
}

// How far a rank's offset to itself would have to differ from 0; 0: the limits agree.
std::int64_t contradiction(const Limits& limit) {
    std::int64_t worst = 0;
    for (std::size_t r = 0; r < limit.size(); ++r) worst = std::min(worst, limit[r][r]);
    return -worst;
}

Limits loosened(Limits limit, std::int64_t by) {
    for (std::size_t a = 0; a < limit.size(); ++a)
        for (std::size_t b = 0; b < limit.size(); ++b)
            if (a != b && limit[a][b] != unbounded) limit[a][b] += by;
    close(limit);
    return limit;
}

// The least by which all are loosened so that they agree: what is wrong around a circle is enough on each of its ways.
Limits agreeing(const Limits& direct, std::int64_t& by) {
    by = 0;
    Limits limit = loosened(direct, 0);
    std::int64_t too_little = 0, enough = contradiction(limit);
    if (enough == 0) return limit;
    while (enough - too_little > 1) {
        const std::int64_t tried = too_little + (enough - too_little) / 2;
        (contradiction(loosened(direct, tried)) == 0 ? enough : too_little) = tried;
    }
    by = enough;
    return loosened(direct, by);
}

bool both_ways(const Limits& limit, std::size_t a, std::size_t b) {
    return limit[a][b] != unbounded && limit[b][a] != unbounded;
}

// The rank that is bounded both ways with most others; the first of several.
std::size_t best_reference(const Limits& limit) {
    std::size_t best = 0, most = 0;
    for (std::size_t r = 0; r < limit.size(); ++r) {
        std::size_t count = 0;
        for (std::size_t other = 0; other < limit.size(); ++other) count += both_ways(limit, r, other) ? 1U : 0U;
        if (count > most) {
            most = count;
            best = r;
        }
    }
    return best;
}

// Places the ranks that are bounded both ways with `first` around it: a feasible vector, as the middle of two that are.
void place_around(const Limits& limit, std::size_t first, std::vector<char>& placed, Clocks& clocks) {
    const Duration at = clocks.offset[first];
    for (std::size_t r = 0; r < limit.size(); ++r) {
        if (placed[r] != 0 || !both_ways(limit, r, first)) continue;
        const std::int64_t high = limit[r][first], low = -limit[first][r];
        clocks.offset[r] = at + Duration{low + (high - low) / 2};
        clocks.uncertainty[r] = Duration{(high - low + 1) / 2};
        placed[r] = 1;
    }
}

// How far a rank that was not placed is to be shifted, so that the tightest message took no time; none: no message
// binds it to a rank that was.
std::optional<Duration> shift_of(const Limits& limit, std::size_t rank, const std::vector<char>& placed,
                                 const Clocks& clocks) {
    std::optional<Duration> below, above;
    for (std::size_t p = 0; p < limit.size(); ++p) {
        if (placed[p] == 0) continue;
        if (limit[rank][p] != unbounded) {
            const Duration most = clocks.offset[p] + Duration{limit[rank][p]};
            below = below ? std::min(*below, most) : most;
        }
        if (limit[p][rank] != unbounded) {
            const Duration least = clocks.offset[p] - Duration{limit[p][rank]};
            above = above ? std::max(*above, least) : least;
        }
    }
    return below ? below : above;
}

}  // namespace

Clocks align(std::size_t ranks, std::span<const Message> messages) {
    Clocks clocks{0, std::vector<Duration>(ranks), std::vector<std::optional<Duration>>(ranks), {}};
    if (ranks == 0) return clocks;
    std::int64_t by = 0;
    const Limits limit = agreeing(direct_limits(ranks, messages), by);
    clocks.loosened = Duration{by};
    clocks.reference = best_reference(limit);
    std::vector<char> placed(ranks);
    clocks.uncertainty[clocks.reference] = Duration{0};
    placed[clocks.reference] = 1;
    place_around(limit, clocks.reference, placed, clocks);
    for (bool any = true; any;) {
        any = false;
        for (std::size_t r = 0; r < ranks; ++r) {
            if (placed[r] != 0) continue;
            const auto shift = shift_of(limit, r, placed, clocks);
            if (!shift) continue;
            clocks.offset[r] = *shift;
            placed[r] = 1;
            place_around(limit, r, placed, clocks);
            for (std::size_t other = 0; other < ranks; ++other)
                if (both_ways(limit, other, r)) clocks.uncertainty[other].reset();
            any = true;
        }
    }
    return clocks;
}

}  // namespace pipeweaver::measured
