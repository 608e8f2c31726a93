// The points of a cell: each layout with its bound, or as it was judged.
//
// Determinism  The result of a cell is a function of the study and the cell's number: not of threads, of other cells,
//              or of who asked.
#pragma once

#include "pipeweaver/capacity/study.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {
struct WorkloadOptions;
}

namespace pipeweaver::capacity {

enum class PointStatus : std::uint8_t {
    judged,   ///< emulated under the schedules that launch flags can say
    bounded,  ///< a bound shows that it is none of the fastest, or later than the constraints allow
    refused   ///< by a rule of layouts, or by its memory
};
[[nodiscard]] std::string_view name_of(PointStatus status);

/// Degrees as columns, in the order of degree_names; and as an object.
inline constexpr std::array<std::string_view, 6> degree_names{"tp", "cp", "pp", "dp", "ep", "zero"};
[[nodiscard]] std::array<std::int64_t, 6> degrees_of(const planner::LayoutAndZero& as);
[[nodiscard]] nlohmann::ordered_json layout_json(const planner::LayoutAndZero& as);

struct Point {
    planner::LayoutAndZero as;
    PointStatus status = PointStatus::refused;
    /// On GPUs of their own: the groups as `pipeweaver groups --groups` takes them, empty where it is refused; of `as`
    /// the stage alone counts. None: on shared GPUs.
    std::optional<std::string> split{};
    std::string why{};              ///< of a refused one
    Duration bound{};               ///< of a step, unless a rule refused it
    Duration step{};                ///< of a judged one; with gradient reduction and optimizer
    std::optional<Duration> far{};  ///< of the fastest: its far end, where the recipe does not say how layers are
                                    ///< launched (planner/host_bound.hpp); `step` is the near one
    std::string partition{}, policy{}, recompute{};
    std::int64_t chunks = 1;  ///< of each rank
    Bytes memory{};           ///< peak of the fullest rank
};

/// The cluster's and the batch's part in all points of a cell.
struct CellFacts {
    std::int64_t samples = 0, microbatches = 0;
    std::int64_t tokens = 0;   ///< of the backbone, in a step of all replicas
    double model_flops = 0;    ///< of a step of all replicas, nothing counted twice for recomputation
    Bytes usable{};            ///< of a GPU
    double error_percent = 0;  ///< of a step, as runs like it are off on average
    std::string footing{};     ///< what that rests on: fitted, borrowed or assumed
};

struct CellResult {
    std::size_t cell = 0;
    std::string key;        ///< Cell::key
    std::string why_not{};  ///< not empty: the job cannot be asked at all (a recipe that does not go with a model)
    CellFacts facts{};
    std::vector<Point> points;
};

/// What cells of a study share: costs of operators and of layers. Any number of threads may use one.
class Shared {
public:
    /// Costs of the cluster's device, and of layers of cells that differ in GPUs and batch alone.
    [[nodiscard]] std::shared_ptr<const costdb::CostDatabase> costs_of(const planner::WorkloadOptions& of);
    [[nodiscard]] std::shared_ptr<planner::LayoutStores> stores_of(const Cell& cell);

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<const costdb::CostDatabase>> costs_;
    std::map<std::string, std::shared_ptr<planner::LayoutStores>> stores_;
};

/// What is kept free of memory in all layouts of the cell: automatic, it is settled before one is known.
[[nodiscard]] emulator::Headroom headroom_of(const Cell& cell);

/// Judges the points of a cell; none where `time` ended it. Throws Error{io}.
[[nodiscard]] std::optional<CellResult> judge_cell(const Study& study, const Cell& cell, Shared& shared,
                                                   const Executor& execute, const planner::Time& time = {});

/// "0123456789abcdef....json": the cell's file, by its key.
[[nodiscard]] std::string file_name(const Cell& cell);

/// The result as a file, and back. Throws Error{input} for what is no whole result of that cell.
[[nodiscard]] std::string to_text(const CellResult& result);
[[nodiscard]] CellResult read_cell(const Cell& cell, const std::string& name, std::string_view text);

}  // namespace pipeweaver::capacity
