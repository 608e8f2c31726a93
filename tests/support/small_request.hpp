// A plan of the small model, small enough for a test.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "tests/support/small_model.hpp"

#include <string>
#include <vector>

namespace pipeweaver::testing {

/// On `dp` replicas of 4 ranks of 2 GPUs; a sample a microbatch, with so many images each.
inline planner::Request small_request(std::int64_t dp = 1, const std::vector<int>& images = {5, 0, 2, 9, 1, 4, 0, 7}) {
    planner::Request request;
    request.model = small_model();
    request.cluster = small_cluster(8 * dp);
    request.layout = {.tp = 2, .pp = 4, .dp = dp};
    request.microbatches = small_batch(images);
    for (std::size_t i = 0; i < request.microbatches.size(); ++i) {
        workloads::Sample sample;
        sample.id = "s" + std::to_string(i);
        sample.text_tokens = 1024;
        request.samples.push_back(sample);
    }
    request.max_rounds = 5;
    return request;
}

}  // namespace pipeweaver::testing
