// Small clusters with jobs drawn by number, for comparisons with slow, obvious code.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/capacity/jobs.hpp"

#include <algorithm>
#include <string>

namespace pipeweaver::testing {

struct Drawn {
    std::size_t jobs = 5;
    bool arrive_later = true;
    bool with_loans = false;
    std::int64_t most_gpus = 16;
};

/// A job whose GPU counts are few, with speeds that grow less than they do.
inline capacity::TrainingJob drawn_job(Random& random, std::int64_t cluster_gpus, const Drawn& drawn,
                                       std::size_t number) {
    capacity::TrainingJob job;
    job.name = "job" + std::to_string(number);
    job.weight_thousandths = static_cast<std::int64_t>(500 * (1 + random.below(8)));
    job.tokens = static_cast<std::int64_t>(1 + random.below(400'000'000));
    if (drawn.arrive_later) job.arrives = std::chrono::minutes(random.below(3000));
    std::int64_t gpus = static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(cluster_gpus)));
    double tokens_per_ks = static_cast<double>(2'000'000 + random.below(5'000'000));
    for (std::size_t n = 1 + random.below(4); n > 0 && gpus <= drawn.most_gpus; --n) {
        job.speeds.push_back({gpus, static_cast<std::int64_t>(tokens_per_ks)});
        if (gpus <= cluster_gpus && (job.asked == 0 || random.below(2) == 0)) job.asked = gpus;
        const auto more = static_cast<std::int64_t>(1 + random.below(4));
        tokens_per_ks *= 1 + random.uniform() * static_cast<double>(more) / static_cast<double>(gpus);
        gpus += more;
    }
    return job;
}

inline capacity::SharedCluster drawn_cluster(std::uint64_t number, const Drawn& drawn) {
    Random random(17, number);
    capacity::SharedCluster cluster;
    cluster.gpus = static_cast<std::int64_t>(3 + random.below(static_cast<std::uint64_t>(drawn.most_gpus - 3)));
    if (drawn.with_loans) {
        const Duration from = std::chrono::minutes(random.below(1440));
        const auto gpus = static_cast<std::int64_t>(1 + random.below(6));
        cluster.loans.push_back({from, from + std::chrono::minutes(30 + random.below(1000)), gpus});
    }
    for (std::size_t j = 0; j < drawn.jobs; ++j) cluster.jobs.push_back(drawn_job(random, cluster.gpus, drawn, j));
    return cluster;
}

}  // namespace pipeweaver::testing
