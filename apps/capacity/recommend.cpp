// pipeweaver recommend: the fewest GPUs, the cheapest and the fastest way to train a model.
#include "pipeweaver/capacity/recommend.hpp"

#include "apps/capacity/answer.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "apps/output_kind.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/capacity/run.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

struct Recommend {
    explicit Recommend(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("What is trained");
        add_of_plan("model", "MODEL",
                    "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json (required)");
        add_of_plan("dataset", "DATASET", "draw steps from this data set of `pipeweaver list datasets`");
        add_of_plan("batch", "FILE", "the samples of a step (.jsonl), in place of a data set");
        add_of_plan("global-batch", "N|Nmb",
                    "samples of a step of all replicas, or with mb their microbatches (default: 1024)");
        options.text("tokens", asked.tokens, "TOKENS", "of the whole training run, like 300B");
        add_how_it_trains();
        add_packing();
        add_of_plan("headroom", "auto|PERCENT",
                    "of a GPU's usable memory that is kept free, as `plan` has it (default: auto)");
        add_of_plan("network", "NETWORK", "how high bandwidth joins the GPUs, as `plan --network` has it");
        add_of_plan("rack", "GPUS[:OVERSUBSCRIPTION]", "of all clusters, as `plan --rack` has it (default: no racks)");
        add_of_plan("target", "NAME", "what runs the job, as `plan --target` has it");
        add_of_plan("encoders", "HOW", "how encoders lie, as `plan --encoders` has it (default: as-built)");
        add_trained();
        add_of_plan("loader", "LOADER",
                    "what feeds the GPUs, as `plan --loader` has it: rows have what they wait for it");
        options.group("What is asked");
        options.parsed("days", "DAYS", "that the run may take",
                       [this](const std::string& text) { asked.days = parse_number("--days", text, 1e-6, 10'000); });
        options.parsed("budget-usd", "USD", "that it may cost", [this](const std::string& text) {
            asked.budget_usd = parse_number("--budget-usd", text, 1e-6, 1e12);
        });
        options.text("clusters", asked.clusters, "CLUSTER,...",
                     "to choose from, of `pipeweaver list clusters`, or files (default: h100-sxm,h200-sxm,b200-sxm)");
        options.text(
            "gpus", asked.gpus, "FROM-TO|N,...",
            "how many: a range, tried at doublings, and half-way between them up to 512; or counts (default: 64-2048)");
        options.text("prices", asked.prices, "CLUSTER=USD,...",
                     "of a GPU-hour, like h100-sxm=2.5,b200-sxm=5 (default: the clusters', where they have one)");
        options.text("cores", asked.cores, "usd=USD,included=N,node=N",
                     "what a core-hour of --loader costs, how many cores come with a GPU (default 0), and of how many "
                     "cores nodes are that are bought beside these (default 1)");
        options.text("cp", asked.cp, "N,...", "context parallel degrees to try, like 1 or 1,2,4 (default: all)");
        options.choice("groups", asked.groups, {"shared", "own", "auto"},
                       "whose GPUs: of all modules together (shared, the default), each module's own, as `pipeweaver "
                       "groups` splits them (own), or whichever takes the shorter step (auto)");
        options.text("faulty", asked.faulty, "PERCENT",
                     "of nodes that are down, like 2%: GPUs that are left for tensor parallel groups, and spares");
        options.group("The answer");
        options.text("out", out, "DIR", "write report.html, tables, and each row as a command and a study, too");
        options.writes();
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        complete();
        const Interrupt interrupt(console.quiet);
        std::optional<OutputFolder> folder;
        if (!out.empty()) {
            require_output_kind(out, OutputKind::recommend);
            folder.emplace(out);
        }
        const capacity::Study study = capacity::study_of(asked);
        const auto time = time_of(limits.budget, start);
        ShownCells shown(console);
        auto results = capacity::run_cells(study, {}, limits.executor(), time,
                                           [&](const capacity::RunProgress& now) { shown(now); });
        console.clear();
        require_all(results, time, "nothing is recommended");
        require_askable(results);
        const AnswerWanted wanted{.out = out, .start = &start, .time = time, .remarks = remarks()};
        give_answer(study, capacity::whole(std::move(results)), console, limits, wanted);
    }

private:
    // What is wrong of the job on each cluster alike is wrong in the options.
    static void require_askable(const std::vector<std::optional<capacity::CellResult>>& all) {
        const auto is_first = [&](const auto& one) { return one->why_not == all.front()->why_not; };
        if (all.empty() || all.front()->why_not.empty() || !std::all_of(all.begin(), all.end(), is_first)) return;
        fail(ErrorKind::input, "{}", all.front()->why_not);
    }

    void add_packing() {
        add_of_plan("packing", "WAY", "samples to microbatches, as `plan --packing` has it (default: balanced)");
        add_of_plan("microbatch-tokens", "N",
                    "that a microbatch holds at most, as `plan` has it (default: the model's)");
        add_of_plan("too-long", "error|drop|own",
                    "what becomes of a sample larger than a microbatch, as `plan` has it");
    }

    void add_trained() {
        add_of_plan("train", "PART,...", "what is trained, as `plan --train` has it");
        add_of_plan("freeze", "PART,...", "what is frozen, as `plan --freeze` has it");
        add_of_plan("lora", "RANK", "adapters in place of trained weights, as `plan --lora` has them");
        add_of_plan("lora-modules", "MODULE,...", "that have adapters, as `plan` has it");
        add_of_plan("lora-targets", "qkv,output,up,down", "matrices that have adapters, as `plan` has it");
        add_of_plan("lora-experts", "none|each|together", "what routed experts have of adapters, as `plan` has it");
        add_of_plan("offload-optimizer", "PERCENT", "of the optimizer's states on the host, as `plan` has it");
    }

    void add_of_plan(const std::string& name, const std::string& kind, const std::string& about) {
        options.parsed(name, kind, about, [this, name](const std::string& text) {
            if (!text.empty()) asked.plan.set(name, text);
        });
    }

    void add_how_it_trains() {
        add_of_plan("recipe", "RECIPE", "how the framework trains (default: megatron-core)");
        add_of_plan("launched", "graphs|eager", "how layers are launched, as `plan` has it: each row has one step");
        add_of_plan("precision", "FORMAT|MODULE=FORMAT,...",
                    "what products of blocks are in, as `plan` has it (default: the recipe's)");
        add_of_plan("sparsity", "[MODULE=]SHARE[/SHARE...]",
                    "what attention of a diffusion transformer leaves out, as `plan` has it (default: the model's)");
        add_of_plan("costs", "FILE",
                    "operator costs from this file of `costdb import`; what it lacks: from the embedded tables");
        add_of_plan("anchor", "FILE", "a measured launch that corrects the rows of its device, as `plan` has it");
    }

    std::string of_plan(std::string_view name) const {
        const auto* value = asked.plan.find(name);
        return value == nullptr ? std::string() : value->text;
    }

    // What the model's rule makes of a batch's sizes.
    std::vector<std::string> sizes() const {
        if (of_plan("batch").empty() || console.json) return {};
        workloads::Model of = workloads::find_model(of_plan("model"));
        of.too_long = workloads::TooLong::own;  // each cell has said what becomes of those
        auto lines = workloads::resized(workloads::read_batch(of_plan("batch"), of), of);
        for (std::string& line : lines) line.insert(0, "sizes: ");
        return lines;
    }

    std::vector<std::string> remarks() const {
        std::vector<std::string> all = sizes();
        if (console.json) return all;
        planner::WorkloadOptions of;
        of.model = of_plan("model");
        of.encoders = of_plan("encoders");
        of.target = planner::target_called(of_plan("target"));
        if (const std::string built = how_built(of.found_model()); !built.empty()) all.push_back("encoders: " + built);
        return all;
    }

    void complete() {
        const bool has_batch = !of_plan("batch").empty(), has_dataset = !of_plan("dataset").empty();
        require_given({planner::needed_model(of_plan("model")),
                       {!asked.tokens.empty(), "--tokens TOKENS", "of the whole training run, like 300B"},
                       {has_batch || has_dataset, "--batch FILE or --dataset DATASET", "the samples of a step"}});
        if (has_dataset && has_batch) fail(ErrorKind::input, "--batch, --dataset: exactly one of the two is needed");
        if (!has_batch && of_plan("global-batch").empty()) asked.plan.set("global-batch", "1024");
        asked.plan.set("seed", std::to_string(limits.seed));
        if (limits.max_rounds) asked.plan.set("max-rounds", std::to_string(*limits.max_rounds));
    }

    Options options;
    Console console;
    Limits limits;
    capacity::RecommendAsked asked;
    std::string out;
};

}  // namespace

void add_recommend(CLI::App& program) {
    add_command<Recommend>(
        program, "recommend", "how many of which GPUs: the fewest, the cheapest, the fastest",
        {.synopsis = "--model MODEL (--dataset DATASET | --batch FILE) --tokens TOKENS [--days DAYS] [OPTION...]",
         .description =
             "Tries every layout of a model on clusters of several sizes and says which is the smallest, the cheapest "
             "and the fastest that trains so many tokens in so many days, or for so many USD: with the layout, the "
             "step under the best launch flags and as it is planned with a search, days, GPU-hours, USD, memory left "
             "and how far the costs may be off. Each row is a command of `pipeweaver plan` that plans it again.",
         .examples = {{"300 B tokens in 30 days",
                       "pipeweaver recommend --model dip-vlm-s --dataset vlm-mix --global-batch 512 --tokens 300B "
                       "--days 30 --gpus 32-128 --prices h100-sxm=2.5,h200-sxm=3.2,b200-sxm=5"},
                      {"The fastest within a budget, with a report",
                       "pipeweaver recommend --model dip-vlm-s --dataset vlm-mix --global-batch 512 --tokens 100B "
                       "--budget-usd 80000 --clusters h100-sxm --gpus 64,128 --prices h100-sxm=2.5 --out rent"}},
         .files = {{"report.html", "with --out: the answer for a person, one page that loads nothing"},
                   {"rows/", "with --out: the best rows, each as a command and as a study of one point"}},
         .see_also = {"pipeweaver capacity", "pipeweaver support", "pipeweaver plan", "docs/capacity-study.md"},
         .usual = {"model", "batch", "dataset", "global-batch", "tokens", "days", "budget-usd", "clusters", "gpus",
                   "prices", "recipe", "out", "budget", "json"}});
}

}  // namespace pipeweaver::apps
