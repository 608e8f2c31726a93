// pipeweaver fuse: two models trained at once on the same ranks, in opposite directions.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/fused_plan.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/rl/lengths.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

using schedule::Pipeline;

// What a pipeline is called, and how it runs alone.
struct Said {
    std::string name, policy;
};

struct Fuse {
    explicit Fuse(CLI::App& app) : options(app) {
        add_operand(app, "problem", problem, "FILE", "problem file of the first pipeline, in place of --model");
        add_operand(app, "beside-problem", beside_problem, "FILE", "problem file of what runs beside it");
        console.add_to(app);
        options.with_configuration();
        add_models(options);
        options.group("The schedule");
        options.text("out", out, "DIR", "folder for problem.json.gz and solution.json");
        options.writes();
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        check();
        const Interrupt interrupt(console.quiet);
        const auto folder = out.empty() ? std::nullopt : std::optional<OutputFolder>(std::in_place, out);
        const std::vector<Pipeline> pipelines = model.empty() ? of_files() : of_models();
        planner::SolveRequest request;
        request.seed = static_cast<std::uint64_t>(limits.seed);
        request.max_rounds = limits.rounds();
        request.lower_memory = true;
        plan = planner::plan_fused(pipelines, std::move(request), limits.executor(), limits.begin(console));
        console.clear();
        if (!out.empty()) write();
        if (console.json) {
            auto answer = as_json();
            answer["run"] = limits.run(start);
            print_json(answer);
        } else {
            print_text("{}", as_text());
        }
        say_if_interrupted(console, left_out_by(plan.found));
    }

private:
    static constexpr std::int64_t most_degree = 4096, most_tokens = 100'000'000;

    void add_models(Options& of) {
        of.group("Models and GPUs");
        of.text("model", model, "MODEL", "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json");
        of.text("beside", beside, "MODEL", "that is trained at the same time, in the other direction");
        of.text("cluster", cluster, "CLUSTER", "NAME:GPUS of `pipeweaver list clusters`, or a cluster file");
        of.integer("tp", tp, 1, most_degree, "GPUs of a rank, of both models (default: 1)");
        of.integer("beside-pp", beside_pp, 1, most_degree,
                   "ranks of a pipeline beside the first, which lie next to each other (default: all)");
        of.text("recipe", recipe, "RECIPE", "a recipe of `pipeweaver list recipes` (default: megatron-core)");
        of.group("What both train on");
        of.text("lengths", lengths, "FILE", "tokens of answers, as `rl --lengths` has them");
        of.integer("answers", answers, 1, rl::most_answers, "of a step (default: 64)");
        of.integer("prompt", prompt, 1, rl::longest_answer, "tokens of a prompt (default: 512)");
        of.integer("microbatch-tokens", microbatch_tokens, 1, most_tokens,
                   "that a microbatch holds at most (default: the model's)");
    }

    std::vector<std::pair<std::string, bool>> of_models_alone() const {
        return {{"model", !model.empty()},
                {"beside", !beside.empty()},
                {"cluster", !cluster.empty()},
                {"tp", tp.has_value()},
                {"beside-pp", beside_pp.has_value()},
                {"recipe", !recipe.empty()},
                {"lengths", !lengths.empty()},
                {"answers", answers.has_value()},
                {"prompt", prompt.has_value()},
                {"microbatch-tokens", microbatch_tokens.has_value()}};
    }

    void check() const {
        if (!problem.empty() || !beside_problem.empty()) {
            require_given({{!beside_problem.empty(), "BESIDE-PROBLEM", "the problem file of what runs beside it"}});
            for (const auto& [option, given] : of_models_alone())
                if (given)
                    fail(ErrorKind::input, "--{}: does not go with problem files, which have their own times", option);
            return;
        }
        require_given({{!model.empty(), "--model MODEL", "or two problem files"},
                       {!beside.empty(), "--beside MODEL", "that is trained at the same time"},
                       {!cluster.empty(), "--cluster CLUSTER", "with its GPUs"},
                       {!lengths.empty(), "--lengths FILE", "tokens of answers, or quantiles"}});
    }

    // A pipeline under the fastest of all policies, of equal ones the first.
    Pipeline of_file(const std::string& path, Said& said) const {
        auto file = schedule::read_problem(path);
        const schedule::Replayer replayer(file.problem);
        std::optional<search::PolicyResult> fastest;
        for (const search::Policy& policy : search::policies()) {
            auto known = search::apply_policy(policy.name, replayer);
            if (!known.schedule || (fastest && fastest->replay.makespan <= known.replay.makespan)) continue;
            fastest = std::move(known);
            said = {file.problem.name, policy.name};
        }
        if (!fastest) fail(ErrorKind::limit, "{}: no policy applies to it: `pipeweaver solve --policy` says why", path);
        return {"", std::move(file.problem), std::move(*fastest->schedule)};
    }

    std::vector<Pipeline> of_files() {
        std::vector<Pipeline> all{of_file(problem, first)};
        all.front().name = "first";
        const Pipeline one = of_file(beside_problem, second);
        const std::size_t ranks = all.front().problem.ranks.size(), own = one.problem.ranks.size();
        if (own == 0 || ranks % own != 0)
            fail(ErrorKind::input, "{}: has {}, allowed are numbers that divide the {} of {}", beside_problem,
                 plural(own, "rank"), ranks, problem);
        for (std::size_t i = 0; i < ranks / own; ++i) {
            all.push_back(one);
            all.back().name = own == ranks ? "beside" : fmt::format("beside {}", i);
        }
        return all;
    }

    // A job of one of the models on all GPUs, its answers as a batch.
    planner::EmulationRequest of_model(const std::string& name, std::int64_t pp, std::int64_t dp) const {
        planner::WorkloadOptions asked;
        asked.model = name;
        asked.cluster = cluster;
        asked.recipe = recipe;
        asked.tp.number = tp.value_or(1);
        asked.pp.number = pp;
        asked.dp.number = dp;
        asked.microbatch_tokens = microbatch_tokens;
        const auto seed = static_cast<std::uint64_t>(limits.seed);
        planner::EmulationRequest request;
        request.job = asked.job(seed, limits.executor());
        std::vector<workloads::Sample> samples;
        for (const std::int64_t tokens : rl::drawn(rl::lengths_of(lengths), answers.value_or(64), seed)) {
            workloads::Sample sample;
            sample.id = fmt::format("answer-{}", samples.size());
            sample.text_tokens = prompt.value_or(512) + tokens;
            sample.loss_tokens = tokens;
            samples.push_back(std::move(sample));
        }
        request.batch = request.job.batch("answers", std::move(samples));
        if (request.batch.microbatches.empty())
            fail(ErrorKind::input, "--lengths: no answer with its prompt fits a microbatch of {}", name);
        if (request.batch.microbatches.size() < static_cast<std::size_t>(dp))
            fail(ErrorKind::input, "--answers: fill {} of {}, allowed are as many as fill one for each of {} pipelines",
                 plural(request.batch.microbatches.size(), "microbatch"), name, dp);
        return request;
    }

    std::vector<Pipeline> of_models() {
        const std::int64_t gpus = workloads::find_cluster(cluster).gpus, of_rank = tp.value_or(1);
        if (gpus < 1 || gpus % of_rank != 0)
            fail(ErrorKind::input, "--tp: {}",
                 must_be(of_rank, fmt::format("a divisor of the {} GPUs of --cluster", gpus)));
        const std::int64_t ranks = gpus / of_rank, own = beside_pp.value_or(ranks);
        if (ranks % own != 0)
            fail(ErrorKind::input, "--beside-pp: {}",
                 must_be(own, fmt::format("a divisor of the {} ranks of {} GPUs", ranks, of_rank)));
        auto pipelines =
            planner::pipelines_of(of_model(model, ranks, 1), of_model(beside, own, ranks / own), limits.executor());
        first = {model, search::one_f_one_b_policy};
        second = {beside, search::one_f_one_b_policy};
        recompute = emulator::name_of(pipelines.recompute);
        return std::move(pipelines.all);
    }

    void write() const {
        const std::filesystem::path folder(out);
        const auto solution = search::solution(plan.found, plan.problem, schedule::fingerprint(plan.problem));
        write_files(
            {{folder / "problem.json.gz", to_json(plan.problem)}, {folder / "solution.json", to_json(solution)}});
    }

    // The rank that holds the most of its capacity.
    std::size_t fullest_rank() const {
        const auto& peak = plan.found.replay.peak;
        return static_cast<std::size_t>(std::max_element(peak.begin(), peak.end()) - peak.begin());
    }

    double gap() const { return schedule::relative_gap(plan.found.replay.makespan, plan.found.bound); }

    std::string as_text() const {
        const std::size_t beside_count = plan.alone.size() - 1, ranks = plan.problem.ranks.size();
        const Duration beside_alone = *std::max_element(plan.alone.begin() + 1, plan.alone.end());
        const Duration fused = plan.found.replay.makespan;
        std::string text =
            fmt::format("{}: {}, {} {}\n", first.name, plural(ranks, "rank"), first.policy, human(plan.alone.front()));
        text += fmt::format("{}: {} of {}, {} {}\n", second.name, plural(beside_count, "pipeline"),
                            plural(ranks / beside_count, "rank"), second.policy, human(beside_alone));
        text += fmt::format("one after the other: {}\n", human(plan.in_turn));
        text += fmt::format("at once: {}, {:.1f} % shorter; bound {}, gap {:.1f} %\n", human(fused),
                            100 * (1 - static_cast<double>(fused.count()) / static_cast<double>(plan.in_turn.count())),
                            human(plan.found.bound), 100 * gap());
        const std::size_t rank = fullest_rank();
        text += fmt::format("fullest rank: {}", human(plan.found.replay.peak[rank]));
        if (plan.problem.ranks[rank].capacity) text += fmt::format(" of {}", human(*plan.problem.ranks[rank].capacity));
        return text + (recompute.empty() ? "\n" : fmt::format(", recomputation {}\n", recompute));
    }

    nlohmann::ordered_json as_json() const {
        nlohmann::ordered_json json{{"first", first.name},
                                    {"beside", second.name},
                                    {"ranks", plan.problem.ranks.size()},
                                    {"first_ns", plan.alone.front().count()},
                                    {"beside_ns", nlohmann::ordered_json::array()},
                                    {"in_turn_ns", plan.in_turn.count()},
                                    {"makespan_ns", plan.found.replay.makespan.count()},
                                    {"lower_bound_ns", plan.found.bound.count()},
                                    {"gap", gap()},
                                    {"peak_bytes", nlohmann::ordered_json::array()}};
        for (std::size_t i = 1; i < plan.alone.size(); ++i) json["beside_ns"].push_back(plan.alone[i].count());
        for (const Bytes peak : plan.found.replay.peak) json["peak_bytes"].push_back(peak.count);
        if (!recompute.empty()) json["recompute"] = recompute;
        return json;
    }

    Options options;
    Console console;
    Limits limits;
    std::string problem, beside_problem, model, beside, cluster, recipe, lengths, out;
    std::optional<std::int64_t> tp, beside_pp, answers, prompt, microbatch_tokens;
    Said first, second;
    std::string recompute;
    planner::FusedPlan plan;
};

}  // namespace

void add_fuse(CLI::App& program) {
    add_command<Fuse>(
        program, "fuse", "two models trained at once on the same ranks, in opposite directions",
        {.synopsis = "(--model MODEL --beside MODEL --cluster CLUSTER --lengths FILE|QUANTILES | PROBLEM "
                     "BESIDE-PROBLEM) [OPTION...]",
         .description =
             "Actor and critic of a step of reinforcement learning are trained on the same answers. Here they are at "
             "once: the pipeline of one runs from the first rank to the last, those of the other from the last to the "
             "first, each in the other's bubbles (RLHFuse, arXiv 2409.13221). Prints one model after the other under "
             "1F1B (problem files: the fastest policy), both at once as the search found it, and the bound that no "
             "schedule of both can beat. Optimizers "
             "come on top of both.",
         .examples = {{"An actor with a smaller critic, of which two pipelines lie beside one of the actor",
                       "pipeweaver fuse --model qwen2.5-32b --beside qwen2.5-7b --cluster h100-sxm:32 --tp 4 "
                       "--beside-pp 4 --lengths 0:256,50:2k,100:7k --max-rounds 20"},
                      {"Two equal models, with the schedule as files",
                       "pipeweaver fuse --model qwen2.5-7b --beside qwen2.5-7b --cluster h100-sxm:8 --tp 2 --lengths "
                       "0:256,100:4k --answers 32 --max-rounds 5 --out fused"}},
         .files = {{"PROBLEM, BESIDE-PROBLEM",
                    "pipeweaver-problem/1; the ranks of the second divide those of the first"},
                   {"--out DIR", "problem.json.gz and solution.json, as `pipeweaver replay` checks them"}},
         .see_also = {"pipeweaver rl", "pipeweaver replay", "docs/rl.md"},
         .usual = {"model", "beside", "cluster", "tp", "beside-pp", "lengths", "answers", "prompt", "microbatch-tokens",
                   "out", "budget"}});
}

}  // namespace pipeweaver::apps
