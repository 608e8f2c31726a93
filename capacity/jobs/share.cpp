#include "pipeweaver/capacity/share.hpp"

#include "capacity/jobs/knapsack.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

bool Shares::all_run() const {
    return std::all_of(speed_of.begin(), speed_of.end(), [](const auto& one) { return one.has_value(); });
}

Shares share_out(const SharedCluster& cluster) {
    std::vector<KnapsackItem> items;
    items.reserve(cluster.jobs.size());
    Wide most = 1;  // more than all jobs that run can cost
    for (const TrainingJob& job : cluster.jobs) {
        KnapsackItem item;
        Wide largest = 0;
        for (const Speed& speed : job.speeds) {
            if (speed.gpus > cluster.gpus) break;
            const Wide time = time_for(work_of(job), speed.tokens_per_ks).count();
            item.push_back({speed.gpus, job.weight_thousandths * time});
            largest = std::max(largest, item.back().cost);
        }
        most += largest;
        items.push_back(std::move(item));
    }
    for (std::size_t j = 0; j < items.size(); ++j) items[j].push_back({0, cluster.jobs[j].weight_thousandths * most});

    const auto chosen = least_cost(items, cluster.gpus);
    PIPEWEAVER_ASSERT(chosen.has_value());  // all may wait
    Shares shares;
    shares.speed_of.resize(items.size());
    for (std::size_t j = 0; j < items.size(); ++j) {
        shares.smallest_gpus += cluster.jobs[j].speeds.front().gpus;
        const KnapsackOption& option = items[j][(*chosen)[j]];
        if (option.gpus == 0) continue;
        shares.speed_of[j] = (*chosen)[j];
        shares.gpus += option.gpus;
        shares.weighted += option.cost;
    }
    return shares;
}

}  // namespace pipeweaver::capacity
