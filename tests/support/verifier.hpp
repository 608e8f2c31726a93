// The project's own referee: checks a solution against its problem and shares no code with what is checked.
// It reads plain JSON, simulates time by events and memory by events, and knows nothing of emulator/ or search/.
//
// Units        integer nanoseconds and integer bytes, as in the files.
// Determinism  equal texts give an equal Verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::testing {

/// What is believed of a solution file.
enum class Check {
    everything,  ///< starts, makespan, peaks and bound must be right
    replay       ///< only order and mode are used, the rest is recomputed
};

/// The answer. All but `violation` is meaningful only if ok.
struct Verdict {
    bool ok = false;
    std::string violation;  ///< the first rule that is broken, empty if ok
    std::int64_t makespan_ns = 0;
    std::optional<std::int64_t> lower_bound_ns;
    std::vector<std::int64_t> peak_bytes;  ///< per rank, base included
    std::vector<std::int64_t> start_ns;    ///< per task
};

/// Checks the texts of a problem file ("pipeweaver-problem/1") and of a solution file ("pipeweaver-solution/1").
/// Never throws for what is in them: malformed text is a violation as well. Time O((edges + tasks) * log * ranks).
[[nodiscard]] Verdict verify(std::string_view problem, std::string_view solution, Check check = Check::everything);

/// "ok makespan_ns=7 gap=16.667% peak=3,4" or "violation: ...".
[[nodiscard]] std::string line(const Verdict& verdict);

}  // namespace pipeweaver::testing
