// A batch's steps as an opponent cuts them, built with every recomputation: any policy can be run on them.
#pragma once

#include "pipeweaver/planner/opponents.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/schedule/recompute_settings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// The slowest of some replicas as a way runs them.
struct Ran {
    std::string recompute;
    Duration makespan{}, step{};
    std::string why_not;  ///< not empty: it does not run
};

class BuiltSteps {
public:
    /// As `target` would run the way, if it launches it. `replicas`: the microbatches of each.
    BuiltSteps(const OpponentWay& way, const std::vector<Microbatches>& replicas, const Target& target);

    /// A replica with the recomputation of that name; without one, or where it does not fit, with the fastest that
    /// does. None, and why, where nothing fits or the policy does not apply.
    std::optional<SettingRun> scheduled(std::size_t replica, std::string_view policy, const std::string& recompute,
                                        std::string& why_not) const;

    /// The slowest replica, all of them with one recomputation: the one that is named, or where it does not fit all, of
    /// those that are fastest for one of them the fastest that does.
    Ran run(std::string_view policy, const std::string& recompute) const;

    /// The slowest replica under one recomputation, without what reductions in buckets add. None: it does not fit one.
    std::optional<Ran> with_setting(std::string_view policy, const std::string& setting) const;

    Step take(std::size_t replica) { return std::move(known_[replica]); }

private:
    Ran in_full(std::string_view policy, const Ran& chosen) const;

    const Target* target_;
    std::vector<emulator::Recompute> settings_;
    std::vector<Step> known_;
};

}  // namespace pipeweaver::planner
