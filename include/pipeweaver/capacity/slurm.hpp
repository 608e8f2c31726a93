// A capacity study as jobs of Slurm: an array whose tasks judge shards, and behind it a job that merges them.
//
// Requeue      A task that is ended anywhere may begin again, on any node: each cell that is judged is a file of the
//              results' folder, written whole, and is not judged again.
// Source       Slurm's sbatch manual: job arrays, --dependency, --requeue, environment of a batch script.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// What the scripts run, and where. Paths are absolute and hold on every node.
struct SlurmJob {
    std::string program;       ///< the command pipeweaver
    std::string folder;        ///< where it runs: paths in the study go from here
    std::string study;         ///< the study's file
    std::string results;       ///< folder that all nodes share: study.json, cells and, once merged, the tables
    std::size_t shards = 1;    ///< more than the array has tasks are several for each task
    std::int64_t threads = 1;  ///< of a task
};

/// The most tasks of an array that a controller takes as it is installed (MaxArraySize 1001), rounded.
inline constexpr std::size_t most_array_tasks = 1000;

struct SlurmScript {
    std::string name, text;
};

/// array.sbatch, merge.sbatch and submit.sh, which submits both; all three in one folder, wherever it lies. A function
/// of the job alone. Throws Error{input}: a path that is not absolute or has a line break; no shards or threads.
[[nodiscard]] std::vector<SlurmScript> slurm_scripts(const SlurmJob& job);

}  // namespace pipeweaver::capacity
