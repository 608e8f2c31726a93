#include "pipeweaver/capacity/run.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <mutex>

namespace pipeweaver::capacity {

namespace {

namespace fs = std::filesystem;

using Results = std::vector<std::optional<CellResult>>;

fs::path study_file(const fs::path& folder) { return folder / "study.json"; }
fs::path cell_file(const fs::path& folder, const Cell& cell) { return folder / "cells" / file_name(cell); }

bool is_there(const fs::path& file) {
    std::error_code none;
    return fs::exists(file, none);
}

// Judges those of a shard that are not there yet, each on a thread of its own.
class Running {
public:
    Running(const Study& study, const Shard& shard, const planner::Time& time, const OnCell& on_cell)
        : study_(study), time_(time), on_cell_(on_cell), results_(study.cells.size()) {
        for (const Cell& cell : study.cells)
            if (shard.has(cell)) cells_.push_back(&cell);
        progress_.of = cells_.size();
    }

    Results run(const Executor& execute, const fs::path* folder) {
        if (folder != nullptr) read_present(*folder);
        if (on_cell_) on_cell_(progress_);
        std::vector<const Cell*> open;
        for (const Cell* cell : cells_)
            if (!results_[cell->number]) open.push_back(cell);
        Shared shared;
        run_jobs(execute, open.size(), [&](std::size_t i) {
            if (time_.is_over()) return;
            auto result = judge_cell(study_, *open[i], shared, execute, time_);
            if (!result) return;
            if (folder != nullptr) write_files({{cell_file(*folder, *open[i]), to_text(*result)}});
            done(*open[i], std::move(*result));
        });
        return std::move(results_);
    }

private:
    void read_present(const fs::path& folder) {
        for (const Cell* cell : cells_) {
            const fs::path file = cell_file(folder, *cell);
            if (!is_there(file)) continue;
            try {
                results_[cell->number] = read_cell(*cell, file.string(), read_file(file));
                ++progress_.cells;
            } catch (const Error& error) {
                if (error.kind() == ErrorKind::io) throw;  // else it is damaged, and judged again
            }
        }
    }

    void done(const Cell& cell, CellResult result) {
        const std::lock_guard lock(mutex_);
        ++progress_.cells;
        progress_.points += result.points.size();
        results_[cell.number] = std::move(result);
        if (on_cell_) on_cell_(progress_);
    }

    const Study& study_;
    const planner::Time& time_;
    const OnCell& on_cell_;
    std::vector<const Cell*> cells_;
    std::mutex mutex_;
    RunProgress progress_;
    Results results_;
};

void require_same(const Study& study, const fs::path& folder) {
    if (read_file(study_file(folder)) == study.document + "\n") return;
    fail(ErrorKind::input, "{}: is another study than {}: allowed is a folder of the same one, or an empty one",
         study_file(folder).string(), study.name.empty() ? "the first folder's" : study.name);
}

}  // namespace

void require_folder_of(const Study& study, const fs::path& folder) {
    if (!is_there(study_file(folder)) || read_file(study_file(folder)) == study.document + "\n") return;
    const auto there = JsonDocument::read(study_file(folder));
    const auto name = there.root().find("name");
    if (!name || study.name.empty())
        fail(ErrorKind::input,
             "{}: is of another study; allowed is an empty folder, or one of a study of the same `name`",
             study_file(folder).string());
    if (name->text() != study.name)
        fail(ErrorKind::input, "{}: is of the study '{}': allowed is a folder of '{}', or an empty one",
             study_file(folder).string(), name->text(), study.name);
}

Results run_cells(const Study& study, const Shard& shard, const Executor& execute, const planner::Time& time,
                  const OnCell& on_cell) {
    return Running(study, shard, time, on_cell).run(execute, nullptr);
}

Results run_cells_in(const fs::path& folder, const Study& study, const Shard& shard, const Executor& execute,
                     const planner::Time& time, const OnCell& on_cell) {
    // Of an edited study the cells that are the same are there already; what is of another name is another's.
    require_folder_of(study, folder);
    write_files({{study_file(folder), study.document + "\n"}});
    return Running(study, shard, time, on_cell).run(execute, &folder);
}

Study study_in(const fs::path& folder) {
    if (!is_there(study_file(folder)))
        fail(ErrorKind::input, "{}: is not there: {} is no folder of a study", study_file(folder).string(),
             folder.string());
    return read_study(JsonDocument::read(study_file(folder)));
}

std::vector<CellResult> merged(const Study& study, const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
        if (!is_there(study_file(folder))) (void)study_in(folder);
        require_same(study, folder);
    }
    std::vector<std::optional<CellResult>> results(study.cells.size());
    for (const Cell& cell : study.cells)
        for (const fs::path& folder : folders) {
            const fs::path file = cell_file(folder, cell);
            if (results[cell.number] || !is_there(file)) continue;
            results[cell.number] = read_cell(cell, file.string(), read_file(file));
        }
    return whole(std::move(results));
}

std::vector<CellResult> whole(Results results) {
    const auto is_hole = [](const auto& one) { return !one.has_value(); };
    const auto holes = std::count_if(results.begin(), results.end(), is_hole);
    if (holes > 0)
        fail(ErrorKind::limit,
             "{} of {} cells are missing, the first is {}; run the shards that have them: cell c is in shard c mod N "
             "of N",
             holes, results.size(), std::find_if(results.begin(), results.end(), is_hole) - results.begin());
    std::vector<CellResult> all;
    all.reserve(results.size());
    for (auto& one : results) all.push_back(std::move(*one));
    return all;
}

}  // namespace pipeweaver::capacity
