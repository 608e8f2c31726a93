// A recorded run of a schedule: what each rank wrote down, joined to the tasks of the plan.
//
// Recordings   timings that the executor saved ("pipeweaver-timings/1", docs/formats.md), or a PyTorch (Kineto) trace
//              whose ranges are named as PyTorch's pipeline runtime names its actions: PP:0F3 is the forward of stage
//              0, microbatch 3; PP:0F3.1 of its item 1. Gzip allowed. A file is of one rank.
// Joined       by stage, kind, microbatch and item. Where the plan splits a backward that was run whole, its time is
//              shared out as the plan's times of the two parts are.
// Order        a rank must have run its passes in the plan's order: else the run is of another schedule.
#pragma once

#include "pipeweaver/measured/clocks.hpp"
#include "pipeweaver/schedule/solved.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::measured {

/// A schedule that was run, with what it was planned to take. Tails are left out: no recording has what follows a
/// rank's last pass.
struct Planned {
    std::string name;           ///< of its file or folder, for errors
    std::int64_t replica = 0;   ///< whose recordings are taken
    schedule::Problem problem;  ///< every tail 0
    schedule::Schedule schedule;
    std::vector<Duration> duration;  ///< per task, in its memory mode
    Duration makespan{};
};

/// Replays the schedule. Throws Error{limit} where it does not run.
[[nodiscard]] Planned planned_of(const schedule::Solved& solved, const std::string& name, std::int64_t replica = 0);

/// From start to end, by the clock of whoever wrote it down.
struct Span {
    Duration start{}, end{};

    Duration length() const { return end - start; }
    friend bool operator==(const Span&, const Span&) = default;
};

/// A pass as a rank ran it.
struct RecordedPass {
    char kind = 'F';  ///< F, B, I or W
    std::int64_t stage = 0, microbatch = 0, item = 0;
    Span time{};
};

/// When a tensor of the plan's action lists was sent, or had arrived.
struct RecordedMessage {
    bool arrived = false;
    std::int64_t tensor = 0;
    Duration at{};
};

struct RecordedStep {
    std::vector<RecordedPass> passes;
    std::vector<RecordedMessage> messages;
};

struct Recording {
    std::string name;  ///< of its file, for errors
    std::optional<std::int64_t> rank, replica;
    std::optional<std::string> problem;  ///< the name of the problem that was run
    std::vector<RecordedStep> steps;
    std::optional<std::int64_t> ranks{};  ///< of the replica, where it says so
};

/// Reads one file. Throws Error{input} for what is neither of the two formats, Error{io}.
[[nodiscard]] Recording read_recording(const std::filesystem::path& path);

/// One step of all ranks.
struct Step {
    std::vector<Span> task;         ///< per task, by the clock of its rank
    std::vector<Message> messages;  ///< between ranks
};

struct Run {
    std::vector<Step> steps;
};

/// Joins what all ranks wrote down. Throws Error{input} naming file and pass for a recording of another run: passes
/// that the plan does not have or that are missing, other ranks, another number of microbatches or steps, another
/// order.
[[nodiscard]] Run join(const Planned& planned, const std::vector<Recording>& recordings);

/// The task's stage as a group of passes that are alike: the modules in it, "vit+llm"; else the task's own module.
[[nodiscard]] std::string group_of(const schedule::Problem& problem, const schedule::Task& task);

}  // namespace pipeweaver::measured
