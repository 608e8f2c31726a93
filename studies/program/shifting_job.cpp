#include "studies/program/shifting_job.hpp"

#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

constexpr std::uint64_t pool_seed = 1, pool_size = 4096;
constexpr double most_tilt = 30;
constexpr int tilt_halvings = 40;

double share_of_items(const workloads::Sample& sample) {
    std::int64_t tokens = 0;
    for (const auto& item : sample.items) tokens += item.tokens;
    return static_cast<double>(tokens) / static_cast<double>(sample.tokens());
}

double items_each(const std::vector<workloads::Microbatch>& microbatches) {
    std::size_t items = 0;
    for (const auto& microbatch : microbatches) items += microbatch.items.size();
    return static_cast<double>(items) / static_cast<double>(microbatches.size());
}

}  // namespace

const std::vector<ShiftingSetUp>& shifting_set_ups() {
    static const std::vector<ShiftingSetUp> all{
        {"dip-vlm-s", "h800-sxm:16"}, {"dip-vlm-m", "h100-sxm:32"}, {"dip-vlm-l", "h100-sxm:64"}};
    return all;
}

ShiftingJob::ShiftingJob(const ShiftingSetUp& set_up, const std::string& cluster, const std::string& dataset,
                         const std::string& costs, std::int64_t microbatches, const Limits& limits)
    : cluster_(cluster.empty() ? set_up.cluster : cluster),
      dataset_(dataset.empty() ? "vlm-mix" : dataset),
      microbatches_(microbatches),
      limits_(limits) {
    planner::WorkloadOptions workload;
    workload.model = set_up.model;
    workload.cluster = cluster_;
    workload.dataset = dataset_;
    workload.microbatches = microbatches;
    workload.costs = costs;
    base_ = workload.request(1, limits.executor());
    if (base_.job.setup->layout.dp != 1)
        fail(ErrorKind::input, "--cluster: {} has GPUs for {} replicas of {}, allowed is one", cluster_,
             base_.job.setup->layout.dp, set_up.model);
    base_.job.max_rounds = limits.rounds();
    base_.job.words.reset();  // no options draw these batches
    for (std::uint64_t number = 0; number < pool_size; ++number) {
        auto sample = workloads::draw(dataset_, base_.job.setup->model, pool_seed, number);
        if (sample.tokens() == 0) continue;
        shares_.push_back(share_of_items(sample));
        pool_.push_back(std::move(sample));
    }
    const auto [least, most] = std::minmax_element(shares_.begin(), shares_.end());
    if (shares_.empty() || *least == *most)
        fail(ErrorKind::input,
             "--dataset: in all samples of {} items have the same share; allowed is one in which "
             "they differ, such as vlm-mix",
             dataset_);
}

double ShiftingJob::items(const planner::Request& batch) { return items_each(batch.batch.microbatches); }

workloads::DrawnBatch ShiftingJob::drawn(std::uint64_t seed, double tilt) const {
    std::vector<double> up_to;
    double sum = 0;
    for (const double share : shares_) up_to.push_back(sum += std::exp(tilt * (share - 0.5)));
    Random random(seed, 0x77617665);  // a stream of its own
    const auto wanted = static_cast<std::size_t>(microbatches_);
    workloads::DrawnBatch batch;
    while (batch.microbatches.size() <= wanted) {
        for (std::size_t more = 8 * wanted; more > 0; --more) {
            const auto at = std::upper_bound(up_to.begin(), up_to.end() - 1, random.uniform() * sum);
            batch.samples.push_back(pool_[static_cast<std::size_t>(at - up_to.begin())]);
            batch.samples.back().id = fmt::format("{}-{}", seed, batch.samples.size());
        }
        batch.microbatches = workloads::pack(batch.samples, base_.job.setup->model);
    }
    batch.microbatches.resize(wanted);
    batch.samples.resize(batch.microbatches.back().samples.back() + 1);
    return batch;
}

// More of a sample with images is more images: half the interval of tilts, again and again.
planner::Request ShiftingJob::batch(std::uint64_t seed, double wanted) const {
    double low = -most_tilt, high = most_tilt;
    workloads::DrawnBatch nearest;
    double off = 0;
    for (int halving = 0; halving < tilt_halvings; ++halving) {
        const double tilt = (low + high) / 2;
        auto tried = drawn(seed, tilt);
        const double has = items_each(tried.microbatches);
        if (nearest.samples.empty() || std::abs(has - wanted) < off) {
            off = std::abs(has - wanted);
            nearest = std::move(tried);
        }
        (has < wanted ? low : high) = tilt;
    }
    planner::Request request = base_;
    request.job.seed = seed;
    request.batch.samples = std::move(nearest.samples);
    request.batch.microbatches = std::move(nearest.microbatches);
    request.batch.name = fmt::format("{} with {:g} items a microbatch (seed {})", dataset_, wanted, seed);
    return request;
}

planner::Request ShiftingJob::on_sample(const std::vector<planner::Request>& sample, const std::string& name,
                                        std::uint64_t first_seed) const {
    planner::Request request = sample.front();
    request.job.sample.name = {fmt::format("{}, {}", dataset_, name), {}, microbatches_, {}};
    request.job.sample.batches.clear();
    for (std::size_t i = 0; i < sample.size(); ++i) {
        request.job.sample.name.seeds.push_back(first_seed + i);
        request.job.sample.batches.push_back(sample[i].batch.microbatches);
    }
    return request;
}

std::optional<Duration> ShiftingJob::planned(planner::Request batch, const partition::Partition& partition,
                                             const Console& console,
                                             const std::vector<const planner::StaticOrder*>& orders) const {
    batch.job.fixed = partition::PartitionFile{partition, {}};
    std::optional<planner::Plan> plan;
    try {
        plan = planner::make_plan(batch.job, batch.batch, limits_.executor(), limits_.begin(console),
                                  {.targets = false, .robustness = false, .opponents = false, .orders = orders});
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        console.say(fmt::format("{}: {}", batch.batch.name, error.what()));
        return std::nullopt;
    }
    for (const auto& replica : plan->replicas)
        require_right(replica.cut.step.problem, "the plan", *replica.found.schedule, replica.found.replay.makespan);
    return plan->step;
}

}  // namespace pipeweaver::studies
