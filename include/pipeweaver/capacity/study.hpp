// A capacity study: which models, clusters, GPU counts, batches and layouts are compared, and what an answer must meet.
//
//   study   axes, layouts, constraints and prices, as a document says them ("pipeweaver-study/1", YAML or JSON)
//   cell    one choice of every axis: a job without a layout
//   point   a layout of a cell
//
// Determinism  A function of the document and of the files that it names.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {
struct PlanConfiguration;
}

namespace pipeweaver::capacity {

/// The degrees that points may have; an empty list: all that divide GPUs and model.
struct LayoutLists {
    std::vector<std::int64_t> tp, pp, cp, dp, ep, zero;

    bool allow(const planner::LayoutAndZero& as) const;
};

/// What an answer must meet. Both are optional, and a point must meet both.
struct Constraints {
    std::optional<double> days;  ///< of the whole run, at most; needs Study::training_tokens
    std::optional<double> usd;   ///< for it, at most; needs them and prices
};

/// Whose GPUs are those of a cell's modules: the same of all, each module's own, or whichever takes the shorter step.
enum class GroupsAsked : std::uint8_t { shared, own, either };
/// "shared", "own" or "auto".
[[nodiscard]] std::string_view name_of(GroupsAsked groups);

/// What CPU cores cost that feed GPUs.
struct CorePrice {
    double usd = 0;         ///< of a core-hour
    double included = 0;    ///< cores that come with a GPU, in its price
    std::int64_t node = 1;  ///< others come in nodes of so many
};

/// A job whose layout is open: its options as `pipeweaver plan` has them.
struct Cell {
    std::size_t number = 0;
    std::string cluster;  ///< a name or a file, without its GPUs
    std::int64_t gpus = 0;
    workloads::Cluster machine;  ///< with its GPUs, and the price that the study says
    OptionValues asked;          ///< of `plan`, but for the layout
    GroupsAsked groups{};
    std::string axes;  ///< "gpus 64, global-batch 1024": the axes that have several values
    std::string key;   ///< SHA-256 of all that its points are a function of; this program's version, too
    std::shared_ptr<const planner::PlanConfiguration> job{};  ///< what `asked` asks for, under --layout auto
};

struct Study {
    std::string name;      ///< empty: it has none
    std::string document;  ///< itself, as JSON with sorted keys: another study has another text
    std::string sha256;    ///< of the document
    std::vector<Cell> cells;
    LayoutLists layouts;
    Constraints constraints;
    std::optional<CorePrice> cores{};  ///< none: cores cost nothing
    std::int64_t training_tokens = 0;  ///< 0: not said
    double faulty = 0;                 ///< probability that a node is down, for what faults leave; 0: not asked
    std::size_t shown = 10;            ///< of each cell so many of the fastest points no bound may hide
    bool bounds = true;                ///< false: every point is judged
    std::size_t planned = 3;           ///< of the best rows so many are planned with a search
    std::size_t limit = 0;             ///< the most points
};

/// Reads a study. Throws Error{input}: unknown keys and axes, values that are not allowed, constraints that contradict
/// each other or lack what they need, studies of no point or of more than their `limit`. Error{io} for files that it
/// names.
[[nodiscard]] Study read_study(const JsonDocument& document);

/// USD of a GPU-hour in the cell; 0: not said.
[[nodiscard]] double price_of(const Cell& cell);

/// A part of a study's cells: those whose number leaves `index` when divided by `count`.
struct Shard {
    std::size_t index = 0, count = 1;

    bool has(const Cell& cell) const { return cell.number % count == index; }
};

/// Reads "i/N". Throws Error{input}.
[[nodiscard]] Shard parse_shard(const std::string& text);

}  // namespace pipeweaver::capacity
