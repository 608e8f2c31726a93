// pipeweaver bench draft: how soon a running job has a first plan of a batch, and what that time is made of.
#include "apps/bench/measure.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/session.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

// Milliseconds of one batch.
struct DraftTimes {
    std::vector<double> pricing, policies, draft;
    std::uint64_t priced = 0, priced_again = 0;  // layers: for the batch, and for a second plan of it
};

struct BenchDraft {
    explicit BenchDraft(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000,
                        "batches to draw after the job's first, with the seeds 2, 3, ... (default 20)");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
    }

    void run() {
        options.apply();
        if (workload.dataset.empty()) fail(ErrorKind::input, "--dataset: is missing, batches are drawn from it");
        const auto execute = limits.executor();
        const auto first = workload.request(1, execute);
        const planner::Session session(first, planner::plan_by_policy(first, execute));
        for (std::int64_t seed = 2; seed <= batches + 1; ++seed) {
            const auto drawn = workload.request(static_cast<std::uint64_t>(seed), execute);
            measure(session, session.request(drawn.batch, drawn.samples), execute);
        }
        print();
    }

    // The steps alone are built twice: what the first time takes longer is pricing.
    void measure(const planner::Session& session, const planner::Request& batch, const Executor& execute) {
        const auto misses = [&] { return batch.setup->store->statistics().misses; };
        const auto build = [&] {
            const Stopwatch watch;
            static_cast<void>(session.steps(batch, execute));
            return 1000 * watch.seconds();
        };
        const auto known = misses();
        const double first = build(), again = build();
        times.priced += misses() - known;
        const auto priced = misses();
        const Stopwatch watch;
        double draft = 0;
        const auto at_once = [](const planner::Share&) {
            return [](const search::Progress&) { return std::optional(schedule::StopReason::stopped); };
        };
        static_cast<void>(
            session.plan(batch, execute, at_once, [&](const planner::Plan&) { draft = 1000 * watch.seconds(); }));
        times.priced_again += misses() - priced;
        times.pricing.push_back(std::max(0.0, first - again));
        times.policies.push_back(draft);
        times.draft.push_back(times.pricing.back() + draft);
    }

    void print() const {
        if (console.json) {
            const nlohmann::ordered_json json{{"batches", batches},
                                              {"pricing_ms", median(times.pricing)},
                                              {"policies_ms", median(times.policies)},
                                              {"draft_ms", median(times.draft)},
                                              {"layers_priced", times.priced},
                                              {"layers_priced_again", times.priced_again}};
            fmt::print("{}\n", json.dump());
            return;
        }
        fmt::print(
            "median of {} batches: first plan {:.1f} ms = pricing {:.1f} ms + steps, bound and policies {:.1f} ms\n",
            batches, median(times.draft), median(times.pricing), median(times.policies));
        fmt::print("layers priced: {} for the batches, {} more for plans of the same lengths\n", times.priced,
                   times.priced_again);
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    Limits limits;
    std::int64_t batches = 20;
    DraftTimes times;
};

}  // namespace

void add_bench_draft(CLI::App& bench) {
    add_command<BenchDraft>(
        bench, "draft", "how soon a running job has a first plan of a batch",
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description = "Plans a first batch by policy and then, as a running job does, others on the same partition: "
                        "how long the first plan of each takes, without a search, and which part of that is pricing "
                        "layers of lengths that were not met before.",
         .examples = {{"Ten small batches",
                       "pipeweaver bench draft --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 10"},
                      {"For a program to read",
                       "pipeweaver bench draft --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 2 --json"}},
         .files = {},
         .see_also = {"pipeweaver bench plan"}});
}

}  // namespace pipeweaver::apps
