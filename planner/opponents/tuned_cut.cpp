#include "planner/opponents/tuned_cut.hpp"

#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/partition/tune.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/job/sample.hpp"
#include "planner/way/run.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// The best of the job's own layout that its target launches as one chain, each of another cut.
std::vector<OpponentWay> best_chains(const Opponents& opponents, const Job& job) {
    std::vector<OpponentWay> best;
    for (const OpponentWay& way : launched_here(opponents, job).ways) {
        if (best.size() == sizes.cuts_tuned) break;
        const Partition& cut = way.partition;
        const bool is_chain =
            way.has_pipeline && way.layers.empty() && phase_modules(cut).empty() && cut.chains.size() == 1;
        const bool is_known =
            std::any_of(best.begin(), best.end(), [&](const OpponentWay& other) { return other.cut == way.cut; });
        if (is_chain && !is_known) best.push_back(way);
    }
    return best;
}

// How many microbatches tell cuts apart: whole groups of one for each rank, where there are as many.
std::size_t tuned_on(std::size_t microbatches, const Layout& layout) {
    const std::size_t some = std::min(microbatches, sizes.candidate_microbatches);
    const auto ranks = static_cast<std::size_t>(layout.pp);
    return some == microbatches || some < ranks ? some : some - some % ranks;
}

OpponentWay with_cut(const OpponentWay& way, Partition cut) {
    OpponentWay tuned = way;
    tuned.name = way.partition.name + " tuned";
    tuned.layers = partition::text_of(partition::said_layers(way.setup->model, cut));
    tuned.partition = std::move(cut);
    return tuned;
}

}  // namespace

bool add_tuned(Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute, const Time& time) {
    const auto batches = batches_of(job, batch);
    std::vector<Microbatches> few(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                         batches.size(), sizes.batches_tuned_on)));
    for (Microbatches& one : few) one.resize(tuned_on(one.size(), job.setup->layout));
    const Target& runs = target(job.target);
    for (const OpponentWay& way : best_chains(opponents, job)) {
        if (time.is_over()) return false;
        const partition::Tuning tuning{.step_of = [&](const Partition& cut) -> std::optional<Duration> {
                                           const OpponentWay tried = with_cut(way, cut);
                                           if (!launches(runs, tried)) return std::nullopt;
                                           const WayResult ran = BuiltWay(tried, few, runs).run(way.policy, {});
                                           return ran.runs() ? std::optional(ran.step) : std::nullopt;
                                       },
                                       .most_steps = sizes.steps_tuned,
                                       .is_over = [&] { return time.is_over(); }};
        auto found = partition::tune(*job.setup, way.partition, tuning, execute);
        if (!found) continue;
        OpponentWay tuned = with_cut(way, std::move(found->partition));
        // With one recomputation for the whole sample.
        const WayResult ran = BuiltWay(tuned, batches, runs).run(way.policy, {});
        if (!ran.runs()) continue;
        tuned.recompute = ran.recompute;
        tuned.cut = opponents.ways.size() + opponents.not_applicable.size();  // a number of its own
        opponents.ways.push_back(std::move(tuned));
    }
    return !time.is_over();
}

}  // namespace pipeweaver::planner
