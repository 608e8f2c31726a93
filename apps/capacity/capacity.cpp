// pipeweaver capacity: a study over models, clusters, GPU counts, layouts and batches.
#include "apps/capacity/answer.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "apps/output_kind.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/capacity/run.hpp"
#include "pipeweaver/capacity/slurm.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using capacity::CellResult;
using capacity::Study;

constexpr std::size_t usual_shards = 100;

struct Capacity {
    explicit Capacity(CLI::App& app) : options(app) {
        console.add_to(app);
        add_operands(app, "study", operands, "STUDY",
                     "a study (YAML or JSON); or the word merge and the folders of its shards");
        options.text("out", out, "DIR", "folder of the study (required); what it has is not judged again");
        options.writes();
        options.parsed("shard", "I/N", "judge the cells whose number leaves I when divided by N, and no more",
                       [this](const std::string& text) { shard = capacity::parse_shard(text); });
        options.parsed("budget", "TIME", "the most time; what is judged by then stays (default: none)",
                       [this](const std::string& text) { limits.budget = parse_duration(text); });
        constexpr std::int64_t most_threads = 1024;
        options.integer("threads", limits.threads, 1, most_threads, "default: all cores; no result depends on it");
        options.group("Slurm");
        options.text("emit-slurm", jobs, "DIR",
                     "write scripts there that judge the study as an array of Slurm's tasks");
        options.writes();
        constexpr std::int64_t most_shards = 1'000'000;
        options.integer("shards", shards, 1, most_shards, "of the array (default: one a cell, 100 at most)");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        require();
        if (!jobs.empty()) return emit_slurm();
        require_output_kind(out, OutputKind::study);
        const Interrupt interrupt(console.quiet);
        const OutputFolder folder(out);
        const auto time = time_of(limits.budget, start);
        if (operands.front() == "merge") return merge(start, time);
        const Study study = capacity::read_study(JsonDocument::read(operands.front()));
        ShownCells shown(console);
        auto results = capacity::run_cells_in(out, study, shard.value_or(capacity::Shard{}), limits.executor(), time,
                                              [&](const capacity::RunProgress& now) { shown(now); });
        console.clear();
        if (shard) return say_shard(study, results, time);
        require_all(results, time, fmt::format("they are in {}, and the same command goes on", out));
        const AnswerWanted wanted{.out = out, .start = &start, .time = time, .judging = shown.judging()};
        give_answer(study, capacity::whole(std::move(results)), console, limits, wanted);
    }

private:
    void require() const {
        require_given({{!operands.empty(), "STUDY", "a study file"},
                       {!out.empty() || !jobs.empty(), "--out DIR", "a folder for the study"}});
        if (jobs.empty() && shards) fail(ErrorKind::input, "--shards: goes with --emit-slurm alone");
        const bool merges = operands.front() == "merge";
        if (!merges && operands.size() > 1)
            fail(ErrorKind::input, "{}: is one operand too many, allowed is one study", operands[1]);
        if (merges && operands.size() < 2) fail(ErrorKind::input, "merge: needs the folders of a study's shards");
        if (merges && shard) fail(ErrorKind::input, "--shard, merge: allowed is one of the two");
        if (!jobs.empty() && (merges || shard))
            fail(ErrorKind::input, "--emit-slurm and {}: allowed is one of the two", merges ? "merge" : "--shard");
    }

    void emit_slurm() const {
        namespace fs = std::filesystem;
        const Study study = capacity::read_study(JsonDocument::read(operands.front()));
        const fs::path folder = whole_path(jobs), file = folder / "study.json";
        const auto scripts = capacity::slurm_scripts(
            {.program = fs::read_symlink("/proc/self/exe").string(),
             .folder = fs::current_path().string(),
             .study = file.string(),
             .results = whole_path(out.empty() ? folder / "results" : fs::path(out)).string(),
             .shards = shards ? static_cast<std::size_t>(*shards) : std::min(study.cells.size(), usual_shards),
             .threads = std::max(std::int64_t{1}, limits.threads)});
        std::vector<FileToWrite> files{{file, study.document + "\n"}};
        files.reserve(scripts.size() + 1);
        for (const auto& one : scripts) files.push_back({folder / one.name, one.text});
        write_files(files);
        console.say(fmt::format("submit with: bash {} [OPTION OF SBATCH...]",
                                quoted_for_shell((fs::path(jobs) / "submit.sh").string())));
    }

    static std::filesystem::path whole_path(const std::filesystem::path& path) {
        return std::filesystem::absolute(path).lexically_normal();
    }

    void merge(const Stopwatch& start, const planner::Time& time) {
        const std::vector<std::filesystem::path> folders(operands.begin() + 1, operands.end());
        const Study study = capacity::study_in(folders.front());
        capacity::require_folder_of(study, out);
        const auto results = capacity::merged(study, folders);
        std::vector<FileToWrite> files{{std::filesystem::path(out) / "study.json", study.document + "\n"}};
        files.reserve(results.size() + 1);
        for (const CellResult& result : results) {
            FileToWrite file{std::filesystem::path(out) / "cells" / file_name(study.cells[result.cell]),
                             capacity::to_text(result)};
            if (!std::filesystem::exists(file.path) || read_file(file.path) != file.content)
                files.push_back(std::move(file));
        }
        write_files(files);
        give_answer(study, results, console, limits, {.out = out, .start = &start, .time = time});
    }

    void say_shard(const Study& study, const std::vector<std::optional<CellResult>>& results,
                   const planner::Time& time) const {
        std::size_t of = 0, done = 0;
        for (const capacity::Cell& cell : study.cells) {
            of += shard->has(cell) ? 1 : 0;
            done += results[cell.number] ? 1 : 0;
        }
        const std::string text =
            fmt::format("shard {}/{}: {} of {} cells are in {}", shard->index, shard->count, done, of, out);
        if (done < of && (Interrupt::came() || time.is_over()))
            fail(ErrorKind::limit, "interrupted: {}; the same command goes on", text);
        console.say(text);
    }

    Options options;
    Console console;
    Limits limits;
    std::vector<std::string> operands;
    std::string out;
    std::optional<capacity::Shard> shard;
    std::string jobs;
    std::optional<std::int64_t> shards;
};

}  // namespace

void add_capacity(CLI::App& program) {
    add_command<Capacity>(
        program, "capacity", "which GPUs, how many and in which layout: a study",
        {.synopsis =
             "STUDY --out DIR [--shard I/N] [OPTION...] | STUDY --emit-slurm DIR [--shards N] | merge DIR... --out DIR",
         .description =
             "Judges every layout of a model on clusters of every size that a study names, by bounds where they decide "
             "and by an emulation of the schedules that launch flags can say where they do not; ranks what meets the "
             "study's constraints by days and price; and plans the best few with a search. What is done is kept in "
             "DIR/cells: an interrupted study goes on, and shards of it may run anywhere: by hand with --shard, on "
             "Slurm with --emit-slurm, on Ray with `python -m pipeweaver.capacity`.",
         .examples = {{"A study", "pipeweaver capacity examples/study.yaml --out study"},
                      {"The first half of it, for another machine",
                       "pipeweaver capacity examples/study.yaml --out study-0 --shard 0/2"},
                      {"All of it as an array of Slurm's tasks: bash study-jobs/submit.sh",
                       "pipeweaver capacity examples/study.yaml --emit-slurm study-jobs --shards 16"}},
         .files = {{"study.json", "the study"},
                   {"cells/", "a file for each cell: what its points are"},
                   {"rows/", "the best rows, each as a command and as a study of one point"}},
         .see_also = {"pipeweaver recommend", "docs/capacity-study.md", "docs/capacity-on-clusters.md"}});
}

}  // namespace pipeweaver::apps
