// pipeweaver partition: the partition of a job, chosen once on a sample of its batches.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/partition_table.hpp"
#include "pipeweaver/planner/job_options.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

struct PartitionCommand {
    explicit PartitionCommand(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        options.group("The partition");
        options.with_configuration();
        job.add_to(options);
        options.parsed("partition-budget", "TIME",
                       "end trials on further batches and searches after this time, the best candidates first "
                       "(default: all are made, to the same result on any machine)",
                       [this](const std::string& text) { budget = parse_duration(text); });
        options.integer("seed", limits.seed, 0, 9'007'199'254'740'991, "seed of random choices (default 1)");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
        options.text("out", out, "FILE", "the partition file to write, for --partition (required)");
        options.writes();
        options.text("picture", picture, "FILE", "an SVG of its chunks beside those of the other partitions");
        options.writes();
    }

    void run() {
        options.apply();
        auto needed = workload.needed();
        needed.push_back({!out.empty(), "--out FILE", "a file for the partition"});
        require_given(needed);
        const Interrupt interrupt(console.quiet);
        const OutputFolder folder(std::filesystem::path(out).parent_path());
        const auto time = time_of(budget, Stopwatch());
        auto request = workload.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        job.fill(request.job, workload);
        const auto choice =
            planner::choose_partition(request.job, request.batch, planner::thorough_choice, limits.executor(), time,
                                      [this](const planner::Doing& doing) { console.show(doing); });
        console.clear();
        std::vector<FileToWrite> files{
            {out, partition::to_json({choice.partition, choice.chosen_on}, *request.job.setup)}};
        if (!picture.empty()) files.push_back({picture, emit::partition_picture(request.job, request.batch, choice)});
        write_files(files);
        if (console.json)
            print_json(emit::partition_answer(request.job, request.batch, choice));
        else
            print_text("{}", emit::partition_table(request.job, request.batch, choice));
        std::vector<std::string> left_out;
        if (choice.cut_short)
            left_out.emplace_back("not all of the best candidates were tried on every batch and searched");
        say_if_interrupted(console, left_out);
    }

    Options options;
    Console console;
    Limits limits;
    planner::WorkloadOptions workload;
    planner::JobOptions job;
    std::optional<Duration> budget;
    std::string out, picture;
};

}  // namespace

void add_partition(CLI::App& program) {
    add_command<PartitionCommand>(
        program, "partition", "choose the partition of a job on a sample of its batches",
        {.synopsis = "--model MODEL --cluster CLUSTER (--dataset DATASET | --batch FILE) --out FILE [OPTION...]",
         .description =
             "Chooses how a job's modules are cut into chunks, and into how large units their items: what stays for "
             "months, whatever the batches. Candidates are judged on sample batches by policies, the best of them by "
             "searches; of those within 0.5 % the one with the fewest chunks is taken. Plans, emulations and the "
             "Python package take the file with --partition.",
         .examples = {{"On five drawn batches",
                       "pipeweaver partition --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --sample 101-105 --out partition.json"},
                      {"For one batch, with a picture",
                       "pipeweaver partition --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --sample batch --out partition.json --picture partition.svg"}},
         .files = {{"FILE", "the partition (pipeweaver-partition/1)"}},
         .see_also = {"pipeweaver plan", "pipeweaver emulate", "docs/formats.md"},
         .usual = {"model", "cluster", "tp", "pp", "layout", "batch", "dataset", "microbatches", "recipe", "sample",
                   "out", "picture", "budget", "json"}});
}

}  // namespace pipeweaver::apps
