// What an engine could answer for the small model: figures by hand, the same for every rank but for what tests look at.
#pragma once

#include "pipeweaver/planner/emulate.hpp"
#include "tests/support/small_request.hpp"

namespace pipeweaver::testing {

inline emulator::RankTime small_rank_time() {
    using namespace std::chrono_literals;
    emulator::RankTime time;
    time.compute = 600us;
    time.exposed[static_cast<std::size_t>(emulator::Stream::tensor)] = 100us;
    time.bubble = 200us;
    time.gradients = 60us;
    time.optimizer = 40us;
    return time;
}

inline emulator::RankMemory small_rank_memory() {
    emulator::RankMemory memory;
    memory.fixed = {4_GiB, 8_GiB, 24_GiB, 1_GiB, 1_GiB};
    memory.activations = 10_GiB;
    memory.transient = 2_GiB;
    memory.peak = 50_GiB;
    memory.timeline = {{Duration{0}, 38_GiB}, {Duration{1000}, 50_GiB}, {Duration{900'000}, 38_GiB}};
    return memory;
}

/// A step of 1 ms of which 40 us are the optimizer's.
inline emulator::ReplicaEmulation small_replica(std::size_t ranks) {
    using namespace std::chrono_literals;
    emulator::ReplicaEmulation replica;
    replica.makespan = 960us;
    replica.step = 1000us;
    replica.time.assign(ranks, small_rank_time());
    replica.memory.assign(ranks, small_rank_memory());
    replica.critical = {{"gemm", "llm", 700us}, {"transfer", "", 260us}, {"optimizer", "", 40us}};
    replica.kernels = 1000;
    return replica;
}

struct SmallEmulation {
    explicit SmallEmulation(std::int64_t dp = 1, std::int64_t pp = 4) {
        planner::Request small = small_request(dp);
        request.job = std::move(small.job);
        request.batch = std::move(small.batch);
        change_setup([&](emulator::Setup& setup) {
            setup.layout.pp = pp;
            setup.cluster.gpus = 2 * pp * dp;
        });
        request.batch.name = "by hand";
        emulation.partition.name = "megatron";
        emulation.partition.chains = {{"vit+llm", {{RankId{0}, {{0, 0, 6}, {1, 0, 2}}}, {RankId{1}, {{1, 2, 6}}}}}};
        emulation.partition.unit_items = {0};
        emulation.policy = "1f1b";
        emulation.recompute = planner::no_recompute;
        emulation.replicas.assign(static_cast<std::size_t>(dp), small_replica(static_cast<std::size_t>(pp)));
        emulation.makespan = emulation.replicas.front().makespan;
        emulation.step = emulation.replicas.front().step;
        emulation.model_flops = 4e12;
        emulation.mfu = 0.5;
        emulation.tokens = 9984;
        emulation.tokens_per_second = 9.984e6;
        emulation.shares.by[0][0] = 0.75;
        emulation.shares.by[2][3] = 0.25;
        emulation.kernels = 1000 * static_cast<std::uint64_t>(dp);
    }

    template <class Change>
    void change_setup(const Change& change) {
        testing::change_setup(request, change);
    }

    planner::EmulationRequest request;
    planner::Emulation emulation;
};

}  // namespace pipeweaver::testing
