#include "pipeweaver/base/text.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

namespace pipeweaver {

namespace {

struct Unit {
    std::string_view name;
    double factor;
};

constexpr std::array time_units{Unit{"ns", 1},  Unit{"us", 1e3},   Unit{"ms", 1e6},
                                Unit{"s", 1e9}, Unit{"min", 6e10}, Unit{"h", 3.6e12}};
constexpr std::array size_units{Unit{"B", 1},         Unit{"KB", 1e3},         Unit{"MB", 1e6},
                                Unit{"GB", 1e9},      Unit{"TB", 1e12},        Unit{"KiB", 1024},
                                Unit{"MiB", 1048576}, Unit{"GiB", 1073741824}, Unit{"TiB", 1099511627776}};
constexpr std::array speed_units{Unit{"B/s", 1},       Unit{"KB/s", 1e3},    Unit{"MB/s", 1e6},
                                 Unit{"GB/s", 1e9},    Unit{"TB/s", 1e12},   Unit{"GiB/s", 1073741824},
                                 Unit{"Mb/s", 1.25e5}, Unit{"Gb/s", 1.25e8}, Unit{"Tb/s", 1.25e11}};

// The number before a unit of the list, times the unit's factor, rounded to a whole number.
std::int64_t parse_quantity(std::string_view text, std::string_view what, std::span<const Unit> units, double largest,
                            std::string_view examples) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
    if (error != std::errc{} || found == units.end())
        fail(ErrorKind::input, "'{}' is not a {}; write it like {}", text, what, examples);
    const double scaled = value * found->factor;
    if (!(scaled >= 0) || scaled > largest) fail(ErrorKind::input, "'{}' is out of range for a {}", text, what);
    return static_cast<std::int64_t>(std::llround(scaled));
}

std::string four_digits(double value, std::string_view unit) {
    const int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace

std::string human(Duration time) {
    const auto ns = static_cast<double>(time.count());
    const double size = std::abs(ns);
    if (size < 1e3) return fmt::format("{} ns", time.count());
    if (size < 1e6) return four_digits(ns / 1e3, "us");
    if (size < 1e9) return four_digits(ns / 1e6, "ms");
    return four_digits(ns / 1e9, "s");
}

std::string human(Bytes size) {
    const auto bytes = static_cast<double>(size.count);
    const double magnitude = std::abs(bytes);
    if (magnitude < 1024) return fmt::format("{} B", size.count);
    if (magnitude < 1048576) return fmt::format("{:.2f} KiB", bytes / 1024);
    if (magnitude < 1073741824) return fmt::format("{:.2f} MiB", bytes / 1048576);
    return fmt::format("{:.2f} GiB", bytes / 1073741824);
}

Duration parse_duration(std::string_view text) {
    return Duration{parse_quantity(text, "time", time_units, 3.1536e18, "2s, 300ms or 5us")};
}

Bytes parse_bytes(std::string_view text) {
    return Bytes{parse_quantity(text, "size", size_units, 9.2e18, "80GiB, 512MB or 4096B")};
}

Bandwidth parse_bandwidth(std::string_view text) {
    const Bandwidth speed{parse_quantity(text, "speed", speed_units, 9.2e18, "50GB/s or 400Gb/s")};
    if (speed.bytes_per_second == 0) fail(ErrorKind::input, "'{}' is out of range for a speed", text);
    return speed;
}

namespace {

// The longest candidate that `name` goes on from behind a dash: "qwen2.5-vl-7b" of "qwen2.5-vl-7b-instruct".
std::optional<std::string> begun_by(std::string_view name, std::span<const std::string> candidates) {
    std::optional<std::string> longest;
    for (const auto& candidate : candidates) {
        const std::size_t end = candidate.size();
        if (end == 0 || end >= name.size() || !name.starts_with(candidate)) continue;
        if ((name[end] == '-' || name[end] == '_') && (!longest || longest->size() < end)) longest = candidate;
    }
    return longest;
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
    constexpr std::size_t misspelled = 2;  // letters at most
    std::optional<std::string> best;
    std::size_t best_distance = 0;
    for (const auto& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (2 * distance > std::max(name.size(), candidate.size())) continue;
        if (best && distance >= best_distance) continue;
        best = candidate;
        best_distance = distance;
    }
    if (best && best_distance <= misspelled) return best;
    if (auto begin = begun_by(name, candidates)) return begin;
    return best;
}

std::string unknown(std::string_view what, std::string_view name, std::span<const std::string> candidates) {
    if (const auto near = nearest(name, candidates))
        return fmt::format("unknown {} '{}'; did you mean '{}'?", what, name, *near);
    return fmt::format("unknown {} '{}'; known are {}", what, name, fmt::join(candidates, ", "));
}

std::string must_be(std::string_view is, std::string_view allowed) {
    return shown_must_be(fmt::format("'{}'", is), allowed);
}

std::string must_be(std::int64_t is, std::string_view allowed) { return shown_must_be(std::to_string(is), allowed); }

std::string shown_must_be(std::string_view shown, std::string_view allowed) {
    return fmt::format("is {}, must be {}", shown, allowed);
}

std::string one_of(std::span<const std::string> names) {
    return fmt::format("{}{}", names.size() == 1 ? "" : "one of ", fmt::join(names, ", "));
}

std::string a_whole_number(std::int64_t low, std::int64_t high) {
    return fmt::format("a whole number from {} to {}", low, high);
}

std::string a_number(double low, double high) { return fmt::format("a number from {} to {}", low, high); }

}  // namespace pipeweaver
