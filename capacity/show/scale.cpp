#include "capacity/show/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::capacity::show {

namespace {

constexpr std::array<double, 3> factors{1, 2, 5};
constexpr double beyond = 1e-9;  // of rounding

std::vector<double> even_marks(const Scale& scale, std::size_t about) {
    const double wanted = (scale.high - scale.low) / static_cast<double>(about);
    const double power = std::pow(10, std::floor(std::log10(wanted)));
    double distance = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0})
        if (factor * power >= wanted * (1 - beyond)) distance = factor * power;
    std::vector<double> marks;
    for (double number = std::ceil(scale.low / distance); number * distance <= scale.high * (1 + beyond); ++number)
        marks.push_back(number * distance);
    return marks;
}

std::vector<double> power_marks(const Scale& scale) {
    std::vector<double> marks;
    for (double power = std::pow(10, std::floor(std::log10(scale.low))); power <= scale.high; power *= 10)
        for (const double factor : factors)
            if (factor * power >= scale.low && factor * power <= scale.high) marks.push_back(factor * power);
    return marks;
}

}  // namespace

double Scale::part(double value) const {
    if (is_logarithmic) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
}

Scale scale_over(const std::vector<double>& values) {
    constexpr double several = 4, margin = 0.06;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    Scale scale{*least, *most, *most > several * *least};
    if (scale.is_logarithmic) {
        const double room = std::pow(scale.high / scale.low, margin);
        return {scale.low / room, scale.high * room, true};
    }
    const double room = std::max((scale.high - scale.low) * margin, scale.high * 0.02);
    return {std::max(0.0, scale.low - room), scale.high + room, false};
}

std::vector<double> marks_on(const Scale& scale, std::size_t about) {
    if (!scale.is_logarithmic) return even_marks(scale, about);
    auto marks = power_marks(scale);
    constexpr std::size_t fewest = 3;
    if (marks.size() < fewest) return even_marks(scale, about);
    // Of many powers every so manyth is enough.
    if (marks.size() > 2 * about)
        std::erase_if(marks, [](double mark) { return std::abs(std::remainder(std::log10(mark), 1)) > beyond; });
    return marks;
}

std::string mark_text(double value) {
    constexpr double thousand = 1e3, million = 1e6, billion = 1e9, first_short = 1e4;
    if (value >= billion) return fmt::format("{:.4g} B", value / billion);
    if (value >= million) return fmt::format("{:.4g} M", value / million);
    if (value >= first_short) return fmt::format("{:.4g} k", value / thousand);
    return fmt::format("{:.4g}", value);
}

}  // namespace pipeweaver::capacity::show
