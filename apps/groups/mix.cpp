// pipeweaver mix: one training on two kinds of GPU, beside each kind alone.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/planner/mixed.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

using planner::GroupStep;
using planner::KindOfGpus;
using Best = planner::MixedPlan::Best;

bool is_one_kind(workloads::Cluster first, const workloads::Cluster& second) {
    first.gpus = second.gpus;
    return workloads::to_json(first) == workloads::to_json(second);
}

struct Mix {
    explicit Mix(CLI::App& app) : options(app) {
        console.add_to(app);
        options.with_configuration();
        options.group("Model, GPUs and batch");
        options.text("model", asked.model, "MODEL",
                     "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json (required)");
        options.text("cluster", clusters, "CLUSTER+CLUSTER",
                     "two kinds of GPU, like h100-sxm:16+a100-sxm:32, or files (required)");
        options.parsed("bridge", "SPEED",
                       "that all nodes of one kind reach those of the other with (default: their networks')",
                       [this](const std::string& text) { bridge = parse_bandwidth(text); });
        options.text("batch", asked.batch, "FILE", "a batch file (.jsonl, one sample a line)");
        options.text("dataset", asked.dataset, "DATASET",
                     "draw the step from this data set of `pipeweaver list datasets`");
        options.integer("microbatches", microbatches, 2, 100'000,
                        "with --dataset: of a step, on all GPUs together (default: 64)");
        options.integer("microbatch-tokens", asked.microbatch_tokens, 1, 100'000'000,
                        "that a microbatch holds at most (default: the model's)");
        options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
        options.group("How the framework trains");
        options.text("recipe", asked.recipe, "RECIPE",
                     "a recipe of `pipeweaver list recipes` (default: megatron-core)");
        options.text("precision", precision, "KIND=FORMAT",
                     "that one kind may have products in where that is faster, like h20-sxm=fp8 (default: as the "
                     "recipe); it changes the numbers that come out");
    }

    void run() {
        options.apply();
        check();
        const auto [first, second] = kinds();
        names.first = first.name();
        check_precision_of(first, second);
        if (!second) return say_one(first);
        names.second = second->name();
        speed = bridge.value_or(planner::bridge_of(first.cluster, second->cluster));
        require_bridge(first.cluster);
        const double flops = of_peak(first.cluster), others = of_peak(second->cluster);
        const auto one = kind(first, flops / (flops + others));
        const auto other = kind(*second, others / (flops + others));
        if (one || other)
            plan = planner::plan_mixed(one, other, batch, speed, limits.executor());
        else
            batch = batch_alone(first);
        add_pipelines(first, *second);
        if (!one && !other && !plan.pipeline)
            fail(ErrorKind::limit, "{}: neither {} nor {} hold it, nor a pipeline on both: {}", asked.model,
                 names.first, names.second, why);
        if (plan.best() == Best::none)
            fail(ErrorKind::limit, "{}: no layout of {} or {} runs under 1F1B", asked.model, names.first, names.second);
        say();
    }

private:
    void check() const {
        require_given({{!asked.model.empty(), "--model MODEL", "what is trained"},
                       {!clusters.empty(), "--cluster CLUSTER+CLUSTER", "two kinds of GPU"},
                       {!asked.batch.empty() || !asked.dataset.empty(), "--dataset DATASET", "or --batch FILE"}});
        if (!asked.batch.empty() && microbatches)
            fail(ErrorKind::input, "--microbatches: goes with --dataset, a batch file has its own");
    }

    // A slower one would take longer for a model's gradients than 64 bits of ns can count.
    void require_bridge(const workloads::Cluster& first) const {
        constexpr std::int64_t slowest = 1'000'000;
        if (speed.bytes_per_second <= 0)
            fail(ErrorKind::input, "--bridge: {} has no network: allowed is to say a speed, like 50GB/s",
                 first.network.bytes_per_second <= 0 ? names.first : names.second);
        if (speed.bytes_per_second < slowest)
            fail(ErrorKind::input, "--bridge: {}",
                 must_be(fmt::format("{} B/s", speed.bytes_per_second), "at least 1 MB/s"));
    }

    // A kind of GPU, and how --cluster names it.
    struct Kind {
        std::string text;
        workloads::Cluster cluster;

        std::string name() const { return fmt::format("{}:{}", cluster.name, cluster.gpus); }
    };

    // The same with other GPUs of its kind.
    static Kind together(const Kind& kind, std::int64_t gpus) {
        const auto colon = kind.text.rfind(':');
        const bool counted = colon != std::string::npos && integer_in(kind.text.substr(colon + 1), 1, INT64_MAX);
        return of_text(fmt::format("{}:{}", counted ? kind.text.substr(0, colon) : kind.text, gpus));
    }

    static Kind of_text(const std::string& text) { return {text, workloads::find_cluster(text)}; }

    // One kind, on all GPUs, where both are the same.
    std::pair<Kind, std::optional<Kind>> kinds() const {
        const auto plus = clusters.find('+');
        const Kind first = of_text(clusters.substr(0, plus));
        if (plus == std::string::npos) return {first, std::nullopt};
        const std::string rest = clusters.substr(plus + 1);
        if (rest.find('+') != std::string::npos)
            fail(ErrorKind::input, "--cluster: {}", must_be(clusters, "two kinds, like h100-sxm:16+a100-sxm:32"));
        const Kind second = of_text(rest);
        if (!is_one_kind(first.cluster, second.cluster)) return {first, second};
        return {together(first, first.cluster.gpus + second.cluster.gpus), std::nullopt};
    }

    static double of_peak(const workloads::Cluster& cluster) {
        return workloads::device(cluster.device).bf16_flops * static_cast<double>(cluster.gpus);
    }

    std::int64_t all_microbatches() const { return microbatches.value_or(64); }

    // As --precision names it.
    static bool is_named(const Kind& kind, const std::string& name) {
        return name == kind.cluster.name || name == kind.text.substr(0, kind.text.rfind(':'));
    }

    void check_precision_of(const Kind& first, const std::optional<Kind>& second) const {
        if (precision.empty()) return;
        const auto is = precision.find('=');
        const std::string name = precision.substr(0, is);
        const bool says_format = is != std::string::npos && is + 1 < precision.size();
        if (says_format && (is_named(first, name) || (second && is_named(*second, name)))) return;
        fail(ErrorKind::input, "--precision: {}",
             must_be(precision, fmt::format("KIND=FORMAT, of {}{}", first.cluster.name,
                                            second ? " or " + second->cluster.name : "")));
    }

    // What products of the kind may be in: as the recipe says, then as --precision does.
    std::vector<std::string> formats_of_kind(const Kind& kind) const {
        const auto is = precision.find('=');
        if (precision.empty() || !is_named(kind, precision.substr(0, is))) return {""};
        return {"", precision.substr(is + 1)};
    }

    planner::WorkloadOptions options_on(const std::string& cluster, const std::string& format) const {
        planner::WorkloadOptions options_of_kind = asked;
        options_of_kind.cluster = cluster;
        options_of_kind.overrides.precision = format;
        return options_of_kind;
    }

    // The job on GPUs of one kind in the layout that suits so many microbatches of the data set.
    planner::Request request(const std::string& cluster, const std::string& format, std::int64_t count) const {
        planner::WorkloadOptions options_of_kind = options_on(cluster, format);
        options_of_kind.layout_as = planner::WorkloadOptions::automatic;
        if (asked.batch.empty()) options_of_kind.global_batch = {std::max<std::int64_t>(1, count), true};
        return options_of_kind.request(static_cast<std::uint64_t>(seed), limits.executor());
    }

    // Of a model that neither kind holds: as one GPU would be given it.
    planner::Batch batch_alone(const Kind& kind) const {
        planner::WorkloadOptions on_one = options_on(together(kind, 1).text, "");
        on_one.tp.number = on_one.pp.number = on_one.dp.number = 1;
        if (asked.batch.empty()) on_one.global_batch = {all_microbatches(), true};
        return on_one.request(static_cast<std::uint64_t>(seed), limits.executor()).batch;
    }

    // The fastest over both kinds, in what products of each may be in.
    void add_pipelines(const Kind& first, const Kind& second) {
        for (const std::string& of_first : formats_of_kind(first))
            for (const std::string& of_second : formats_of_kind(second)) {
                const auto one = options_on(first.text, of_first).setup();
                const auto other = options_on(second.text, of_second).setup();
                auto found = planner::plan_pipeline_of_kinds(one, other, batch, speed, limits.executor());
                if (!found || (plan.pipeline && plan.pipeline->step <= found->step)) continue;
                plan.pipeline = std::move(found);
                say_if_modelled(one);
                say_if_modelled(other);
            }
    }

    // Of all microbatches this group's share, so many that replicas divide them.
    std::int64_t part_of(double share, std::int64_t gpus) const {
        const auto part = std::llround(share * static_cast<double>(all_microbatches()));
        return part > gpus ? part - part % gpus : std::max<std::int64_t>(1, part);
    }

    // None, and why, where no layout holds the model.
    std::optional<planner::Request> request_that_fits(const std::string& cluster, const std::string& format,
                                                      std::int64_t count) {
        try {
            return request(cluster, format, count);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::limit) throw;
            why = error.what();
            return {};
        }
    }

    // None where no layout holds the model with all microbatches.
    std::optional<KindOfGpus> kind(const Kind& of, double share) {
        KindOfGpus group;
        for (const std::string& format : formats_of_kind(of)) {
            auto alone = request_that_fits(of.text, format, all_microbatches());
            if (!alone) continue;
            say_if_modelled(*alone->job.setup);
            group.jobs.push_back(alone->job);
            if (batch.microbatches.empty()) batch = std::move(alone->batch);
            if (!asked.batch.empty() || share >= 1) continue;
            if (auto part = request_that_fits(of.text, format, part_of(share, of.cluster.gpus)))
                group.jobs.push_back(std::move(part->job));
        }
        if (group.jobs.empty()) return {};
        return group;
    }

    void say_if_modelled(const emulator::Setup& setup) {
        auto text = emulator::modelled_text(setup);
        if (!text.empty() && std::find(modelled.begin(), modelled.end(), text) == modelled.end())
            modelled.push_back(std::move(text));
    }

    // As it is without a second kind.
    void say_one(const Kind& alone) {
        const auto one = kind(alone, 1);
        if (one) plan = planner::plan_mixed(one, std::nullopt, batch, {1}, limits.executor());
        if (!plan.first)
            fail(ErrorKind::limit, "{}: {} does not hold it: {}", asked.model, names.first,
                 why.empty() ? "its layout does not run under 1F1B" : why);
        say();
    }

    void say() const {
        if (console.json)
            print_json(as_json());
        else
            print_text("{}", as_text());
    }

    std::string name_of_best() const {
        return plan.best() == Best::pipeline ? "pipeline"
               : plan.best() == Best::both   ? "both"
               : plan.best() == Best::first  ? names.first
                                             : names.second;
    }

    Duration best_step() const {
        return plan.best() == Best::pipeline ? plan.pipeline->step
               : plan.best() == Best::both   ? plan.both->step
               : plan.best() == Best::first  ? plan.first->step
                                             : plan.second->step;
    }

    static std::string layout_text(const emulator::Layout& layout, int zero) {
        return fmt::format("{}, ZeRO {}", emulator::name_of(layout), zero);
    }

    static std::string format_text(const std::string& products) { return products.empty() ? "bf16" : products; }

    TextTable table() const {
        TextTable table({{"GPUs", true},
                         {"layout", true},
                         {"microbatches", false},
                         {"products", true},
                         {"recompute", true},
                         {"step", false},
                         {"peak", false}});
        const auto add = [&](const std::string& label, const GroupStep& group) {
            table.add({label, layout_text(group.layout, group.zero), std::to_string(group.microbatches),
                       precision.empty() ? "" : format_text(group.products), group.recompute, human(group.step),
                       human(group.peak)});
        };
        if (plan.first) add(names.first + " alone", *plan.first);
        if (plan.second) add(names.second + " alone", *plan.second);
        if (plan.both) add("both: " + names.first, plan.both->first);
        if (plan.both) add("      " + names.second, plan.both->second);
        if (!plan.pipeline) return table;
        add("pipeline: " + names.first, in_pipeline(plan.pipeline->one));
        add("          " + names.second, in_pipeline(plan.pipeline->other));
        return table;
    }

    GroupStep in_pipeline(const planner::StagesOfKind& stages) const {
        return {.microbatches = plan.pipeline->microbatches,
                .layout = plan.pipeline->layout,
                .zero = plan.pipeline->zero,
                .recompute = stages.recompute,
                .products = stages.products,
                .step = plan.pipeline->step,
                .peak = stages.peak};
    }

    std::string pipeline_text() const {
        const auto& [one, other] = std::tie(plan.pipeline->one, plan.pipeline->other);
        const auto layers = [](const std::string& name, const planner::StagesOfKind& stages) {
            const bool is_one = stages.layers == std::vector<std::int64_t>{1};
            return fmt::format("{} {} on {}", fmt::join(stages.layers, ","), noun_of(is_one, "layer"), name);
        };
        const std::string first = layers(names.first, one), second = layers(names.second, other);
        return fmt::format("pipeline: {} a step, {}, then {}\n", human(plan.pipeline->step),
                           plan.pipeline->turned ? second : first, plan.pipeline->turned ? first : second);
    }

    bool lowers() const {
        const auto lower = [](const auto& step) { return step && !step->products.empty(); };
        switch (plan.best()) {
            case Best::pipeline:
                return !plan.pipeline->one.products.empty() || !plan.pipeline->other.products.empty();
            case Best::both:
                return !plan.both->first.products.empty() || !plan.both->second.products.empty();
            default:
                return plan.best() == Best::first ? lower(plan.first) : lower(plan.second);
        }
    }

    std::string as_text() const {
        std::string text =
            fmt::format("{}: {} of {}\n", asked.model, plural(batch.microbatches.size(), "microbatch"), batch.name) +
            table().text();
        if (plan.both)
            text +=
                fmt::format("both: {} a step, of which gradients take {} to be exchanged by {}/s\n",
                            human(plan.both->step), human(plan.both->exchange), human(Bytes{speed.bytes_per_second}));
        if (plan.pipeline) text += pipeline_text();
        text += fmt::format("best: {}, {} a step\n", name_of_best(), human(best_step()));
        if (!precision.empty() && lowers())
            text += "note: with products in fewer bits on some GPUs losses differ; by how much is not said here\n";
        for (const std::string& one : modelled) text += fmt::format("modelled: {}\n", one);
        return text;
    }

    static nlohmann::ordered_json group_json(const std::string& cluster, const GroupStep& group) {
        return {{"cluster", cluster},
                {"microbatches", group.microbatches},
                {"tp", group.layout.tp},
                {"pp", group.layout.pp},
                {"dp", group.layout.dp},
                {"cp", group.layout.cp},
                {"ep", group.layout.ep},
                {"zero", group.zero},
                {"recompute", group.recompute},
                {"products", format_text(group.products)},
                {"step_ns", group.step.count()},
                {"peak_bytes", group.peak.count}};
    }

    nlohmann::ordered_json stages_json(const std::string& cluster, const planner::StagesOfKind& stages) const {
        auto json = group_json(cluster, in_pipeline(stages));
        json["layers"] = stages.layers;
        return json;
    }

    // The kind with the first ranks first.
    nlohmann::ordered_json pipeline_json() const {
        std::vector<nlohmann::ordered_json> groups{stages_json(names.first, plan.pipeline->one),
                                                   stages_json(names.second, plan.pipeline->other)};
        if (plan.pipeline->turned) std::swap(groups[0], groups[1]);
        return {{"step_ns", plan.pipeline->step.count()},
                {"bridge_bytes_per_s", speed.bytes_per_second},
                {"groups", groups}};
    }

    nlohmann::ordered_json as_json() const {
        nlohmann::ordered_json json{{"model", asked.model},
                                    {"microbatches", batch.microbatches.size()},
                                    {"best", name_of_best()},
                                    {"step_ns", best_step().count()},
                                    {"alone", nlohmann::ordered_json::array()},
                                    {"both", nullptr},
                                    {"pipeline", nullptr},
                                    {"modelled", modelled}};
        if (plan.first) json["alone"].push_back(group_json(names.first, *plan.first));
        if (plan.second) json["alone"].push_back(group_json(names.second, *plan.second));
        if (plan.pipeline) json["pipeline"] = pipeline_json();
        if (!plan.both) return json;
        json["both"] = {
            {"step_ns", plan.both->step.count()},
            {"exchange_ns", plan.both->exchange.count()},
            {"bridge_bytes_per_s", speed.bytes_per_second},
            {"groups", {group_json(names.first, plan.both->first), group_json(names.second, plan.both->second)}}};
        return json;
    }

    Options options;
    Console console;
    Limits limits;
    planner::WorkloadOptions asked;
    std::string clusters, why, precision;
    std::optional<Bandwidth> bridge;
    std::optional<std::int64_t> microbatches;
    std::int64_t seed = 1;
    std::pair<std::string, std::string> names;
    planner::Batch batch;
    planner::MixedPlan plan;
    std::vector<std::string> modelled;  // of kinds that are known by their data sheets
    Bandwidth speed{};
};

}  // namespace

void add_mix(CLI::App& program) {
    add_command<Mix>(
        program, "mix", "one training on two kinds of GPU, beside each kind alone",
        {.synopsis = "--model MODEL --cluster CLUSTER+CLUSTER (--dataset DATASET | --batch FILE) [OPTION...]",
         .description =
             "Shares a step's microbatches out between two kinds of GPU, each with replicas of the whole model in a "
             "layout of its own that fits its memory, so that the slower is as early as can be; then both exchange "
             "their gradients. Or layers are shared out: every replica's pipeline has ranks of both kinds, and more "
             "layers on the faster. Beside it stands each kind alone: where that is faster it is the answer, so that a "
             "slower kind never makes a step longer. Two clusters of one kind are one cluster. Steps are those of "
             "`pipeweaver emulate` under 1F1B.",
         .examples = {{"What older GPUs add",
                       "pipeweaver mix --model qwen2.5-7b --cluster h100-sxm:8+a100-sxm:8 --dataset constant-4096 "
                       "--microbatches 32"},
                      {"Layers shared out, and fp8 on the slower",
                       "pipeweaver mix --model qwen2.5-32b --cluster h100-sxm:8+l40s:8 --dataset constant-4096 "
                       "--microbatches 32 --precision l40s=fp8"},
                      {"Two data centres",
                       "pipeweaver mix --model qwen2.5-7b --cluster h100-sxm:8+h200-sxm:8 --dataset constant-4096 "
                       "--microbatches 32 --bridge 5GB/s"}},
         .files = {},
         .see_also = {"pipeweaver emulate", "pipeweaver groups", "pipeweaver recommend", "docs/rl.md"},
         .usual = {"model", "cluster", "bridge", "batch", "dataset", "microbatches", "microbatch-tokens", "recipe",
                   "precision"}});
}

}  // namespace pipeweaver::apps
