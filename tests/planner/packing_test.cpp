// What a packing's promises are worth: steps, emulated as engineers run them.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

using workloads::Packing;

EmulationRequest on_first_stage(const std::string& model, const emulator::Layout& layout) {
    EmulationRequest request;
    request.job.setup = std::make_shared<emulator::Setup>(emulator::Setup{
        workloads::find_model(model), workloads::find_cluster("h100-sxm:" + std::to_string(layout.gpus())), layout,
        testing::small_costs()});
    request.job.partition = "first-stage";
    request.policy = "1f1b";
    return request;
}

Duration step_of(EmulationRequest request, Packing packing, const std::vector<workloads::Sample>& samples) {
    request.job.packing = packing;
    request.batch = request.job.batch("batch", samples);
    return emulate(request, in_order).step;
}

}  // namespace

TEST_CASE("balanced packing takes the same step for the same samples in any order, and the shorter one") {
    const std::uint64_t batches = testing::full_or_short<std::uint64_t>(20, 2);
    const int orders = testing::full_or_short(3, 1);
    for (const char* model : {"dip-vlm-m", "qwen2.5-vl-32b"}) {
        CAPTURE(model);
        const EmulationRequest request = on_first_stage(model, {.tp = 8, .pp = 4, .dp = 1});
        Duration given{}, balanced{};
        for (std::uint64_t seed = 1; seed <= batches; ++seed) {
            CAPTURE(seed);
            auto samples = workloads::draw_batch("vlm-mix", request.job.setup->model, seed, 16).samples;
            const Duration step = step_of(request, Packing::balanced, samples);
            given += step_of(request, Packing::given, samples);
            balanced += step;
            Random random(seed);
            for (int order = 0; order < orders; ++order) {
                for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
                CHECK(step_of(request, Packing::balanced, samples) == step);
            }
        }
        CHECK(balanced < given);
    }
}

TEST_CASE("every sample of a batch is in it or is left for a later step") {
    Job job = on_first_stage("dip-vlm-m", {.tp = 8, .pp = 4, .dp = 1}).job;
    workloads::Sample small{"small", 1000, 1000, {}, 0};
    small.items.assign(2, {.tokens = 169, .patches = 2704});
    std::vector<workloads::Sample> samples(100, small);
    samples.push_back(small);
    samples.back().id = "large";
    samples.back().text_tokens = samples.back().loss_tokens = 100;
    samples.back().items.resize(40, small.items.front());
    CHECK(job.batch("batch", samples).deferred.empty());
    job.defer = 3;
    const Batch batch = job.batch("batch", samples);
    CHECK(batch.samples == std::vector(100, small));
    REQUIRE(batch.deferred.size() == 1);
    CHECK(batch.deferred.front().id == "large");
}
