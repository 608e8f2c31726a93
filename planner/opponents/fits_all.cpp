// A recomputation that fits all replicas, of which a way was judged on some.
#include "pipeweaver/planner/opponents.hpp"
#include "planner/opponents/built_steps.hpp"
#include "planner/replicas/assignment.hpp"

#include <algorithm>
#include <optional>

namespace pipeweaver::planner {

namespace {

// A way on every replica, one after the other: the steps of all at once would not fit memory.
class EveryReplica {
public:
    EveryReplica(const OpponentWay& way, const Job& job, const Batch& batch, const Executor& execute)
        : way_(way), target_(target(job.target)), execute_(execute) {
        Job own = job;
        own.setup = way.setup;
        replicas_ = assign(own, job.in_layout(batch, way.setup->layout), execute).microbatches;
    }

    // What each takes by itself, the named one where that fits; nothing where one does not fit at all.
    std::vector<std::string> settings(const std::string& recompute) const {
        std::vector<std::string> of_each(replicas_.size());
        run_jobs(execute_, replicas_.size(),
                 [&](std::size_t r) { of_each[r] = steps(r).run(way_.policy, recompute).recompute; });
        std::vector<std::string> all;
        for (std::string& one : of_each) {
            if (one.empty()) return {};
            if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
        }
        return all;
    }

    // The slowest replica's step under each; none where one does not fit.
    std::vector<std::optional<Duration>> under(const std::vector<std::string>& settings) const {
        std::vector<std::optional<Duration>> of_each(replicas_.size() * settings.size());
        run_jobs(execute_, replicas_.size(), [&](std::size_t r) {
            const BuiltSteps mine = steps(r);
            for (std::size_t s = 0; s < settings.size(); ++s)
                if (const auto ran = mine.with_setting(way_.policy, settings[s]))
                    of_each[r * settings.size() + s] = ran->step;
        });
        std::vector<std::optional<Duration>> slowest(settings.size(), Duration{});
        for (std::size_t k = 0; k < of_each.size(); ++k) {
            auto& all = slowest[k % settings.size()];
            all = all && of_each[k] ? std::optional(std::max(*all, *of_each[k])) : std::nullopt;
        }
        return slowest;
    }

private:
    BuiltSteps steps(std::size_t replica) const { return {way_, {replicas_[replica]}, target_}; }

    const OpponentWay& way_;
    const Target& target_;
    const Executor& execute_;
    std::vector<Microbatches> replicas_;
};

}  // namespace

std::string recompute_that_fits(const OpponentWay& way, const std::string& recompute, const Job& job,
                                const Batch& batch, const Executor& execute) {
    const EveryReplica all(way, job, batch, execute);
    auto settings = all.settings(recompute);
    if (settings.empty()) return {};
    // One that each would take may still be too little for another, which would take another kind.
    std::string full = name_of(emulator::Recompute::full);
    if (std::find(settings.begin(), settings.end(), full) == settings.end()) settings.push_back(std::move(full));
    const auto steps = all.under(settings);
    std::optional<std::size_t> best;
    for (std::size_t s = 0; s < settings.size(); ++s)
        if (steps[s] && (!best || *steps[s] < *steps[*best])) best = s;
    return best ? settings[*best] : std::string();
}

}  // namespace pipeweaver::planner
