// The schedule problem: which task runs on which rank, how long, with how much memory, and after what.
// Everything a search needs to know, and nothing about models or clusters.
//
// Units        Duration is integer nanoseconds, Bytes is bytes.
// Rules        A rank runs one task at a time, without preemption. start(to) >= end(from) + lag for every edge.
//              A task takes `acquire` at its start and gives `release` back at its end; at one instant, ends come
//              before starts. Memory of a rank = base + taken - given back; never below base, never above capacity. All
//              effects of a task are on its own rank, so memory depends on the rank's order alone, never on times.
#pragma once

#include "pipeweaver/base/ids.hpp"
#include "pipeweaver/base/units.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::schedule {

/// What a task does. F forward, B full backward, I input gradient, W weight gradient, X anything else.
enum class TaskKind : std::uint8_t { forward, backward, input_gradient, weight_gradient, other };

/// 'F', 'B', 'I', 'W' or 'X'.
[[nodiscard]] char letter(TaskKind kind);

struct Rank {
    std::optional<Bytes> capacity;  ///< none: unlimited
    Bytes base;                     ///< held all the time: weights, optimizer state, allowances
    Duration tail{};                ///< what the rank must still do alone after its last task
};

/// Layers of one module inside a stage.
struct StagePart {
    std::string module;
    std::optional<std::int64_t> first_layer;
    std::optional<std::int64_t> layers;
};

/// A chunk of the model on one rank, numbered as the framework numbers it.
struct Stage {
    std::int64_t stage = 0;
    RankId rank{};
    std::vector<StagePart> parts;
};

struct Task {
    RankId rank{};
    TaskKind kind = TaskKind::other;
    Duration duration{1};  ///< >= 1 ns
    Bytes acquire;         ///< taken at the start
    Bytes release;         ///< given back at the end
    std::string label;
    std::optional<std::int64_t> stage;  ///< Stage::stage
    std::optional<std::int64_t> microbatch;
    std::optional<std::int64_t> item;  ///< sub-microbatch of the module
    std::string module;                ///< empty: not said
};

struct Edge {
    TaskId from{};
    TaskId to{};
    Duration lag{};
};

/// One way to run a forward and its backward: what is kept, what is recomputed or offloaded.
/// Forward takes held + forward_transient at its start and gives forward_transient back at its end. Backward takes
/// transient at its start; without a weight task it gives held + transient back at its end, with one it gives
/// held + transient - kept, and the weight task gives kept.
struct Mode {
    Duration forward{1};
    Duration backward{1};
    Duration weight{};  ///< >= 1 ns if the pair has a weight task, else 0
    Bytes held;
    Bytes forward_transient;
    Bytes transient;
    Bytes kept;  ///< 0 without a weight task
};

/// A forward with its backward and, where the backward is split, its weight gradient; all on one rank.
struct Pair {
    TaskId forward{};
    TaskId backward{};
    std::optional<TaskId> weight;
    std::vector<Mode> modes;  ///< at least one; mode 0 equals the tasks' own fields
};

struct Problem {
    std::string name;
    std::string source;
    std::vector<Rank> ranks;
    std::vector<Stage> stages;
    std::vector<Task> tasks;  ///< indexed by TaskId
    std::vector<Edge> edges;
    std::vector<Pair> pairs;
};

/// What a task costs under a mode.
struct TaskCost {
    Duration duration{};
    Bytes acquire;
    Bytes release;
};

/// Costs of the pair's tasks in `mode`: forward, backward, weight (the last only if the pair has one).
[[nodiscard]] std::array<TaskCost, 3> costs_in(const Pair& pair, const Mode& mode);

/// Gives the task this duration and memory.
void apply(Task& task, const TaskCost& cost);

/// A task that its rank cannot hold even alone, in its most frugal mode: no schedule of the problem can run.
struct TaskShortage {
    TaskId task{};
    RankId rank{};
    Bytes needed;  ///< by the task on top of the rank's base
    [[nodiscard]] std::string text(const Problem& problem) const;
};

/// validate() with the one thing that is no mistake of the problem's maker as a value: the first task that does not
/// fit its rank even alone.
[[nodiscard]] std::optional<TaskShortage> check(const Problem& problem);

/// Checks what no reader of a Problem should have to check again: references, durations >= 1 ns, pairs on one rank with
/// a path of edges forward -> backward -> weight, mode 0 equal to the tasks' own fields, no cycle, and that no
/// schedule's times or memory can overflow (the sum of all durations, lags and tails, and of all memory, fits 63 bits).
/// Throws Error{input} naming the place ("tasks[3].rank: ..."), a cycle by its labels, or Error{limit} with rank and
/// bytes where a task does not fit its rank even alone. Time O(tasks + edges + pairs * their reach).
void validate(const Problem& problem);

/// SHA-256 of the canonical bytes of to_json(problem) (sorted keys, no spaces): what a solution file calls
/// problem_sha256. A file that spells out optional keys has another: ProblemFile::sha256.
[[nodiscard]] std::string fingerprint(const Problem& problem);

/// Reads and validates a problem file ("pipeweaver-problem/1"), gzip allowed.
/// Throws Error{input}, Error{io} or, from validate(), Error{limit}; each names the file.
struct ProblemFile {
    Problem problem;
    std::string sha256;  ///< of the canonical bytes (sorted keys, no spaces)
};
[[nodiscard]] ProblemFile read_problem(const std::filesystem::path& path);

/// Reads a problem from text already read; `name` stands for the file in errors.
[[nodiscard]] ProblemFile parse_problem(std::string name, std::string_view text);

/// The problem as a file's content, keys in fixed order, ends with a newline.
[[nodiscard]] std::string to_json(const Problem& problem);

}  // namespace pipeweaver::schedule
