#include "pipeweaver/planner/fitting_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pipeweaver::planner {

namespace {

constexpr int most_zero = 3;

Bytes fullest(const Emulation& emulation) {
    Bytes most{};
    for (const emulator::ReplicaEmulation& replica : emulation.replicas)
        for (const emulator::RankMemory& rank : replica.memory) most = std::max(most, rank.peak);
    return most;
}

class Changes {
public:
    Changes(const EmulateOptions& options, const EmulationRequest& request, std::uint64_t seed, const Executor& execute)
        : options_(options),
          layout_(request.job.setup->layout),
          zero_(request.job.setup->recipe.zero),
          seed_(seed),
          execute_(execute) {}

    std::vector<FittingChange> all() {
        add_zero({}, options_);
        const bool recomputes_less = options_.recompute && *options_.recompute != fully();
        if (recomputes_less) {
            EmulateOptions changed = options_;
            changed.recompute = fully();
            const std::string say = "--recompute full";
            if (!add(say, changed) && found_.empty()) add_zero(say + " ", changed);
        }
        add_wider("--tp", layout_.tp, &WorkloadOptions::tp);
        add_wider("--pp", layout_.pp, &WorkloadOptions::pp);
        return std::move(found_);
    }

private:
    static StepRecompute fully() { return {.everywhere = emulator::Recompute::full}; }

    bool add(const std::string& say, const EmulateOptions& changed) {
        const MadeRequest made = changed.try_request(seed_, execute_);
        if (!made.request) return false;
        const MadeEmulation run = try_emulate(*made.request, execute_);
        if (run.emulation) found_.push_back({say, fullest(*run.emulation)});
        return run.emulation.has_value();
    }

    // Copies of the weights share out what the stage says.
    void add_zero(const std::string& before, const EmulateOptions& options) {
        if (layout_.weight_copies() == 1) return;
        for (int zero = zero_ + 1; zero <= most_zero; ++zero) {
            EmulateOptions changed = options;
            changed.workload.overrides.zero = zero;
            if (add(fmt::format("{}--zero {}", before, zero), changed)) return;
        }
    }

    // On the same GPUs, for the same batch.
    void add_wider(std::string_view option, std::int64_t degree, Degree WorkloadOptions::*member) {
        const bool same_batch = !options_.workload.batch.empty() || options_.workload.global_batch;
        if (!same_batch || layout_.dp % 2 != 0) return;
        EmulateOptions changed = options_;
        changed.workload.*member = {2 * degree, false};
        changed.workload.dp = {layout_.dp / 2, false};
        add(fmt::format("{} {} --dp {}", option, 2 * degree, layout_.dp / 2), changed);
    }

    const EmulateOptions& options_;
    const emulator::Layout& layout_;
    int zero_;
    std::uint64_t seed_;
    const Executor& execute_;
    std::vector<FittingChange> found_;
};

}  // namespace

std::vector<FittingChange> fitting_changes(const EmulateOptions& options, const EmulationRequest& request,
                                           std::uint64_t seed, const Executor& execute) {
    return Changes(options, request, seed, execute).all();
}

}  // namespace pipeweaver::planner
