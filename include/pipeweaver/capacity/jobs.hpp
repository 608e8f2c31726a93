// Trainings that share one cluster: what each has to do, how fast it is on how many GPUs, and which GPUs are free only
// at some hours of the day.
//
// Units        time is a Duration from the first midnight on; a speed is whole tokens in 1,000 s; a weight is whole
//              thousandths. Work is counted in 10^-12 tokens: speed times nanoseconds is work without rounding.
// Determinism  integers throughout.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/units.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// Holds weights times nanoseconds and work.
__extension__ using Wide = __int128;

/// Of a training on so many GPUs.
struct Speed {
    std::int64_t gpus = 0;
    std::int64_t tokens_per_ks = 0;

    friend bool operator==(const Speed&, const Speed&) = default;
};

struct TrainingJob {
    std::string name;
    std::int64_t weight_thousandths = 1000;
    std::int64_t tokens = 0;
    Duration arrives{};
    std::int64_t asked = 0;     ///< GPUs, of `speeds`; the cluster has so many
    std::vector<Speed> speeds;  ///< by rising GPUs, at least one

    friend bool operator==(const TrainingJob&, const TrainingJob&) = default;
};

/// GPUs on loan from `from` to `until` of every day; `until` is later, and may be of the next day.
struct LoanWindow {
    Duration from{}, until{};
    std::int64_t gpus = 0;

    friend bool operator==(const LoanWindow&, const LoanWindow&) = default;
};

struct SharedCluster {
    std::int64_t gpus = 0;
    std::vector<LoanWindow> loans;  ///< no two at one time
    std::vector<TrainingJob> jobs;  ///< at least one, names differ

    friend bool operator==(const SharedCluster&, const SharedCluster&) = default;
};

/// All the work of a job.
[[nodiscard]] Wide work_of(const TrainingJob& job);

/// Time for work at a speed, rounded up to the next nanosecond. Pre: it is below 100 years.
[[nodiscard]] Duration time_for(Wide work, std::int64_t tokens_per_ks);

/// Reads `pipeweaver-jobs/1` (docs/formats.md), JSON or YAML; studies beside it. Throws Error{input} with file and key,
/// Error{limit} for a job that needs more GPUs than there are, Error{io}.
[[nodiscard]] SharedCluster read_jobs(const std::filesystem::path& path);

/// `folder` is where studies are looked for.
[[nodiscard]] SharedCluster parse_jobs(const JsonDocument& document, const std::filesystem::path& folder);

/// As a document that parse_jobs() reads, the speeds of studies written out.
[[nodiscard]] nlohmann::ordered_json jobs_document(const SharedCluster& cluster);

}  // namespace pipeweaver::capacity
