#include "bench/drawn_problem.hpp"

#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace pipeweaver::bench {

namespace {

constexpr std::array published{
    SetUp{"dip-vlm-s", "h100-sxm:16", "vlm-mix"}, SetUp{"dip-vlm-m", "h100-sxm:32", "vlm-mix"},
    SetUp{"dip-vlm-l", "h100-sxm:64", "vlm-mix"}, SetUp{"dip-t2v-s", "h100-sxm:16", "t2v-mix"},
    SetUp{"dip-t2v-l", "h100-sxm:64", "t2v-mix"}};

}  // namespace

void DrawnProblems::add_to(OptionTable& options) {
    std::vector<std::string> names;
    names.reserve(published.size());
    for (const SetUp& one : published) names.emplace_back(one.model);
    options.choice("model", model, names, "one of the set-ups (default: all five)");
    options.integer("batches", batches, 1, 10'000,
                    fmt::format("batches to draw for each, with the seeds 1, 2, ... (default {})", batches));
    options.integer("microbatches", microbatches, 1, 1'000'000, "microbatches of a batch (default 16)");
    planner::add_costs(options, costs_file);
}

std::vector<SetUp> DrawnProblems::set_ups() const {
    std::vector<SetUp> asked;
    for (const SetUp& one : published)
        if (model.empty() || model == one.model) asked.push_back(one);
    return asked;
}

planner::Cut published_step(const planner::Request& request) {
    const auto dip = partition::partitioner("dip").make(*request.job.setup, request.batch.microbatches, 0);
    return std::move(planner::steps_of(request.job, request.batch, dip, {0}, in_order).front());
}

schedule::Problem DrawnProblems::draw(const SetUp& set_up, std::uint64_t seed, const Executor& execute) const {
    planner::WorkloadOptions workload;
    workload.model = set_up.model;
    workload.cluster = set_up.cluster;
    workload.dataset = set_up.dataset;
    workload.microbatches = microbatches;
    workload.costs = costs_file;
    auto cut = published_step(workload.request(seed, execute));
    cut.step.problem.name = fmt::format("{}-{}", set_up.model, seed);
    return std::move(cut.step.problem);
}

}  // namespace pipeweaver::bench
