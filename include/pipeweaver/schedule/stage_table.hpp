// Measured stage times in place of a model: a CSV file with one line a stage becomes a schedule problem.
//
// Units        columns forward_us, backward_us and weight_us in microseconds (fractions allowed), *_bytes in bytes.
// Threads      any number of calls at once.
#pragma once

#include "pipeweaver/schedule/problem.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::schedule {

/// What was measured of one stage, for one microbatch.
struct StageTimes {
    RankId rank{};
    Duration forward{1};
    Duration backward{1};            ///< with `weight`: of the input gradient alone
    std::optional<Duration> weight;  ///< of the weight gradient; none: the backward is not split
    Bytes activation;                ///< held from the forward to the end of the backward (with `weight`, of that)
    Bytes weights;                   ///< held all the time: weights, gradients, optimizer state
    Bytes send;                      ///< output to the next stage; its gradient comes back with the same size
};

/// A chain of stages: stage s sends to stage s + 1.
struct StageTable {
    std::string name;                ///< of the file, for errors and as the problem's source
    std::vector<StageTimes> stages;  ///< at least one
    std::vector<std::size_t> lines;  ///< per stage: its line in the file

    std::size_t ranks() const;
};

/// Reads `stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes`, gzip allowed.
/// Stages are 0, 1, 2, ... in order, ranks 0 ... R-1 each with a stage; a time is above 0 and at most a minute, a size
/// at most 16 TiB. Throws Error{input} with file, line and column, Error{io}.
[[nodiscard]] StageTable read_stage_table(const std::filesystem::path& path);

/// Reads a stage table from text already read; `name` stands for the file in errors.
[[nodiscard]] StageTable parse_stage_table(std::string name, std::string text);

struct StageOptions {
    std::int64_t microbatches = 1;
    std::optional<Bytes> capacity;  ///< of every rank; none: unlimited
    std::optional<Bandwidth> link;  ///< between ranks; none: transfers take no time

    std::string suffix{};              ///< of the problem's name
    bool buffers_for_all = false;      ///< receive buffers for all microbatches are held all the time
    double split_slowdown = 1;         ///< time of a stage's I and W over the table's
    bool first_input_gradient = true;  ///< false: stage 0 computes none; split, its I takes 1 ns, its W a full backward
};

/// Reads a rank's memory as parse_bytes() does. Throws Error{input} also for 0.
[[nodiscard]] Bytes parse_capacity(std::string_view text);

/// The most tasks that a table and a number of microbatches may give.
inline constexpr std::int64_t most_stage_tasks = 50'000;

/// The schedule problem of one step: microbatch after microbatch the tasks F of all stages, then B (or I and W).
/// A rank's base is the sum of its stages' `weights`; each pair has one mode. What a split backward releases waits for
/// W, since a file of stage times does not say how much I could give back. Transfers between stages of one rank take
/// no time.
/// Throws Error{limit} naming rank and bytes where one microbatch does not fit, Error{input} for too many tasks or a
/// transfer of more than a minute.
[[nodiscard]] Problem stage_problem(const StageTable& table, const StageOptions& options);

/// A problem; or why it has no schedule.
struct BuiltStages {
    Problem problem{};
    std::string why_not{};  ///< not empty: the rank that one microbatch does not fit, and the bytes
};

/// The problem where not to fit is an answer. Throws Error{input} as stage_problem().
[[nodiscard]] BuiltStages build_stages(const StageTable& table, const StageOptions& options);

}  // namespace pipeweaver::schedule
