#include "pipeweaver/planner/training_cost.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace pipeweaver::planner {

namespace {

struct Magnitude {
    char letter;
    double tokens;
};
constexpr std::array<Magnitude, 4> magnitudes{{{'T', 1e12}, {'B', 1e9}, {'M', 1e6}, {'K', 1e3}}};
constexpr double most_tokens = 1e16;

}  // namespace

std::string with_commas(double number) {
    std::string digits = fmt::format("{:.0f}", number);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
}

TrainingCost training_cost(std::int64_t tokens, Duration step, std::int64_t tokens_of_step,
                           const workloads::Cluster& cluster) {
    PIPEWEAVER_ASSERT(step.count() > 0 && tokens_of_step > 0);
    TrainingCost cost;
    cost.tokens = tokens;
    cost.steps = (tokens + tokens_of_step - 1) / tokens_of_step;
    const double hours = static_cast<double>(cost.steps) * static_cast<double>(step.count()) * 1e-9 / 3600;
    cost.days = hours / 24;
    cost.gpu_hours = hours * static_cast<double>(cluster.gpus);
    if (cluster.price_per_gpu_hour > 0) cost.usd = cost.gpu_hours * cluster.price_per_gpu_hour;
    const double watts = workloads::device(cluster.device).power_watts;
    if (watts > 0) cost.kwh = cost.gpu_hours * watts / 1000;
    return cost;
}

std::int64_t parse_tokens(const std::string& text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    double factor = after == end ? 1 : 0;
    for (const Magnitude& unit : magnitudes)
        if (after + 1 == end && std::toupper(static_cast<unsigned char>(*after)) == unit.letter) factor = unit.tokens;
    const double tokens = number * factor;
    if (error != std::errc{} || !(tokens >= 1 && tokens <= most_tokens))
        fail(ErrorKind::input, "{}", must_be(text, "a number of tokens up to 10000T, like 300B"));
    return std::llround(tokens);
}

std::string tokens_text(std::int64_t tokens) {
    const auto number = static_cast<double>(tokens);
    for (const Magnitude& unit : magnitudes)
        if (number >= unit.tokens) return fmt::format("{:.4g} {}", number / unit.tokens, unit.letter);
    return std::to_string(tokens);
}

std::string training_text(const TrainingCost& cost, const workloads::Cluster& cluster) {
    std::string text = fmt::format("{:.1f} days, {} GPU-hours", cost.days, with_commas(cost.gpu_hours));
    if (cost.usd)
        text += fmt::format(", {} USD at {:.2f} a GPU-hour", with_commas(*cost.usd), cluster.price_per_gpu_hour);
    if (cost.kwh)
        text += fmt::format(", {} kWh at {:.0f} W a GPU", with_commas(*cost.kwh),
                            workloads::device(cluster.device).power_watts);
    return text;
}

}  // namespace pipeweaver::planner
