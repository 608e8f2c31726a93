// What stages of some modules take and hold in a layout, microbatch by microbatch.
#pragma once

#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipeweaver::groups {

inline constexpr std::size_t mode_count = 3;

/// A group's GPUs: pipeline ranks of tp * cp GPUs, in so many replicas, which share out what `zero` says.
struct Degrees {
    std::int64_t tp = 1, pp = 1, dp = 1, cp = 1;
    int zero = 1;  ///< 0 or 1

    std::int64_t gpus() const { return tp * cp * pp * dp; }
    friend auto operator<=>(const Degrees&, const Degrees&) = default;
};

/// What a replica passes at once: a part of 1 / copies of a microbatch's items, or those of `joined` microbatches.
struct Portion {
    std::int64_t copies = 1, joined = 1;

    friend auto operator<=>(const Portion&, const Portion&) = default;
};

/// A stage's passes through the priced microbatches, in one mode.
struct StagePasses {
    std::vector<Duration> forward, backward;  ///< per priced microbatch
    Bytes held{}, transient{};                ///< of the largest
};

/// What does not depend on microbatches, per rank.
struct Fixed {
    std::vector<Bytes> base;                      ///< held all the time
    std::vector<emulator::StaticMemory> at_rest;  ///< of which it consists
    Duration tail{}, hop{};
    bool fits = true;  ///< the optimizer's update

    /// What that holds at most.
    Bytes update() const;
};

/// What a stage's passes are made of, of one microbatch.
struct StageCost {
    emulator::PassCost forward, backward;  ///< with what the backward computes again
    emulator::ModuleMix mix;
};

/// Modules lie as their group says, not as a framework lays encoders beside a language model.
[[nodiscard]] emulator::Setup on_their_own(const emulator::Setup& setup);

class Prices {
public:
    /// Of chains of these layers. `priced`: not empty, the largest last. Both must outlive it. `capacity`: of a GPU, in
    /// place of the device's.
    Prices(const emulator::Setup& setup, const std::vector<workloads::Microbatch>& priced,
           std::optional<Bytes> capacity = {});

    /// Stage by stage, then mode by mode. Of joined microbatches as many like the priced one.
    const std::vector<std::array<StagePasses, mode_count>>& passes(const emulator::Chain& chain, const Degrees& degrees,
                                                                   const Portion& portion);
    Fixed fixed(const emulator::Chain& chain, const Degrees& degrees, const Portion& portion);

    /// Per stage, of the microbatch that has most there. `mode`: an index into modes().
    std::vector<StageCost> costs(const emulator::Chain& chain, const Degrees& degrees, const Portion& portion,
                                 std::uint32_t mode);

    /// Whether all modules of the chain take items, which pass together whichever microbatches they are of.
    bool takes_items(const emulator::Chain& chain) const;

    static const std::array<emulator::Recompute, mode_count>& modes();

    /// In a module, of the priced microbatch that has most there.
    std::int64_t most_positions(std::size_t module) const;

    /// Usable bytes of a GPU.
    Bytes capacity() const { return capacity_.value_or(emulator::capacity_of(setup_)); }

    /// Until a message of each GPU has arrived in another group.
    Duration bridge(Bytes message) const;

    /// The request's setup in that layout; those of equal tp, cp and ZeRO stage share the costs of layers.
    emulator::Setup setup_in(const Degrees& degrees);

private:
    const workloads::Microbatch& largest_for(const emulator::Chain& chain) const;
    emulator::StepProblem built(const emulator::Setup& setup, const emulator::Chain& chain,
                                const std::vector<workloads::Microbatch>& microbatches, const Portion& portion) const;

    const emulator::Setup& setup_;
    const std::vector<workloads::Microbatch>& priced_;
    std::optional<Bytes> capacity_;
    std::vector<std::vector<std::int64_t>> positions_;  // per module, of each priced microbatch
    std::map<std::tuple<std::int64_t, std::int64_t, int>, std::shared_ptr<emulator::LayerStore>> stores_;
    std::map<std::tuple<std::string, Degrees, Portion>, std::vector<std::array<StagePasses, mode_count>>> passes_;
};

}  // namespace pipeweaver::groups
