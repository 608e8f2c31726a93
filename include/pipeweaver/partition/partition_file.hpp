// A partition as a file ("pipeweaver-partition/1", docs/formats.md): what stays for a whole job, whatever its batches.
#pragma once

#include "pipeweaver/partition/partition.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::partition {

/// What a partition was chosen on: drawn batches, batch files, or neither: a batch that was at hand.
struct ChosenOn {
    std::string dataset;               ///< of `seeds`
    std::vector<std::uint64_t> seeds;  ///< of drawn batches
    std::int64_t microbatches = 0;     ///< of each of them
    std::vector<std::string> files;    ///< batch files

    /// The value of --sample: "101-105", "a.jsonl,b.jsonl"; empty: the batch itself.
    [[nodiscard]] std::string option() const;

    /// What it was chosen on, for people: "vlm-mix, seeds 101-105", "a.jsonl, b.jsonl", "the batch itself".
    [[nodiscard]] std::string text() const;

    friend bool operator==(const ChosenOn&, const ChosenOn&) = default;
};

/// A partition that stays, and where it comes from.
struct PartitionFile {
    Partition partition;
    ChosenOn chosen_on;
    bool is_read = false;  ///< chunks may be built for it: no plan has another; else it was chosen before a plan
};

/// The partition as a file, keys in fixed order.
[[nodiscard]] std::string to_json(const PartitionFile& file, const emulator::Setup& setup);

/// Reads what to_json() wrote. Throws Error{input} with file and key for what is not as the format says, and for
/// another model or layout than the setup's, for layers that are missing, twice or out of order, and for units that no
/// microbatch fills; Error{io}.
[[nodiscard]] PartitionFile read_partition(const std::filesystem::path& path, const emulator::Setup& setup);
[[nodiscard]] PartitionFile parse_partition(const JsonDocument& document, const emulator::Setup& setup);

}  // namespace pipeweaver::partition
