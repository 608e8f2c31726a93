// What `pipeweaver share` prints and writes: tables for people, CSV and JSON for programs.
#pragma once

#include "pipeweaver/capacity/queue.hpp"
#include "pipeweaver/capacity/share.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

/// All that was found of a cluster.
struct SharedOut {
    const capacity::SharedCluster& cluster;
    Duration restart{};
    capacity::Shares shares;
    std::vector<capacity::QueueResult> queues;  ///< one for each policy
};

/// What a job has of all at once.
struct JobShare {
    std::int64_t gpus = 0;
    double tokens_per_s = 0;
    Duration time{};
    double gpu_hours = 0;
};
[[nodiscard]] std::optional<JobShare> share_of(const SharedOut& found, std::size_t job);  ///< none: it waits

/// Of GPUs times nanoseconds.
[[nodiscard]] double gpu_hours(capacity::Wide gpu_ns);

/// Who gets how many GPUs, and the arithmetic beneath.
[[nodiscard]] std::string share_table(const SharedOut& found);

/// The policies side by side, the jobs under each, and GPUs over time.
[[nodiscard]] std::string queue_table(const SharedOut& found);

[[nodiscard]] std::string shares_csv(const SharedOut& found);
[[nodiscard]] std::string queue_csv(const SharedOut& found);

/// `pipeweaver-shares/1` (docs/formats.md).
[[nodiscard]] nlohmann::ordered_json shares_json(const SharedOut& found);

}  // namespace pipeweaver::apps
