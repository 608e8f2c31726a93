#include "apps/capacity/share_tables.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/planner/training_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::apps {

namespace {

using capacity::QueuedJob;
using capacity::QueueResult;
using capacity::TrainingJob;
using capacity::Wide;

constexpr std::size_t most_terms = 8;  // of a sum that is spelled out
constexpr double day_ns = 86'400e9, hour_ns = 3'600e9;

double days(Duration time) { return static_cast<double>(time.count()) / day_ns; }
double weight_of(const TrainingJob& job) { return static_cast<double>(job.weight_thousandths) / 1000; }
double weighted_days(Wide weighted) { return static_cast<double>(weighted) / 1000 / day_ns; }

double share_used(const QueueResult& queue) {
    return queue.offered > 0 ? static_cast<double>(queue.gpu_time) / static_cast<double>(queue.offered) : 0;
}

std::size_t name_width(const SharedOut& found) {
    std::size_t width = 3;
    for (const TrainingJob& job : found.cluster.jobs) width = std::max(width, job.name.size());
    return width;
}

std::string clock(Duration time) {
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time).count() % 1440;
    return fmt::format("{:02}:{:02}", minutes / 60, minutes % 60);
}

std::string cluster_line(const SharedOut& found) {
    std::string text = fmt::format("{} GPUs, {} jobs", found.cluster.gpus, found.cluster.jobs.size());
    for (const auto& loan : found.cluster.loans)
        text += fmt::format("; {} more from {} to {}", loan.gpus, clock(loan.from), clock(loan.until));
    return text + '\n';
}

// "3 x 8.42 + 1 x 12.30 = 37.56"
std::string sum_of_terms(const SharedOut& found) {
    std::string text;
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j) {
        if (!found.shares.speed_of[j]) continue;
        text += fmt::format("{}{:.4g} x {:.2f}", text.empty() ? "" : " + ", weight_of(found.cluster.jobs[j]),
                            days(share_of(found, j)->time));
    }
    return fmt::format("{} = {:.2f} weighted days", text, weighted_days(found.shares.weighted));
}

std::string waiting_line(const SharedOut& found) {
    std::vector<std::string> waiting;
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j)
        if (!found.shares.speed_of[j]) waiting.push_back(found.cluster.jobs[j].name);
    return fmt::format(
        "not all fit at once: they need {} GPUs at least, there are {}; {} wait{} (least weight): the "
        "queue below says when\n",
        found.shares.smallest_gpus, found.cluster.gpus, fmt::join(waiting, ", "), waiting.size() == 1 ? "s" : "");
}

}  // namespace

std::optional<JobShare> share_of(const SharedOut& found, std::size_t j) {
    if (!found.shares.speed_of[j]) return std::nullopt;
    const TrainingJob& job = found.cluster.jobs[j];
    const auto& [gpus, tokens_per_ks] = job.speeds[*found.shares.speed_of[j]];
    const Duration time = capacity::time_for(work_of(job), tokens_per_ks);
    return JobShare{gpus, static_cast<double>(tokens_per_ks) / 1000, time, gpu_hours(Wide{gpus} * time.count())};
}

double gpu_hours(Wide gpu_ns) { return static_cast<double>(gpu_ns) / hour_ns; }

std::string share_table(const SharedOut& found) {
    TextTable table({{"job", true, 3},
                     {"weight", false, 8},
                     {"tokens", false, 10},
                     {"GPUs", false, 8},
                     {"tokens/s", false, 14},
                     {"days", false, 10},
                     {"GPU-hours", false, 12}},
                    1);
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j) {
        const TrainingJob& job = found.cluster.jobs[j];
        std::vector<std::string> texts{job.name, fmt::format("{:.4g}", weight_of(job)),
                                       planner::tokens_text(job.tokens)};
        if (const auto share = share_of(found, j))
            texts.insert(texts.end(),
                         {std::to_string(share->gpus), fmt::format("{:.0f}", share->tokens_per_s),
                          fmt::format("{:.2f}", days(share->time)), fmt::format("{:.0f}", share->gpu_hours)});
        else
            texts.insert(texts.end(), {"waits", "-", "-", "-"});
        table.add(std::move(texts));
    }
    std::string text = fmt::format("{}\nall at once, from now to their ends: the least weighted time\n{}",
                                   cluster_line(found), table.text());
    text += fmt::format("{} of {} GPUs; days = tokens / (tokens/s) / 86,400", found.shares.gpus, found.cluster.gpus);
    const bool few = found.cluster.jobs.size() <= most_terms;
    text += few ? fmt::format("; weight x days: {}\n", sum_of_terms(found))
                : fmt::format("; sum of weight x days: {:.2f}\n", weighted_days(found.shares.weighted));
    if (!found.shares.all_run()) text += waiting_line(found);
    return text;
}

namespace {

struct Means {
    double queued = 0, completion = 0, weighted = 0;  // days
    std::int64_t stops = 0, resizes = 0;
};

Means means_of(const SharedOut& found, const QueueResult& queue) {
    Means means;
    double weights = 0;
    for (std::size_t j = 0; j < queue.jobs.size(); ++j) {
        const QueuedJob& job = queue.jobs[j];
        means.queued += days(job.queued) / static_cast<double>(queue.jobs.size());
        means.completion += days(job.ends - found.cluster.jobs[j].arrives) / static_cast<double>(queue.jobs.size());
        means.stops += job.stops;
        means.resizes += job.resizes;
        weights += weight_of(found.cluster.jobs[j]);
    }
    means.weighted = weighted_days(queue.weighted) / weights;
    return means;
}

std::string policies_table(const SharedOut& found) {
    TextTable table({{"policy", true, 8},
                     {"queued", false, 10},
                     {"completion", false, 11},
                     {"weighted", false, 11},
                     {"last end", false, 9},
                     {"usage", false, 8},
                     {"GPU-hours", false, 11},
                     {"on loan", false, 9},
                     {"stops", false, 6},
                     {"resizes", false, 8}},
                    1);
    const auto in_days = [](double of) { return fmt::format("{:.2f} d", of); };
    const auto whole = [](double of) { return fmt::format("{:.0f}", of); };
    for (const QueueResult& queue : found.queues) {
        const Means means = means_of(found, queue);
        table.add({std::string(name_of(queue.policy)), in_days(means.queued), in_days(means.completion),
                   in_days(means.weighted), in_days(days(queue.ends)), percent(share_used(queue)),
                   whole(gpu_hours(queue.gpu_time)), whole(gpu_hours(queue.loaned)), std::to_string(means.stops),
                   std::to_string(means.resizes)});
    }
    return table.text();
}

// "fifo      (1 x 9.85 + 2 x 2.86) / 3 = 4.08"
std::string weighted_line(const SharedOut& found, const QueueResult& queue) {
    std::string terms;
    double weights = 0;
    for (std::size_t j = 0; j < queue.jobs.size(); ++j) {
        const TrainingJob& job = found.cluster.jobs[j];
        terms += fmt::format("{}{:.4g} x {:.2f}", j == 0 ? "" : " + ", weight_of(job),
                             days(queue.jobs[j].ends - job.arrives));
        weights += weight_of(job);
    }
    return fmt::format("{:<8} ({}) / {:.4g} = {:.2f}\n", name_of(queue.policy), terms, weights,
                       weighted_days(queue.weighted) / weights);
}

std::string columns_lines(const SharedOut& found) {
    std::string text =
        "usage = GPU-hours that jobs held / GPU-hours that there were until the last end\n"
        "weighted = sum of weight x days / sum of weights";
    const bool few = found.cluster.jobs.size() <= most_terms;
    text += few ? ":\n" : "\n";
    for (const QueueResult& queue : found.queues)
        if (few) text += weighted_line(found, queue);
    return text;
}

std::string jobs_table(const SharedOut& found) {
    std::vector<TextTable::Column> columns{{"days from hour 0", true}, {"arrives", false, 9}, {"asks", false, 6}};
    for (const QueueResult& queue : found.queues) columns.push_back({fmt::format(" {:>17}", name_of(queue.policy))});
    TextTable table(std::move(columns), 1);
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j) {
        const TrainingJob& job = found.cluster.jobs[j];
        std::vector<std::string> texts{job.name, fmt::format("{:.2f}", days(job.arrives)), std::to_string(job.asked)};
        for (const QueueResult& queue : found.queues)
            texts.push_back(fmt::format(" {:>7.2f} to {:>6.2f}", days(queue.jobs[j].starts), days(queue.jobs[j].ends)));
        table.add(std::move(texts));
    }
    return "\n" + table.text();
}

// Mean GPUs of the job in the slice of time.
double gpus_between(const QueueResult& queue, std::size_t job, Duration from, Duration until) {
    Wide sum = 0;
    for (const auto& held : queue.holdings)
        if (held.job == job)
            sum +=
                Wide{held.gpus} * std::max(Duration{}, std::min(held.until, until) - std::max(held.from, from)).count();
    return static_cast<double>(sum) / static_cast<double>((until - from).count());
}

// "10 min", "2.4 h", "1.5 days".
std::string rough(Duration time) {
    const double hours = static_cast<double>(time.count()) / hour_ns;
    if (hours < 2) return fmt::format("{:.3g} min", 60 * hours);
    return hours < 48 ? fmt::format("{:.3g} h", hours) : fmt::format("{:.3g} days", hours / 24);
}

char eighths(double gpus, std::int64_t of) {
    const double share = 8 * gpus / static_cast<double>(of);
    if (share <= 0) return '.';
    if (share >= 8.5) return '+';
    return static_cast<char>('0' + std::max(1, static_cast<int>(std::lround(share))));
}

std::string timeline_of(const SharedOut& found, const QueueResult& queue, Duration until) {
    constexpr std::int64_t columns = 72;
    const Duration slice = (until - queue.begins) / columns + Duration(1);
    std::string text = fmt::format("{}, a column is {}\n", name_of(queue.policy), rough(slice));
    for (std::size_t j = 0; j < queue.jobs.size(); ++j) {
        std::string row;
        for (std::int64_t c = 0; c < columns; ++c) {
            const Duration from = queue.begins + c * slice;
            const bool there = found.cluster.jobs[j].arrives < from + slice && queue.jobs[j].ends > from;
            row += there ? eighths(gpus_between(queue, j, from, from + slice), found.cluster.gpus) : ' ';
        }
        text += fmt::format("{:<{}} |{}|\n", found.cluster.jobs[j].name, name_width(found), row);
    }
    return text;
}

// All nanoseconds.
std::string csv_seconds(Duration time) {
    return fmt::format("{}.{:09}", time.count() / 1'000'000'000, time.count() % 1'000'000'000);
}

}  // namespace

std::string queue_table(const SharedOut& found) {
    constexpr std::size_t most_rows = 40;
    std::string text =
        fmt::format("\nthe queue, {} for a restart: days from arrival, means over the jobs\n", rough(found.restart)) +
        policies_table(found) + columns_lines(found) + jobs_table(found);
    if (found.cluster.jobs.size() > most_rows) return text;
    text +=
        fmt::format("\nGPUs over time: eighths of {} that a job holds, + more than all, . none\n", found.cluster.gpus);
    Duration until{};
    for (const QueueResult& queue : found.queues) until = std::max(until, queue.ends);
    for (const QueueResult& queue : found.queues) text += timeline_of(found, queue, until);
    return text;
}

std::string shares_csv(const SharedOut& found) {
    std::string csv = "job,weight,tokens,gpus,tokens_per_s,completion_s,gpu_hours\n";
    for (std::size_t j = 0; j < found.cluster.jobs.size(); ++j) {
        const TrainingJob& job = found.cluster.jobs[j];
        csv += fmt::format("{},{},{},", csv_cell(job.name), weight_of(job), job.tokens);
        const auto share = share_of(found, j);
        csv += share ? fmt::format("{},{},{},{:.3f}\n", share->gpus, share->tokens_per_s, csv_seconds(share->time),
                                   share->gpu_hours)
                     : "0,,,\n";
    }
    return csv;
}

std::string queue_csv(const SharedOut& found) {
    std::string csv =
        "policy,job,weight,gpus_asked,arrives_s,starts_s,ends_s,queued_s,completion_s,"
        "weighted_completion_s,gpu_hours,stops,resizes\n";
    for (const QueueResult& queue : found.queues)
        for (std::size_t j = 0; j < queue.jobs.size(); ++j) {
            const TrainingJob& job = found.cluster.jobs[j];
            const QueuedJob& told = queue.jobs[j];
            const Duration completion = told.ends - job.arrives;
            csv += fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{},{}\n", name_of(queue.policy),
                               csv_cell(job.name), weight_of(job), job.asked, csv_seconds(job.arrives),
                               csv_seconds(told.starts), csv_seconds(told.ends), csv_seconds(told.queued),
                               csv_seconds(completion), weight_of(job) * static_cast<double>(completion.count()) * 1e-9,
                               gpu_hours(told.gpu_time), told.stops, told.resizes);
        }
    return csv;
}

}  // namespace pipeweaver::apps
