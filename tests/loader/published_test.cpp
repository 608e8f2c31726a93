// Published steps with other loaders: NVIDIA's sports-intelligence-playbooks (Apache-2.0), docs/latest/AVLM_clean.csv
// of September 2026. Nemotron-3-Nano-Omni on 8 H100 trains 128 packs of 21,504 tokens a step with NeMo AutoModel, whose
// step takes its packs before it begins.
#include "pipeweaver/loader/replay.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::loader;

namespace {

using namespace std::chrono_literals;

// Seconds of a step, the mean of ten.
constexpr double prefetched = 67.0, usual = 88.7, none = 208.0;
constexpr std::size_t gpus = 8, packs = 16, steps = 12;

// Calibrated once: GPUs train for the prefetched step, and a pack takes its share of what a step without workers adds.
std::vector<Replica> as_calibrated() {
    const Duration step{static_cast<std::int64_t>(prefetched * 1e9)};
    const Duration pack{static_cast<std::int64_t>((none - prefetched) / packs * 1e9)};
    Replica replica;
    replica.steps.assign(steps, StepTimes(packs, step / static_cast<std::int64_t>(packs)));
    replica.packs.assign(steps * packs, Pack{{{pack, true}}, {}, 1});
    return std::vector<Replica>(gpus, replica);
}

// Experts lie over all GPUs: these run their microbatches together.
double seconds(const Queue& queue) {
    const auto all = replay(queue, {.whole_step = true, .microbatches_together = true}, as_calibrated());
    return static_cast<double>((all.back().end - all.back().begin).count()) * 1e-9;
}

bool is_within(double found, double published) { return std::abs(found - published) <= 0.15 * published; }

}  // namespace

TEST_CASE("steps without a loader, with the usual one and with more ahead are as published") {
    // How many workers ran is not published: with four, PyTorch's two packs ahead of each leave half of the step's
    // packs to be made while its GPUs wait, and four packs ahead leave none.
    const double four_ahead = seconds({.workers = 4, .prefetch = 4}),
                 two_ahead = seconds({.workers = 4, .prefetch = 2});
    const double no_worker = seconds({.workers = 0});
    CHECK(is_within(four_ahead, prefetched));
    CHECK(is_within(two_ahead, usual));
    CHECK(is_within(no_worker, none));
    CHECK(is_within(two_ahead / four_ahead, usual / prefetched));
    CHECK(is_within(no_worker / four_ahead, none / prefetched));
    // By hand: 8 of 16 packs in two rounds of (208.0 - 67.0) / 16.
    CHECK(two_ahead == doctest::Approx(67.0 + 2 * 141.0 / 16).epsilon(1e-6));
}

TEST_CASE("other numbers of workers do not explain what was published") {
    for (const std::int64_t workers : {1, 2, 3, 8}) {
        CAPTURE(workers);
        const bool fits = is_within(seconds({.workers = workers, .prefetch = 2}), usual) &&
                          is_within(seconds({.workers = workers, .prefetch = 4}), prefetched);
        CHECK(!fits);
    }
}
