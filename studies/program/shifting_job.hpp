// A job whose batches have more or fewer images: how they are drawn, and how each is planned on a partition that stays.
//
// Batches      Samples of the data set are drawn with weights exp(t * s), where s is the share of a sample's tokens
//              that items have; t is such that the microbatches of the batch have as many items as wanted, on average.
//              t = 0 is the data set itself, a large t leaves captions of single images, a small one leaves text.
// Determinism  All is a function of options, seeds and, of plans, limits in rounds.
#pragma once

#include "apps/console.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/static_order.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::studies {

/// A model with the cluster that it is planned for by default.
struct ShiftingSetUp {
    const char *model, *cluster;
};

/// dip-vlm-s, dip-vlm-m and dip-vlm-l.
[[nodiscard]] const std::vector<ShiftingSetUp>& shifting_set_ups();

class ShiftingJob {
public:
    /// Empty `cluster` or `dataset`: the set-up's, vlm-mix. Throws Error{input} for a data set without items, or where
    /// replicas are several.
    ShiftingJob(const ShiftingSetUp& set_up, const std::string& cluster, const std::string& dataset,
                const std::string& costs, std::int64_t microbatches, const apps::Limits& limits);

    /// The batch of that seed, its microbatches with so many items on average.
    [[nodiscard]] planner::Request batch(std::uint64_t seed, double items) const;

    /// The items of a microbatch, on average.
    [[nodiscard]] static double items(const planner::Request& batch);

    /// The batch with `sample` as what partitions, opponents and orders are chosen on.
    [[nodiscard]] planner::Request on_sample(const std::vector<planner::Request>& sample, const std::string& name,
                                             std::uint64_t first_seed) const;

    /// The step of a batch as it is planned on the partition; none: it does not fit. Its schedules are checked by a
    /// replay that shares no code with the search: throws Error{limit} where one is wrong.
    [[nodiscard]] std::optional<Duration> planned(planner::Request batch, const partition::Partition& partition,
                                                  const apps::Console& console,
                                                  const std::vector<const planner::StaticOrder*>& orders = {}) const;

    const std::string& cluster() const { return cluster_; }
    const apps::Limits& limits() const { return limits_; }

private:
    workloads::DrawnBatch drawn(std::uint64_t seed, double tilt) const;

    std::string cluster_, dataset_;
    std::int64_t microbatches_;
    const apps::Limits& limits_;
    planner::Request base_;  ///< its own batch does not count
    std::vector<workloads::Sample> pool_;
    std::vector<double> shares_;  ///< of the pool's samples
};

}  // namespace pipeweaver::studies
