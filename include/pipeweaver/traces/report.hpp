// What the replay of a recorded step says, for a person and for a program.
#pragma once

#include "pipeweaver/traces/graph.hpp"
#include "pipeweaver/traces/replay.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::traces {

/// A step, and what decides how long it takes.
struct StepPath {
    std::int64_t span_ns = 0;
    CriticalPath path{};
};

/// Kernels of one name.
struct KernelShare {
    std::uint32_t name = 0;  ///< in Graph::names
    std::int64_t count = 0, total_ns = 0;
};

struct Findings {
    Graph graph;
    StepPath replayed;
    std::int64_t work_ns = 0;          ///< of all ranks
    std::int64_t loose_ns = 0;         ///< of it, what could take longer while the step does not
    std::vector<KernelShare> unknown;  ///< longest first
    std::string factors;               ///< as they were asked
    std::optional<StepPath> what_if;
    std::vector<Fusion> fusions;
    std::optional<StepPath> beside;  ///< another trace, of an emulated step
};

/// `factors` as factors_of() reads them, or empty; `beside` another step or null. Throws as factors_of().
[[nodiscard]] Findings findings_of(Graph graph, const std::string& factors, const Graph* beside);

/// Tables of at most 100 columns: the critical path, ranks, slow ones, unknown kernels, what to fuse.
[[nodiscard]] std::string findings_text(const Findings& all);

/// The answer of `replay --trace --json` ("pipeweaver-trace-replay/1", docs/formats.md).
[[nodiscard]] nlohmann::ordered_json findings_json(const Findings& all);

}  // namespace pipeweaver::traces
