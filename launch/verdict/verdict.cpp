#include "pipeweaver/launch/verdict.hpp"

#include "pipeweaver/launch/fit.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;

// Of a device what users fill at most: all but 3 % of it.
constexpr double most_filled = 0.97;

// `moved`: more, or less, than the fullest rank is said to hold.
Verdict without_doubts(const Fit& fit, const MemoryError& error, Bytes moved = {}) {
    const auto peak = static_cast<double>((fit.ranks[fit.fullest].peak + moved).count);
    const auto usable = static_cast<double>(fit.usable.count);
    if (peak * (1 + error.more) <= usable) return Verdict::fits;
    const double most = std::max(usable, most_filled * static_cast<double>(fit.device_memory.count));
    return peak <= most || peak * (1 - error.less) <= usable ? Verdict::close : Verdict::does_not_fit;
}

// Less memory turns what does not fit, more what fits or is close.
bool turns(Effect effect, Verdict verdict) {
    if (effect == Effect::either) return true;
    return (effect == Effect::less) == (verdict == Verdict::does_not_fit);
}

// Whether all that moves a rank by so much at most, as it does, is enough together to turn the verdict.
bool moves_enough(const Open& one, const std::vector<Open>& all, const Fit& fit, const MemoryError& error) {
    if (!one.most) return true;
    Bytes more{}, less{};
    for (const Open& other : all) {
        if (other.effect != Effect::less) more += other.most.value_or(Bytes{});
        if (other.effect != Effect::more) less -= other.most.value_or(Bytes{});
    }
    const Verdict verdict = without_doubts(fit, error);
    return (one.effect != Effect::less && without_doubts(fit, error, more) != verdict) ||
           (one.effect != Effect::more && without_doubts(fit, error, less) != verdict);
}

// Whether what lies on a rank all the time is more than it has.
bool is_short_at_rest(const Fit& fit, const MemoryError& error) {
    const double most =
        std::max(static_cast<double>(fit.usable.count), most_filled * static_cast<double>(fit.device_memory.count));
    return std::any_of(fit.ranks.begin(), fit.ranks.end(), [&](const RankUse& rank) {
        return static_cast<double>((rank.weights + rank.gradients + rank.optimizer).count) * (1 - error.less) > most;
    });
}

}  // namespace

std::string_view name_of(Verdict verdict) {
    constexpr std::array<std::string_view, 5> names{"fits", "close", "does-not-fit", "does-not-construct", "undecided"};
    return names[static_cast<std::size_t>(verdict)];
}

int exit_status_of(Verdict verdict) {
    constexpr std::array<int, 5> statuses{0, 0, 4, 4, 5};
    return statuses[static_cast<std::size_t>(verdict)];
}

std::vector<Open> turning(const Fit& fit, const MemoryError& error, const std::vector<Open>& open) {
    const Verdict verdict = without_doubts(fit, error);
    const bool is_short = is_short_at_rest(fit, error);
    std::vector<Open> some;
    for (const Open& one : open)
        if (turns(one.effect, verdict) && !(is_short && one.of_step) && moves_enough(one, open, fit, error))
            some.push_back(one);
    return some;
}

Verdict verdict_of(const Fit& fit, const MemoryError& error, const std::vector<Open>& open) {
    return turning(fit, error, open).empty() ? without_doubts(fit, error) : Verdict::undecided;
}

}  // namespace pipeweaver::launch
