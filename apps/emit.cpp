// pipeweaver emit: a plan, or a problem with its solution, as a framework's files.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"

namespace pipeweaver::apps {

namespace {

struct Emit {
    explicit Emit(CLI::App& app) : options(app) {
        options.group("What to write");
        options.text("plan", plan, "DIR",
                     "folder of `pipeweaver plan`, or one with problem.json[.gz] and solution.json (required)");
        options.text("target", target, "TARGET", "a target of `pipeweaver list targets` (required)");
        options.text("out", out, "DIR", "folder for the files (required)");
        options.writes();
    }

    void run() const {
        options.apply();
        require_given({{!plan.empty(), "--plan DIR", "the folder of a plan"},
                       {!target.empty(), "--target TARGET", "`pipeweaver list targets` names the known ones"},
                       {!out.empty(), "--out DIR", "a folder for the files"}});
        const auto files = emit::emit(plan, target, out);
        write_files(files);
        for (const auto& file : files) print_text("{}\n", file.path.string());
    }

    Options options;
    std::string plan, target, out;
};

}  // namespace

void add_emit(CLI::App& program) {
    add_command<Emit>(
        program, "emit", "write a plan's schedule for a framework",
        {.synopsis = "--plan DIR --target TARGET --out DIR",
         .description =
             "Writes the schedule that a folder holds as files of a framework, or how its launch.json is launched "
             "as flags. What the target cannot express is refused with the rule.",
         .examples = {{"A plan as a CSV for PyTorch's pipeline runtime",
                       "pipeweaver emit --plan plan --target torch-csv --out csv"},
                      {"Its predicted step as a trace for Perfetto",
                       "pipeweaver emit --plan plan --target chrome-trace --out trace"},
                      {"The best rung that flags launch, for Megatron-LM",
                       "pipeweaver emit --plan plan-megatron --target megatron --out megatron-flags"}},
         .files = {{"schedule.csv",
                    "torch-csv; schedule.comms.csv has its messages, too, schedule.json the layers of each stage"},
                   {"actions.json", "torch-actions, for each replica"},
                   {"trace.json.gz", "chrome-trace, for each replica; opens in Perfetto"},
                   {"megatron.sh", "megatron: arrays of launch flags; megatron.yaml has the same as keys"},
                   {"torchtitan.sh", "torchtitan: an array of launch flags"}},
         .see_also = {"pipeweaver plan", "pipeweaver list targets", "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
