// The table of targets.
#include "pipeweaver/emit/targets.hpp"

#include "emit/targets/launch_script.hpp"
#include "emit/targets/torch_csv.hpp"
#include "emit/targets/trace.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using namespace schedule;

namespace {

std::optional<std::string> why_no_csv(const ToEmit& from) { return why_no_torch_csv(from.problem, from.schedule); }

std::vector<FileToWrite> csv_files(const ToEmit& from, const fs::path& out) {
    auto files = torch_csv(from.problem, from.schedule);
    return {{out / "schedule.csv", std::move(files.csv)},
            {out / "schedule.comms.csv", std::move(files.comms)},
            {out / "schedule.json", std::move(files.schedule)}};
}

std::vector<std::string> how_to_run_csv(const WrittenFiles& written) {
    return {fmt::format("{} says which layers each stage has{}{}; then", (written.folder / "schedule.json").string(),
                        written.padding ? " (padding.json: its fixed shape)" : "",
                        written.first_alone ? " of replica 0, the only one it is for" : ""),
            "  from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime",
            fmt::format("  schedule = _PipelineScheduleRuntime(stages, n_microbatches={}, loss_fn=loss)",
                        written.microbatches),
            fmt::format("  schedule._load_csv({})", nlohmann::json((written.folder / "schedule.csv").string()).dump())};
}

std::string file(const WrittenFiles& written, const char* name) {
    return quoted_for_shell((written.folder / name).string());
}

std::vector<std::string> how_to_run_megatron(const WrittenFiles& written) {
    return {fmt::format("{} in your launch script; then", "source " + file(written, "megatron.sh")),
            "  torchrun ... \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" \"${PIPEWEAVER_SPLIT[@]}\" ...",
            "  (megatron.sh says which script PIPEWEAVER_ENTRY is, or that it has to be yours)",
            fmt::format("{} has the same for Megatron-Bridge", (written.folder / "megatron.yaml").string())};
}

std::vector<std::string> how_to_run_torchtitan(const WrittenFiles& written) {
    return {fmt::format("source {} in your launch script; then", file(written, "torchtitan.sh")),
            "  torchrun ... -m torchtitan.train --module ... --config ... \"${PIPEWEAVER_FLAGS[@]}\""};
}

std::vector<std::string> how_to_run_fsdp2(const WrittenFiles& written) {
    return {fmt::format("accelerate launch --config_file {} src/train.py {} model_name_or_path=... of LLaMA-Factory",
                        file(written, "accelerate.yaml"), file(written, "llama_factory.yaml")),
            fmt::format("or source {}; then", file(written, "swift.sh")),
            fmt::format("  swift sft --model ... --dataset ... --fsdp {} \"${{PIPEWEAVER_FLAGS[@]}}\"",
                        file(written, "fsdp.json"))};
}

std::vector<std::string> how_to_run_deepspeed(const WrittenFiles& written) {
    return {fmt::format("source {}; then", file(written, "swift.sh")),
            fmt::format("  swift sft --model ... --dataset ... --deepspeed {} \"${{PIPEWEAVER_FLAGS[@]}}\"",
                        file(written, "deepspeed.json"))};
}

std::vector<std::string> how_to_run_llama_factory(const WrittenFiles& written) {
    return {fmt::format("FORCE_TORCHRUN=1 llamafactory-cli train {} deepspeed={} model_name_or_path=...",
                        file(written, "llama_factory.yaml"), file(written, "deepspeed.json"))};
}

std::optional<std::string> why_no_lists(const ToEmit& from) {
    std::error_code ignored;
    if (from.actions == nullptr && fs::is_directory(from.folder / rank_lists_folder, ignored))
        return fmt::format(
            "{}: the plan was written with --actions by-rank, and has each rank's list alone; plan again with "
            "--actions whole",
            (from.folder / rank_lists_folder).string());
    if (from.actions != nullptr) {
        const auto why = why_not_runnable(*from.actions);
        return why ? std::optional(fmt::format("{}: {}", (from.folder / "actions.json").string(), *why)) : std::nullopt;
    }
    if (auto why = why_no_actions(from.problem, from.schedule)) return why;
    const auto why = why_not_runnable(derive_actions(from.problem, from.schedule));
    return why ? std::optional(fmt::format("{}: {}", from.problem.name, *why)) : std::nullopt;
}

// Those of a plan know shapes, losses and rows, which a problem and its schedule do not tell.
std::vector<FileToWrite> list_files(const ToEmit& from, const fs::path& out) {
    const auto derived =
        from.actions == nullptr ? std::optional(derive_actions(from.problem, from.schedule)) : std::nullopt;
    const ActionLists& all = derived ? *derived : *from.actions;
    std::vector<FileToWrite> files;
    if (!from.by_rank) {
        files.push_back({out / "actions.json", to_json(all)});
        return files;
    }
    const RankLists lists(all);
    for (std::size_t r = 0; r < all.ranks.size(); ++r)
        files.push_back({out / rank_lists_folder / fmt::format("rank-{:03}.json.gz", r), lists.to_json(r)});
    return files;
}

std::optional<std::string> why_no_trace(const ToEmit& from) {
    if (replay(from.problem, from.schedule).outcome == Outcome::completed) return std::nullopt;
    return fmt::format("{}: the schedule does not run", (from.folder / "solution.json").string());
}

// Of a replica of a plan.
TraceKnown trace_known(const ToEmit& from) {
    TraceKnown known;
    if (!from.optimizer) return known;
    known.optimizer = *from.optimizer;
    if (from.actions == nullptr) return known;
    known.replica = from.actions->replica;
    known.recompute.resize(from.problem.tasks.size());
    for (const auto& list : from.actions->ranks)
        for (const Action& action : list)
            if (const auto* pass = std::get_if<Compute>(&action);
                pass != nullptr && pass->kind != TaskKind::weight_gradient && pass->task < known.recompute.size())
                known.recompute[pass->task] = name_of(pass->recompute);
    return known;
}

std::vector<FileToWrite> trace_files(const ToEmit& from, const fs::path& out) {
    const Replayer replayer(from.problem);
    std::vector<FileToWrite> files;
    files.push_back({out / "trace.json.gz",
                     chrome_trace(replayer, from.schedule, replayer.replay(from.schedule), trace_known(from))});
    return files;
}

Target megatron_row() {
    return {.name = "megatron",
            .about =
                "megatron.sh: launch flags of Megatron-LM, ms-swift and LoongForge; megatron.yaml for "
                "Megatron-Bridge",
            .of = "megatron",
            .files = {"megatron.sh", "megatron.yaml"},
            .title = "Megatron",
            .folder = "megatron",
            .check_launch = launch::why_no_megatron,
            .write_launch = megatron_files,
            .how_to_run = how_to_run_megatron};
}

Target megatron_mimo_row() {
    Target row = megatron_row();
    row.name = row.of = row.folder = "megatron-mimo";
    row.about = "megatron.sh and megatron.yaml as of megatron; in a plan's folder mimo.sh: MegatronMIMO's grids";
    return row;
}

}  // namespace

// Table: a target a row.
const std::vector<Target>& targets() {
    static const std::vector<Target> all{
        {.name = "torch-csv",
         .about =
             "schedule.csv for PyTorch's _PipelineScheduleRuntime, torchtitan, NeMo AutoModel; schedule.json beside it",
         .of = "torch-csv",
         .files = {"schedule.csv", "schedule.comms.csv", "schedule.json"},
         .check = why_no_csv,
         .write = csv_files,
         .how_to_run = how_to_run_csv},
        {.name = "torch-actions",
         .about = "actions.json: action lists with tensors and peers, for an executor that runs DAGs of modules",
         .files = {"actions.json"},
         .check = why_no_lists,
         .write = list_files},
        {.name = "chrome-trace",
         .about = "trace.json.gz: the predicted step, for Perfetto",
         .is_trace = true,
         .files = {"trace.json.gz"},
         .check = why_no_trace,
         .write = trace_files},
        megatron_row(),
        megatron_mimo_row(),
        {.name = "torchtitan",
         .about = "torchtitan.sh: launch flags of torchtitan",
         .of = "torchtitan",
         .files = {"torchtitan.sh"},
         .title = "torchtitan",
         .folder = "torchtitan",
         .check_launch = why_no_torchtitan,
         .write_launch = torchtitan_files,
         .how_to_run = how_to_run_torchtitan},
        {.name = "fsdp2",
         .about = "accelerate.yaml and llama_factory.yaml, fsdp.json and swift.sh: FSDP2 by LLaMA-Factory and ms-swift",
         .of = "fsdp2",
         .files = {"accelerate.yaml", "llama_factory.yaml", "fsdp.json", "swift.sh"},
         .title = "FSDP2",
         .folder = "fsdp2",
         .check_launch = why_no_fsdp2,
         .write_launch = fsdp2_files,
         .how_to_run = how_to_run_fsdp2},
        {.name = "deepspeed",
         .about = "deepspeed.json and swift.sh: DeepSpeed by ms-swift",
         .of = "deepspeed",
         .files = {"deepspeed.json", "swift.sh"},
         .title = "DeepSpeed",
         .folder = "deepspeed",
         .check_launch = why_no_deepspeed,
         .write_launch = deepspeed_files,
         .how_to_run = how_to_run_deepspeed},
        {.name = "llama-factory",
         .about = "llama_factory.yaml: LLaMA-Factory, which takes deepspeed.json",
         .of = "deepspeed",
         .files = {"llama_factory.yaml"},
         .title = "LLaMA-Factory",
         .folder = "deepspeed",
         .check_launch = why_no_llama_factory,
         .write_launch = llama_factory_files,
         .how_to_run = how_to_run_llama_factory}};
    return all;
}

}  // namespace pipeweaver::emit
