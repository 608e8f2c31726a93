// Transfers of one rank in one direction share its port: which of a schedule's transfers wait, and how long.
//
// Model        A GPU has two ports to its node's links and two to the network, one to send and one to receive. A
//              transfer needs the sender's and the receiver's for as long as its bytes are on the wire
//              (Transfer::wire); its start-up time holds no port. A port that comes free takes, of the transfers that
//              are ready and whose other port is free, the one that has been ready longest; ties go to the smaller
//              edge. Nothing is interrupted. A transfer is ready when its task ends.
// Method       One run through the schedule in the order of time, which knows at each moment which transfers are ready.
//              So the lags that come out are those of the starts that they lead to, and nothing has to be repeated
//              until it is stable. The starts themselves are then those of schedule::Replayer under these lags.
// Limits       A transfer that another has overtaken may be on the critical path: a slower link can, rarely, make a
//              schedule shorter. Exchanges of gradients and of tensor parallelism do not use these ports.
// Units        Duration is integer nanoseconds.
// Bounds       No lag is shorter than Transfer::lag, so a bound on the step without ports is one with them.
// Determinism  equal arguments give equal results; lags that Problem::edges have at the time do not matter.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <cstddef>
#include <vector>

namespace pipeweaver::emulator {

/// How much a schedule's transfers wait for ports.
struct PortWaits {
    std::size_t transfers = 0;  ///< that cross from one rank to another
    std::size_t waited = 0;     ///< of them
    Duration lost{};            ///< how much longer the makespan is than if every transfer went at once

    friend bool operator==(const PortWaits&, const PortWaits&) = default;
};

/// A schedule as it runs where transfers share ports.
struct PortReplay {
    std::vector<Duration> lags;  ///< per edge of the problem: from the end of one task until what it sends has arrived
    schedule::Replay replay;     ///< with these lags
    PortWaits waits;
};

/// Replays a step's schedule with its ports: the one way to evaluate it. Pre: `schedule` completes on step.problem.
/// Time O(tasks + edges log edges).
[[nodiscard]] PortReplay replay_on_ports(const StepProblem& step, const schedule::Schedule& schedule);

/// The problem with other lags, one for each edge.
[[nodiscard]] schedule::Problem with_lags(schedule::Problem problem, const std::vector<Duration>& lags);

/// Gives the step's problem the lags that this schedule leads to, so that a plain replay of it has the waits, in files
/// as in memory. The lags of another schedule are replaced. Pre: as replay_on_ports().
PortWaits set_lags(StepProblem& step, const schedule::Schedule& schedule);

}  // namespace pipeweaver::emulator
