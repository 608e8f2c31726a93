#include "pipeweaver/capacity/jobs.hpp"

#include "capacity/jobs/job_speeds.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/training_cost.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace pipeweaver::capacity {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::size_t most_jobs = 1000, most_windows = 24;
constexpr double most_hours = 87'600;

// "20:00", or as the end of a window "24:00".
Duration time_of_day(const Json& value, bool may_be_24) {
    const std::string text = value.text();
    const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
    if (text.size() == 5 && text[2] == ':' && digit(0) && digit(1) && digit(3) && digit(4)) {
        const int hour = (text[0] - '0') * 10 + text[1] - '0', minute = (text[3] - '0') * 10 + text[4] - '0';
        if (minute < 60 && (hour < 24 || (may_be_24 && hour == 24 && minute == 0)))
            return hours(hour) + minutes(minute);
    }
    value.fail(must_be(text, "a time of day like 08:00 or 20:30"));
}

std::string clock(Duration time) {
    const auto of_day = std::chrono::duration_cast<minutes>(time).count();
    return fmt::format("{:02}:{:02}", of_day / 60, of_day % 60);
}

LoanWindow window_of(const Json& entry) {
    entry.only_keys({"from", "until", "gpus"});
    LoanWindow window;
    window.from = time_of_day(entry.at("from"), false);
    window.until = time_of_day(entry.at("until"), true);
    if (window.from == window.until)
        entry.fail(fmt::format("from and until are both {}: a whole day is 00:00 to 24:00", clock(window.from)));
    if (window.until < window.from) window.until += hours(24);
    window.gpus = entry.at("gpus").integer(1, most_gpus);
    return window;
}

bool overlap(const LoanWindow& a, const LoanWindow& b) {
    for (const int days : {-1, 0, 1})
        if (a.from + days * hours(24) < b.until && b.from < a.until + days * hours(24)) return true;
    return false;
}

std::string hours_of(const LoanWindow& window) {
    return fmt::format("{} to {}", clock(window.from),
                       clock(window.until > hours(24) ? window.until - hours(24) : window.until));
}

std::vector<LoanWindow> windows_of(const Json& night) {
    const auto entries = night.is_array() ? night.elements() : std::vector<Json>{night};
    if (entries.size() > most_windows) night.fail(fmt::format("has {} windows, allowed are {}", entries.size(), 24));
    std::vector<LoanWindow> windows;
    windows.reserve(entries.size());
    for (const Json& entry : entries) {
        windows.push_back(window_of(entry));
        for (std::size_t i = 0; i + 1 < windows.size(); ++i)
            if (overlap(windows[i], windows.back()))
                entry.fail(fmt::format("{} overlaps night[{}], {}: allowed is one loan at a time",
                                       hours_of(windows.back()), i, hours_of(windows[i])));
    }
    return windows;
}

std::int64_t thousandths_of(const Json& weight) {
    const double thousandths = weight.number(0, 1000) * 1000;
    const double whole = std::round(thousandths);
    if (whole < 1 || std::abs(thousandths - whole) > 1e-6)
        weight.fail(shown_must_be(weight.raw().dump(), "a number above 0 and up to 1000 with at most three decimals"));
    return static_cast<std::int64_t>(whole);
}

std::int64_t tokens_of(const Json& value) {
    if (!value.is_string()) return value.integer(1, 10'000'000'000'000'000);
    try {
        return planner::parse_tokens(value.text());
    } catch (const Error& error) {
        value.fail(error.what());
    }
}

// GPUs that the job asks for: as it says, or the most that it can use of the cluster.
std::int64_t asked_by(const Json& entry, const std::vector<Speed>& speeds, std::int64_t cluster_gpus) {
    std::int64_t most = 0;
    for (const Speed& speed : speeds)
        if (speed.gpus <= cluster_gpus) most = speed.gpus;
    const auto gpus = entry.find("gpus");
    if (!gpus) return most;
    const std::int64_t asked = gpus->integer(1, most_gpus);
    std::vector<std::int64_t> allowed;
    for (const Speed& speed : speeds)
        if (speed.gpus <= cluster_gpus) allowed.push_back(speed.gpus);
    if (std::find(allowed.begin(), allowed.end(), asked) == allowed.end())
        gpus->fail(
            must_be(asked, fmt::format("one of the job's GPU counts on this cluster: {}", fmt::join(allowed, ", "))));
    return asked;
}

TrainingJob read_job(const Json& entry, std::int64_t cluster_gpus, const std::filesystem::path& folder) {
    entry.only_keys(
        {"name", "weight", "tokens", "arrives", "gpus", "min_gpus", "max_gpus", "speed", "study", "model", "cluster"});
    TrainingJob job;
    job.name = entry.at("name").text();
    if (job.name.empty()) entry.at("name").fail("is empty, a name is needed");
    if (const auto weight = entry.find("weight")) job.weight_thousandths = thousandths_of(*weight);
    job.tokens = tokens_of(entry.at("tokens"));
    if (const auto arrives = entry.find("arrives"))
        job.arrives = Duration(std::llround(arrives->number(0, most_hours) * 3600e9));
    job.speeds = speeds_of(entry, job.tokens, folder);
    if (job.speeds.front().gpus > cluster_gpus)
        entry.fail_as(ErrorKind::limit, fmt::format("its smallest GPU count is {}, the cluster has {}",
                                                    job.speeds.front().gpus, cluster_gpus));
    job.asked = asked_by(entry, job.speeds, cluster_gpus);
    return job;
}

std::vector<TrainingJob> jobs_of(const Json& list, std::int64_t cluster_gpus, const std::filesystem::path& folder) {
    if (list.size() == 0 || list.size() > most_jobs)
        list.fail(fmt::format("has {} jobs, allowed are 1 to {}", list.size(), most_jobs));
    std::vector<TrainingJob> jobs;
    jobs.reserve(list.size());
    for (const Json& entry : list.elements()) {
        TrainingJob job = read_job(entry, cluster_gpus, folder);
        for (std::size_t i = 0; i < jobs.size(); ++i)
            if (jobs[i].name == job.name)
                entry.at("name").fail(fmt::format("is '{}', which jobs[{}] is named already", job.name, i));
        jobs.push_back(std::move(job));
    }
    return jobs;
}

}  // namespace

Wide work_of(const TrainingJob& job) { return Wide{job.tokens} * 1'000'000'000'000; }

Duration time_for(Wide work, std::int64_t tokens_per_ks) {
    const Wide time = (work + tokens_per_ks - 1) / tokens_per_ks;
    PIPEWEAVER_ASSERT(time <= Wide{Duration::max().count()});
    return Duration(static_cast<std::int64_t>(time));
}

SharedCluster parse_jobs(const JsonDocument& document, const std::filesystem::path& folder) {
    document.require_format("pipeweaver-jobs", 1);
    const Json root = document.root();
    root.only_keys({"format", "gpus", "night", "jobs"});
    SharedCluster cluster;
    cluster.gpus = root.at("gpus").integer(1, most_gpus);
    if (const auto night = root.find("night")) cluster.loans = windows_of(*night);
    cluster.jobs = jobs_of(root.at("jobs"), cluster.gpus, folder);
    return cluster;
}

SharedCluster read_jobs(const std::filesystem::path& path) {
    return parse_jobs(JsonDocument::read(path), path.parent_path());
}

nlohmann::ordered_json jobs_document(const SharedCluster& cluster) {
    nlohmann::ordered_json json{{"format", "pipeweaver-jobs/1"}, {"gpus", cluster.gpus}};
    for (const LoanWindow& loan : cluster.loans) {
        const Duration until = loan.until > hours(24) ? loan.until - hours(24) : loan.until;
        json["night"].push_back({{"from", clock(loan.from)}, {"until", clock(until)}, {"gpus", loan.gpus}});
    }
    for (const TrainingJob& job : cluster.jobs) {
        auto speeds = nlohmann::ordered_json::array();
        for (const Speed& speed : job.speeds)
            speeds.push_back({{"gpus", speed.gpus}, {"tokens_per_s", static_cast<double>(speed.tokens_per_ks) / 1000}});
        json["jobs"].push_back({{"name", job.name},
                                {"weight", static_cast<double>(job.weight_thousandths) / 1000},
                                {"tokens", job.tokens},
                                {"arrives", static_cast<double>(job.arrives.count()) / 3600e9},
                                {"gpus", job.asked},
                                {"speed", std::move(speeds)}});
    }
    return json;
}

}  // namespace pipeweaver::capacity
