#include "pipeweaver/launch/verdict.hpp"

#include "pipeweaver/launch/fit.hpp"

#include <array>
#include <cmath>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;

Verdict without_doubts(const Fit& fit, double error) {
    const auto peak = static_cast<double>(fit.ranks[fit.fullest].peak.count);
    if (std::abs(static_cast<double>(fit.short_by().count)) <= error * peak) return Verdict::close;
    return fit.fits() ? Verdict::fits : Verdict::does_not_fit;
}

// Less memory turns what does not fit, more what fits or is close.
bool turns(Effect effect, Verdict verdict) {
    if (effect == Effect::either) return true;
    return (effect == Effect::less) == (verdict == Verdict::does_not_fit);
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

std::vector<Open> turning(const Fit& fit, double error, const std::vector<Open>& open) {
    const Verdict verdict = without_doubts(fit, error);
    std::vector<Open> some;
    for (const Open& one : open)
        if (turns(one.effect, verdict)) some.push_back(one);
    return some;
}

Verdict verdict_of(const Fit& fit, double error, const std::vector<Open>& open) {
    return turning(fit, error, open).empty() ? without_doubts(fit, error) : Verdict::undecided;
}

}  // namespace pipeweaver::launch
