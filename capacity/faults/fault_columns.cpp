// How many GPUs a job takes, and what a table of capacity says of faults.
#include "pipeweaver/capacity/faults.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

constexpr double usual_confidence = 0.99;

}  // namespace

std::optional<std::int64_t> gpus_for_job(FaultCase asked, std::int64_t job_gpus, double confidence) {
    const bool ring = asked.network.kind == workloads::NetworkKind::ring;
    const std::int64_t unit = ring ? asked.network.node : asked.network.domain, most = FaultCase::most_gpus / unit;
    const std::int64_t groups = (job_gpus + asked.tp - 1) / asked.tp;
    bool known = true;
    const auto is_enough = [&](std::int64_t units) {
        asked.gpus = units * unit;
        const auto counts = usable_groups(asked);
        known = known && counts.has_value();
        return counts && counts->at(confidence) >= groups;
    };
    // Fewer units do not have as many GPUs, whatever is faulty.
    std::int64_t fewer = (groups * asked.tp + unit - 1) / unit - 1, enough = fewer + 1;
    for (std::int64_t more = 1; enough <= most && !is_enough(enough) && known; more *= 2) {
        fewer = enough;
        enough += more;
    }
    if (enough > most || !known) return {};
    while (enough - fewer > 1) {
        const std::int64_t middle = fewer + (enough - fewer) / 2;
        (is_enough(middle) ? enough : fewer) = middle;
    }
    return enough * unit;
}

FaultColumns fault_columns(const FaultCase& asked) {
    FaultColumns columns;
    const auto counts = usable_groups(asked);
    const auto tp = static_cast<double>(asked.tp), gpus = static_cast<double>(asked.gpus);
    if (counts) {
        columns.usable_gpus = tp * counts->mean();
        columns.job_gpus = asked.tp * counts->at(usual_confidence);
    } else {
        const auto tried = try_faults(asked, 10'000, 1);
        columns.usable_gpus = tried.usable.mean;
        columns.job_gpus = tried.at(usual_confidence);
    }
    columns.wasted_share = std::max(0., 1 - asked.faulty - columns.usable_gpus / gpus);
    if (const auto buy = gpus_for_job(asked, asked.gpus, usual_confidence)) columns.spares = *buy - asked.gpus;
    columns.usd_per_gpu = asked.network.usd_per_gpu;
    if (columns.usd_per_gpu && columns.usable_gpus > 0)
        columns.usd_of_a_usable = *columns.usd_per_gpu * gpus / columns.usable_gpus;
    return columns;
}

}  // namespace pipeweaver::capacity
