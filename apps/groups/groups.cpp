// pipeweaver groups: modules on GPUs of their own, beside the same job on shared GPUs.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/mimo_script.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/groups/step_problem.hpp"
#include "pipeweaver/planner/groups_words.hpp"
#include "pipeweaver/planner/host_bound.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using groups::Placed;
using groups::Placing;

struct Groups {
    explicit Groups(CLI::App& app) : options(app) {
        console.add_to(app);
        options.with_configuration();
        asked.add_apart_from_layout(options);
        options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
        options.group("GPUs");
        options.text("groups", which, "auto|FILE|MODULE=GPUS,...",
                     "auto (default): each module on GPUs of its own, as many as are best; or GPUs of each group, like "
                     "vit=16,llm=112:tp8:pp2, with tp, cp, pp, dp and zero as far as they are given, modules of one "
                     "group joined by +; or a file that says it (JSON or YAML)");
        options.integer("tp", tp, 1, most_gpus, "of the layout on shared GPUs (default: the best)");
        options.integer("pp", pp, 1, most_gpus, "of the layout on shared GPUs (default: the best)");
        options.choice(
            "cut", cut, {"by-time", "even"},
            "how shared GPUs cut the model: by time (default), or the language model evenly, encoders on the "
            "first stage");
        options.text("out", out, "FILE",
                     "write MegatronMIMO's grids of the split to this script, for Megatron-Bridge's launcher");
        options.writes();
        options.text("problem", problem, "FILE",
                     "write the step as a schedule problem, with the ranks of all groups, for `pipeweaver solve`");
        options.writes();
    }

    void run() {
        options.apply();
        require_given(asked.needed());
        if (asked.batch.empty() == asked.dataset.empty())
            fail(ErrorKind::input, "--batch, --dataset: allowed is one of the two, and one is needed");
        if (asked.overrides.any_zero)
            fail(ErrorKind::input, "--zero: {}", must_be("auto", "0 or 1 with groups of GPUs"));
        setup = asked.setup();
        drawn = planner::drawn_for_groups(asked, setup->model, seed);
        setup->headroom = asked.headroom_for(setup->model, drawn.microbatches);
        if (drawn.microbatches.empty()) fail(ErrorKind::input, "the batch has no microbatch");
        const groups::Request request{&*setup, drawn.microbatches, groups::asked_groups(which, setup->model), tp,
                                      pp,      cut == "even"};
        own = on_own_gpus(request);
        shared = on_shared_gpus(request);
        if (!own && !shared)
            fail(ErrorKind::limit,
                 "{} fits {} GPUs of {} neither in groups nor on shared GPUs, with {} that replicas divide: "
                 "allowed are more GPUs or smaller microbatches",
                 setup->model.name, setup->cluster.gpus, setup->cluster.name,
                 plural(drawn.microbatches.size(), "microbatch"));
        launch_eagerly(request);
        write();
        if (console.json)
            print_json(as_json());
        else
            print_text("{}", head() + table() + verdict());
    }

private:
    static constexpr std::int64_t most_gpus = 1'000'000;

    void write() const {
        if (out.empty() && problem.empty()) return;
        if (!own) fail(ErrorKind::limit, "{}: nothing fits in groups", out.empty() ? "--problem" : "--out");
        std::vector<FileToWrite> files;
        if (!out.empty())
            files.push_back({out, emit::mimo_script(*own, setup->model, planner::planned_for(options.values()))});
        if (!problem.empty())
            files.push_back({problem, schedule::to_json(groups::problem_of(*own, emulator::capacity_of(*setup)))});
        write_files(files);
    }

    // The same splits launched kernel by kernel, where the recipe does not say how layers are.
    void launch_eagerly(groups::Request request) {
        const auto waiting = planner::waiting_for_host(*setup);
        if (!waiting || !own || !shared) return;
        request.setup = &*waiting;
        for (std::size_t g = 0; g < own->groups.size(); ++g) groups::take_layout(own->groups[g], request.groups[g]);
        request.tp = shared->groups.front().tp;
        request.pp = shared->groups.front().pp;
        eager_own = on_own_gpus(request);
        eager_shared = on_shared_gpus(request);
    }

    std::string head() const {
        return fmt::format("{} on {} x {}, recipe {}; {} of {}: {}\n", setup->model.name, setup->cluster.gpus,
                           setup->cluster.device, setup->recipe.name, plural(drawn.samples, "sample"), drawn.name,
                           plural(drawn.microbatches.size(), "microbatch"));
    }

    static void add_rows(TextTable& table, const Placing& placing, const std::string& where) {
        for (const Placed& group : placing.groups) {
            const auto part = [&](Duration time) {
                const auto all = static_cast<double>(group.pp * placing.step.count());
                return fmt::format("{:.1f}", 100 * static_cast<double>(time.count()) / all);
            };
            const auto tp = group.cp > 1 ? fmt::format("{} x cp {}", group.tp, group.cp) : std::to_string(group.tp);
            table.add({where, group.name, std::to_string(group.gpus()), tp, std::to_string(group.pp),
                       std::to_string(group.dp), emulator::name_of(group.recompute), human(group.peak),
                       part(group.spent.busy), part(group.spent.fill), part(group.spent.waiting),
                       part(group.spent.ending), part(group.spent.drain)});
        }
    }

    std::string table() const {
        TextTable table({{"place", true},
                         {"group", true},
                         {"GPUs", false},
                         {"tp", false},
                         {"pp", false},
                         {"dp", false},
                         {"recompute", true},
                         {"peak", false},
                         {"busy", false},
                         {"fill", false},
                         {"waits", false},
                         {"gradients", false},
                         {"drain", false}});
        if (own) add_rows(table, *own, "own");
        if (shared) add_rows(table, *shared, "shared");
        return table.text();
    }

    std::string line(const std::string& what, const std::optional<Placing>& placing) const {
        if (!placing) return fmt::format("{}: nothing fits\n", what);
        return fmt::format("{}: {} a step on {} of {} GPUs, {} of microbatches\n", what, human(placing->step),
                           placing->gpus(), setup->cluster.gpus, plural(placing->rounds, "round"));
    }

    static std::optional<double> change(const std::optional<Placing>& own, const std::optional<Placing>& shared) {
        if (!own || !shared) return {};
        return ratio(own->step, shared->step) - 1;
    }

    static std::string in_words(double change) {
        if (std::abs(change) < 0.0005) return "as long";
        return fmt::format("{:.1f} % {}", 100 * std::abs(change), change <= 0 ? "shorter" : "longer");
    }

    std::string verdict() const {
        std::string text = line("own GPUs", own) + line("shared GPUs", shared);
        if (const auto by = change(eager_own, eager_shared))
            text += fmt::format("host: never waited for; launched kernel by kernel, {} and {}: {}\n",
                                human(eager_own->step), human(eager_shared->step), in_words(*by));
        if (const auto modelled = emulator::modelled_text(*setup); !modelled.empty())
            text += fmt::format("modelled: {}\n", modelled);
        if (const auto by = change(own, shared))
            text += fmt::format("on GPUs of their own a step is {}\n", in_words(*by));
        return text;
    }

    static nlohmann::ordered_json placing_json(const std::optional<Placing>& placing) {
        if (!placing) return nullptr;
        nlohmann::ordered_json json{{"step_ns", placing->step.count()},
                                    {"rounds", placing->rounds},
                                    {"gpus", placing->gpus()},
                                    {"groups", nlohmann::ordered_json::array()}};
        for (const Placed& group : placing->groups)
            json["groups"].push_back({{"group", group.name},
                                      {"gpus", group.gpus()},
                                      {"tp", group.tp},
                                      {"cp", group.cp},
                                      {"pp", group.pp},
                                      {"dp", group.dp},
                                      {"zero", group.zero},
                                      {"recompute", emulator::name_of(group.recompute)},
                                      {"peak_bytes", group.peak.count},
                                      {"stages_ns",
                                       {{"busy", group.spent.busy.count()},
                                        {"fill", group.spent.fill.count()},
                                        {"waits", group.spent.waiting.count()},
                                        {"gradients", group.spent.ending.count()},
                                        {"drain", group.spent.drain.count()}}}});
        return json;
    }

    // As --groups takes it; empty: nothing fits.
    std::string split() const { return own ? groups::text_of(*own) : std::string(); }

    nlohmann::ordered_json as_json() const {
        return {{"format", "pipeweaver-groups/1"},
                {"model", setup->model.name},
                {"cluster", setup->cluster.name},
                {"gpus", setup->cluster.gpus},
                {"samples", drawn.samples},
                {"microbatches", drawn.microbatches.size()},
                {"split", or_null(split())},
                {"own", placing_json(own)},
                {"shared", placing_json(shared)},
                {"change", or_null(change(own, shared))},
                {"eager_change", or_null(change(eager_own, eager_shared))}};
    }

    Options options;
    Console console;
    planner::WorkloadOptions asked;
    std::string which = "auto", cut = "by-time", out, problem;
    std::optional<std::int64_t> tp, pp;
    std::int64_t seed = 1;
    std::optional<emulator::Setup> setup;
    planner::DrawnForGroups drawn;
    std::optional<Placing> own, shared, eager_own, eager_shared;
};

}  // namespace

void add_groups(CLI::App& program) {
    add_command<Groups>(
        program, "groups", "modules on GPUs of their own, beside the same job on shared GPUs",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) [--groups "
                     "auto|MODULE=GPUS,...] [OPTION...]",
         .description =
             "Splits a job's GPUs into groups: encoder, language model and generator each have GPUs, tensor and "
             "pipeline "
             "parallelism and replicas of their own (DistTrain, arXiv 2408.04275; Megatron MIMO). Of all splits and "
             "layouts that fit the memory it prints the one with the shortest step, what its GPUs wait for, and the "
             "best "
             "layout with all modules on the same GPUs, by the same costs and 1F1B on both sides.\n"
             "Where the time of a group's GPUs goes, in percent of the step: busy; fill: before the first forward; "
             "waits: for other stages; gradients: of replicas, with the optimizer; "
             "drain: after these, until the step ends.",
         .examples = {{"The best split of 32 GPUs",
                       "pipeweaver groups --model dip-vlm-m --cluster h100-sxm:32 --dataset vlm-mix"},
                      {"An encoder on one GPU more, beside the language model in a layout of yours",
                       "pipeweaver groups --model qwen3.5-27b --cluster h100-sxm:17 --dataset constant-1472+1x768px "
                       "--microbatch-tokens 2048 --groups vit=1,llm=16:tp4:pp2 --tp 4 --pp 2 --cut even"}},
         .files = {},
         .see_also = {"pipeweaver emulate", "pipeweaver recommend", "docs/own-gpus.md"}});
}

}  // namespace pipeweaver::apps
