// pipeweaver bench draft: how soon a running job has a first plan of a batch, what that time is made of, and how good
// plans are that are wanted soon.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/session.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::bench {

using namespace apps;

namespace {

// Milliseconds of one batch.
struct DraftTimes {
    std::vector<double> pricing, policies, draft;
    std::uint64_t priced = 0, priced_again = 0;  // layers: for the batch, and for a second plan of it
};

// What plans of all batches are worth that are wanted after so long.
struct Wanted {
    Duration after{};
    std::vector<double> over_last;  // makespan over that of the last such plan of the batch
    double latest = 0;              // milliseconds after the deadline, of all batches the most
};

double ms(Duration time) { return 1e-6 * static_cast<double>(time.count()); }

struct BenchDraft {
    explicit BenchDraft(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000,
                        "batches to draw after the job's first, with the seeds 2, 3, ... (default 20)");
        options.parsed("deadlines", "LIST",
                       "plan each batch until each of these, like 20ms,100ms,5s, and say how much longer steps are "
                       "than with the last",
                       [this](const std::string& text) {
                           for (const std::string& one : parts_of(text)) wanted.push_back({parse_duration(one), {}});
                       });
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
    }

    void run() {
        options.apply();
        if (workload.dataset.empty()) fail_missing("--dataset DATASET", "batches are drawn from it");
        const auto execute = limits.executor();
        const auto first = workload.request(1, execute);
        const planner::Session session(first.job, first_plan(first, execute));
        for (std::int64_t seed = 2; seed <= batches + 1; ++seed) {
            const auto drawn = workload.request(static_cast<std::uint64_t>(seed), execute);
            const auto batch = session.job().batch(drawn.batch.name, drawn.batch.samples);
            measure(session, batch, execute);
            if (!wanted.empty()) plan_until_each(session, batch, execute);
        }
        print();
    }

    // By policy, on the partition where that is fastest. With deadlines it is as good a plan as the last of them
    // allows: those of later batches begin with its order.
    planner::Plan first_plan(const planner::Request& first, const Executor& execute) {
        auto fastest = planner::plan_without_search(first.job, first.batch, execute, {});
        if (wanted.empty()) return fastest;
        const planner::Session session(first.job, fastest);
        limits.budget = wanted.back().after;
        return session.plan(first.batch, execute, limits.begin(console));
    }

    // The steps alone are built twice: what the first time takes longer is pricing.
    void measure(const planner::Session& session, const planner::Batch& batch, const Executor& execute) {
        const auto misses = [&] { return session.job().setup->store->statistics().misses; };
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
        const auto at_once = planner::Time::until(
            {}, [](const search::Progress&) { return std::optional(schedule::StopReason::stopped); });
        static_cast<void>(
            session.plan(batch, execute, at_once, [&](const planner::Plan&) { draft = 1000 * watch.seconds(); }));
        times.priced_again += misses() - priced;
        times.pricing.push_back(std::max(0.0, first - again));
        times.policies.push_back(draft);
        times.draft.push_back(times.pricing.back() + draft);
    }

    void plan_until_each(const planner::Session& session, const planner::Batch& batch, const Executor& execute) {
        std::vector<double> makespan;
        for (Wanted& one : wanted) {
            const Stopwatch watch;
            limits.budget = one.after;
            makespan.push_back(ms(session.plan(batch, execute, limits.begin(console)).makespan));
            one.latest = std::max(one.latest, 1000 * watch.seconds() - ms(one.after));
        }
        for (std::size_t k = 0; k < wanted.size(); ++k) wanted[k].over_last.push_back(makespan[k] / makespan.back());
    }

    nlohmann::ordered_json deadlines() const {
        auto all = nlohmann::ordered_json::array();
        for (const Wanted& one : wanted)
            all.push_back({{"after_ms", ms(one.after)},
                           {"makespan_over_last", median(one.over_last)},
                           {"most", *std::max_element(one.over_last.begin(), one.over_last.end())},
                           {"late_ms", one.latest}});
        return all;
    }

    void print() const {
        if (console.json) {
            nlohmann::ordered_json json{{"batches", batches},
                                        {"pricing_ms", median(times.pricing)},
                                        {"policies_ms", median(times.policies)},
                                        {"draft_ms", median(times.draft)},
                                        {"layers_priced", times.priced},
                                        {"layers_priced_again", times.priced_again}};
            if (!wanted.empty()) json["deadlines"] = deadlines();
            fmt::print("{}\n", json.dump());
            return;
        }
        fmt::print(
            "median of {} batches: first plan {:.1f} ms = pricing {:.1f} ms + steps, bound and policies {:.1f} ms\n",
            batches, median(times.draft), median(times.pricing), median(times.policies));
        fmt::print("layers priced: {} for the batches, {} more for plans of the same lengths\n", times.priced,
                   times.priced_again);
        for (const auto& one : deadlines())
            fmt::print("planned until {:.0f} ms: makespan {:.4f} of the last, at most {:.4f}; {:.1f} ms late at most\n",
                       one["after_ms"].get<double>(), one["makespan_over_last"].get<double>(),
                       one["most"].get<double>(), one["late_ms"].get<double>());
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    Limits limits;
    std::int64_t batches = 20;
    DraftTimes times;
    std::vector<Wanted> wanted;
};

}  // namespace

void add_draft(CLI::App& program) {
    add_command<BenchDraft>(
        program, "draft", about_bench("draft"),
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description =
             "Plans a first batch by policy (with --deadlines until the last of them) and then, as a running job does, "
             "others on the same partition: how long the first plan of each takes, without a search, and which part of "
             "that is pricing layers of lengths that were not met before. With --deadlines also how much is lost where "
             "a plan is wanted soon: medians over the batches.",
         .examples = {{"Plans that are wanted soon, beside those of a second",
                       "pipeweaver bench draft --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 2 --deadlines 20ms,100ms,1s"},
                      {"Ten small batches",
                       "pipeweaver bench draft --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 10"},
                      {"For a program to read",
                       "pipeweaver bench draft --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 2 --json"}},
         .see_also = {"pipeweaver bench plan"}});
}

}  // namespace pipeweaver::bench
