// How a rung is launched: all that files for its runtime are made of.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/job.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct LaunchedWay {
    std::shared_ptr<const emulator::Setup> setup;  ///< its own layout and ZeRO stage; shared with the ways
    bool has_pipeline = true;
    partition::Partition partition;
    std::string policy;
    std::string recompute;                       ///< name of what every stage recomputes, or "by-rank"
    std::vector<emulator::Recompute> by_rank{};  ///< of the ranks of replica 0, under "by-rank" alone
    std::vector<std::int64_t> microbatches{};    ///< of each replica
    std::shared_ptr<const Batch> batch{};        ///< in its layout
    partition::Shares assigned{};                ///< which microbatches of it each replica has
    std::int64_t most_tokens = 0;                ///< of the backbone, in the largest microbatch
    Duration makespan{};                         ///< of the slowest replica
    std::vector<Bytes> peak{};                   ///< of each rank, in the replica where it is the fullest
    Bytes usable{};                              ///< of a GPU, headroom kept free
};

}  // namespace pipeweaver::planner
