// The batch file of a step: all its samples, or so many of them as a seed draws.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <fmt/format.h>

#include <utility>

namespace pipeweaver::planner {

namespace {

// So many of the samples, in an order that the seed decides (Fisher and Yates, as far as they go). Pre: there are as
// many.
std::vector<workloads::Sample> draw_of(std::vector<workloads::Sample> samples, std::size_t count, std::uint64_t seed) {
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t other = i + static_cast<std::size_t>(random.below(samples.size() - i));
        if (other != i) std::swap(samples[i], samples[other]);
    }
    samples.resize(count);
    return samples;
}

}  // namespace

Batch WorkloadOptions::read(const workloads::Model& of, std::uint64_t seed) const {
    Batch read;
    read.name = batch;
    auto samples = batch_text ? workloads::parse_batch(batch, *batch_text, of) : workloads::read_batch(batch, of);
    const std::size_t all = samples.size();
    const std::size_t wanted = global_batch ? static_cast<std::size_t>(global_batch->number) : all;
    if (wanted > all)
        fail(ErrorKind::input, "--global-batch: is {}, but {} has {} samples: allowed are at most as many", wanted,
             batch, all);
    if (wanted < all) {
        samples = draw_of(std::move(samples), wanted, seed);
        read.name = fmt::format("{} of the {} samples of {}, seed {}", wanted, all, batch, seed);
    }
    auto kept = workloads::without_too_long(std::move(samples), of);
    read.samples = std::move(kept.samples);
    read.dropped = std::move(kept.dropped);
    return read;
}

// A data set that is taken for a step would be planned as one.
void WorkloadOptions::require_one_step(const Batch& given, std::int64_t replicas) const {
    const std::size_t of_replica = given.microbatches.size() / static_cast<std::size_t>(replicas);
    const bool is_step = given.samples.size() <= sizes.samples_of_step || of_replica <= sizes.microbatches_of_step;
    if (global_batch || batch_text || is_step) return;
    fail(
        ErrorKind::input,
        "--batch: {} has {} samples, {} microbatches of each replica, which is much for one step: add --global-batch N "
        "to draw steps of N samples from it, or --global-batch {} if all of them are one",
        batch, given.samples.size(), of_replica, given.samples.size());
}

}  // namespace pipeweaver::planner
