#include "capacity/jobs/job_speeds.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace pipeweaver::capacity {

namespace {

constexpr double most_tokens_per_s = 1e12, least_tokens_per_s = 0.001;
constexpr std::size_t most_speeds = 100;
constexpr std::int64_t most_years = 10, seconds_of_year = 31'536'000;

std::int64_t per_ks(double tokens_per_s) { return std::max<std::int64_t>(1, std::llround(tokens_per_s * 1000)); }

// Of GPUs the tokens in 1,000 s.
using SpeedOf = std::map<std::int64_t, std::int64_t>;

SpeedOf typed(const Json& list) {
    SpeedOf speeds;
    for (const Json& entry : list.elements()) {
        entry.only_keys({"gpus", "tokens_per_s"});
        const std::int64_t gpus = entry.at("gpus").integer(1, most_gpus);
        const double tokens_per_s = entry.at("tokens_per_s").number(least_tokens_per_s, most_tokens_per_s);
        if (!speeds.emplace(gpus, per_ks(tokens_per_s)).second)
            entry.at("gpus").fail(fmt::format("is {}, for which there is a speed already", gpus));
    }
    if (speeds.empty()) list.fail("is empty: the job needs at least one speed");
    return speeds;
}

// The column whose text a row must have to be the job's; none where the job does not say and all rows have the same.
struct Filter {
    std::size_t column;
    std::string text;
};

std::optional<Filter> filter_of(const Json& job, const CsvTable& table, std::string_view name) {
    const auto asked = job.find(name);
    const auto column = asked ? table.column(name) : table.find(name);
    if (!column) return std::nullopt;
    std::set<std::string, std::less<>> known;
    for (std::size_t row = 0; row < table.rows(); ++row) known.emplace(table.text(row, *column));
    if (asked) {
        const std::string text = asked->text();
        if (!known.contains(text))
            asked->fail(fmt::format("is '{}', of which {} has no row: allowed are {}", text, table.name(),
                                    fmt::join(known, ", ")));
        return Filter{*column, text};
    }
    if (known.size() > 1)
        job.at("study").fail(fmt::format("{} has rows of several in its column {}: {}; the key '{}' says which",
                                         table.name(), name, fmt::join(known, ", "), name));
    return std::nullopt;
}

SpeedOf studied(const Json& job, const std::filesystem::path& folder) {
    const auto table = CsvTable::read(folder / job.at("study").text());
    const std::size_t gpus = table.column("gpus"), speed = table.column("tokens_per_s");
    const auto model = filter_of(job, table, "model"), cluster = filter_of(job, table, "cluster");
    const auto is_of = [&](std::size_t row, const std::optional<Filter>& filter) {
        return !filter || table.text(row, filter->column) == filter->text;
    };
    SpeedOf speeds;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        if (!is_of(row, model) || !is_of(row, cluster) || table.text(row, speed).empty()) continue;
        std::int64_t& best = speeds[table.integer(row, gpus, 1, most_gpus)];
        best = std::max(best, per_ks(table.number(row, speed, 0, most_tokens_per_s)));
    }
    if (speeds.empty()) job.at("study").fail(fmt::format("{} has no row with a speed of this job", table.name()));
    return speeds;
}

SpeedOf all_speeds(const Json& job, const std::filesystem::path& folder) {
    const auto speed = job.find("speed"), study = job.find("study");
    if (speed && study) job.fail("has the keys 'speed' and 'study', allowed is one of them");
    if (!speed && !study) job.fail("has no speeds: the key 'speed' or 'study' is needed");
    for (const char* key : {"model", "cluster"})
        if (const auto given = job.find(key); given && !study) given->fail("is for the key 'study', which is missing");
    return study ? studied(job, folder) : typed(*speed);
}

}  // namespace

std::vector<Speed> speeds_of(const Json& entry, std::int64_t tokens, const std::filesystem::path& folder) {
    const SpeedOf all = all_speeds(entry, folder);
    const auto bound = [&](std::string_view key, std::int64_t otherwise) {
        const auto value = entry.find(key);
        return value ? value->integer(1, most_gpus) : otherwise;
    };
    const std::int64_t least = bound("min_gpus", 1), most = bound("max_gpus", most_gpus);
    if (least > most)
        entry.fail(fmt::format("min_gpus is {} and max_gpus is {}: at least as many are needed", least, most));
    std::vector<Speed> speeds;
    std::vector<std::int64_t> counts;
    for (const auto& [gpus, tokens_per_ks] : all) {
        counts.push_back(gpus);
        if (gpus >= least && gpus <= most) speeds.push_back({gpus, tokens_per_ks});
    }
    if (speeds.empty())
        entry.fail(fmt::format("has no speed for {} to {} GPUs, but for {}", least, most, fmt::join(counts, ", ")));
    if (speeds.size() > most_speeds)
        entry.fail(fmt::format("has {} GPU counts, allowed are {}", speeds.size(), most_speeds));
    for (const Speed& speed : speeds)
        if (Wide{tokens} * 1000 > Wide{speed.tokens_per_ks} * (most_years * seconds_of_year))
            entry.fail_as(ErrorKind::limit,
                          fmt::format("takes over {} years on {} GPUs, allowed is up to that", most_years, speed.gpus));
    return speeds;
}

}  // namespace pipeweaver::capacity
