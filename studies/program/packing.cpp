// pipeweaver_studies packing: steps of the same samples, in several orders, under each packing.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

using workloads::Packing;

constexpr std::array compared{Packing::given, Packing::first_fit_decreasing, Packing::balanced};

// A packing on every batch.
struct PackingSteps {
    Packing packing = Packing::given;
    std::vector<std::vector<Duration>> steps;            // of each batch, in each of its orders
    std::vector<std::vector<std::size_t>> microbatches;  // the same

    // Longest over shortest of each batch's orders.
    Ratios spread() const {
        Ratios all;
        for (const auto& orders : steps) {
            const auto [least, most] = std::minmax_element(orders.begin(), orders.end());
            all.values.push_back(static_cast<double>(most->count()) / static_cast<double>(least->count()));
        }
        return all;
    }

    double mean_seconds() const {
        double sum = 0, count = 0;
        for (const auto& orders : steps)
            for (const Duration step : orders) sum += std::chrono::duration<double>(step).count(), ++count;
        return sum / count;
    }

    double mean_microbatches() const {
        double sum = 0, count = 0;
        for (const auto& orders : microbatches)
            for (const std::size_t one : orders) sum += static_cast<double>(one), ++count;
        return sum / count;
    }
};

void shuffle(std::vector<workloads::Sample>& samples, std::uint64_t seed, std::uint64_t order) {
    Random random(seed, order);
    for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
}

nlohmann::ordered_json nanoseconds(const std::vector<std::vector<Duration>>& steps) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& orders : steps) {
        auto& one = all.emplace_back(nlohmann::ordered_json::array());
        for (const Duration step : orders) one.push_back(step.count());
    }
    return all;
}

struct PackingStudy {
    explicit PackingStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        asked.add_to(options);
        options.group("The benchmark");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 20)");
        options.integer("orders", orders, 1, 10'000,
                        "orders of each batch's samples, the first as they were drawn (default 10)");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (asked.workload.dataset.empty()) fail_missing("--dataset DATASET", "batches are drawn from it");
        if (asked.workload.how_packed() != Packing::given)
            fail(ErrorKind::input, "--packing: is compared here, not given");
        for (const Packing packing : compared) rows.push_back({packing, {}, {}});
        for (std::int64_t seed = 1; seed <= batches; ++seed) add(static_cast<std::uint64_t>(seed));
        if (console.json)
            fmt::print("{}\n", answer(start).dump());
        else
            print();
    }

    void add(std::uint64_t seed) {
        planner::EmulationRequest request = asked.request(seed, limits.executor());
        asked.workload.known_costs = request.job.setup->costs;  // the next batch needs not read them
        const std::vector<workloads::Sample> drawn = request.batch.samples;
        for (PackingSteps& row : rows) {
            auto& steps = row.steps.emplace_back();
            auto& microbatches = row.microbatches.emplace_back();
            for (std::int64_t order = 0; order < orders; ++order) {
                auto samples = drawn;
                if (order > 0) shuffle(samples, seed, static_cast<std::uint64_t>(order));
                request.job.packing = row.packing;
                request.batch = request.job.batch(request.batch.name, std::move(samples));
                microbatches.push_back(request.batch.microbatches.size());
                steps.push_back(planner::emulate(request, limits.executor()).step);
            }
        }
    }

    void print() const {
        fmt::print("{} batches of {}, each in {} orders\n\n", batches, asked.workload.dataset, orders);
        fmt::print(
            "| packing | microbatches | mean step | longest over shortest order: geometric mean | most |\n"
            "|---|---|---|---|---|\n");
        for (const PackingSteps& row : rows)
            fmt::print("| {} | {:.2f} | {:.4f} s | {:.4f} | {:.4f} |\n", name_of(row.packing), row.mean_microbatches(),
                       row.mean_seconds(), row.spread().geometric_mean(), row.spread().most());
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"model", asked.workload.model},
                                    {"cluster", asked.workload.cluster},
                                    {"dataset", asked.workload.dataset},
                                    {"batches", batches},
                                    {"orders", orders},
                                    {"packings", nlohmann::ordered_json::array()}};
        for (const PackingSteps& row : rows)
            json["packings"].push_back({{"packing", name_of(row.packing)},
                                        {"mean_microbatches", row.mean_microbatches()},
                                        {"mean_step_seconds", row.mean_seconds()},
                                        {"spread", row.spread().geometric_mean()},
                                        {"most_spread", row.spread().most()},
                                        {"microbatches", row.microbatches},
                                        {"step_ns", nanoseconds(row.steps)}});
        json["seconds"] = start.seconds();
        return json;
    }

    Options options;
    Console console;
    planner::EmulateOptions asked;
    Limits limits;
    std::int64_t batches = 20, orders = 10;
    std::vector<PackingSteps> rows;
};

}  // namespace

void add_packing(CLI::App& program) {
    add_command<PackingStudy>(
        program, "packing", "what packings make of the same samples in several orders",
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description =
             "Emulates drawn batches, with the seeds 1, 2, ..., packed in given order, first-fit decreasing and "
             "balanced, each as its samples were drawn and in shuffled orders, which are functions of the seed. Prints "
             "how many microbatches there are, the mean step, and how far the steps of one batch are apart, the "
             "longest over the shortest of its orders.",
         .examples = {{"Three batches in four orders",
                       "pipeweaver_studies packing --model dip-vlm-m --cluster h100-sxm:32 --dataset vlm-mix "
                       "--microbatches 4 --partition first-stage --policy 1f1b --batches 3 --orders 4"}},
         .see_also = {"pipeweaver emulate", "docs/how-it-works.md"}});
}

}  // namespace pipeweaver::studies
