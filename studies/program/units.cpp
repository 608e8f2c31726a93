// pipeweaver_studies units: how long a step is with sub-microbatches of each size, and how efficient layers are then.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "studies/program/checked_run.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

constexpr std::int64_t most_unit_items = 1'000;

// A size of sub-microbatches, on every batch.
struct UnitSize {
    std::int64_t items = 0;                  // at most
    double efficiency = 0;                   // positions a second of a layer, over those of the best size
    std::size_t units = 0;                   // of all batches
    std::size_t in_units = 0;                // items of all of them
    std::vector<Duration> searched, greedy;  // steps

    double mean_items() const { return static_cast<double>(in_units) / static_cast<double>(units); }
};

// "4,8,12", ascending.
std::vector<std::int64_t> sizes_of(const std::string& text) {
    std::vector<std::int64_t> sizes;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const auto size = parse_integer("size", text.substr(begin, end - begin), 1, most_unit_items);
        if (!sizes.empty() && size <= sizes.back())
            fail(ErrorKind::input, "{}", must_be(text, "sizes separated by commas, each larger than the one before"));
        sizes.push_back(size);
        begin = end + 1;
    }
    return sizes;
}

// Of two rows of steps, batch by batch.
Ratios steps_over(const std::vector<Duration>& steps, const std::vector<Duration>& base) {
    Ratios ratios;
    for (std::size_t i = 0; i < steps.size(); ++i)
        ratios.values.push_back(static_cast<double>(steps[i].count()) / static_cast<double>(base[i].count()));
    return ratios;
}

struct UnitsStudy {
    explicit UnitsStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        limits.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 5)");
        options.text("sample", job.sample, "SEEDS|FILES|batch",
                     "what the partition is cut on (default: five other seeds)");
        options.parsed("sizes", "LIST", "items of a sub-microbatch at most (default 4,8,12,16,20,24,28,32)",
                       [this](const std::string& text) { sizes = sizes_of(text); });
        options.text("strategy", strategy, "STRATEGY", "of `pipeweaver list strategies` (default: the default one)");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        for (const std::int64_t items : sizes) rows.push_back({items, 0, 0, 0, {}, {}});
        for (std::int64_t seed = 1; seed <= batches; ++seed) add(static_cast<std::uint64_t>(seed));
        console.clear();
        for (const UnitSize& row : rows)
            for (std::size_t i = 0; i < row.searched.size(); ++i) {
                if (best.size() <= i) best.push_back(row.searched[i]);
                best[i] = std::min(best[i], row.searched[i]);
            }
        if (console.json)
            fmt::print("{}\n", answer(start).dump());
        else
            print();
    }

    void add(std::uint64_t seed) {
        planner::Request request = workload.request(seed, limits.executor());
        if (workload.dataset.empty()) fail_missing("--dataset DATASET", "batches are drawn from it");
        request.job.sample = job.read_sample(request.job, workload);
        partition::Partition cut = partition::partitioner("dip").make(*request.job.setup, cut_sample(request), 1);
        if (seed == 1) begin(request, cut);
        for (UnitSize& row : rows) {
            for (std::size_t c = 0; c < cut.chains.size(); ++c)
                if (cut.unit_items[c] > 0) cut.unit_items[c] = row.items;
            add(row, request, cut);
        }
    }

    void add(UnitSize& row, const planner::Request& request, const partition::Partition& cut) const {
        for (const auto& microbatch : partition::units(cut, request.job.setup->model, request.batch.microbatches))
            for (std::size_t c = 0; c < cut.chains.size(); ++c)
                for (const emulator::Unit& unit : microbatch[c])
                    if (cut.unit_items[c] > 0) ++row.units, row.in_units += unit.items.size();
        const auto modes = emulator::usual_modes();
        const auto greedy = run_policy(request, cut, "dual-queue", modes);
        const auto searched = run_search(request, cut, limits.search_options(strategy), modes, limits.executor(),
                                         limits.begin(console).keep_going());
        if (!greedy || !searched) fail(ErrorKind::limit, "--sizes: with {} items no schedule fits", row.items);
        row.greedy.push_back(greedy->time());
        row.searched.push_back(searched->time());
    }

    // What is the same for all batches.
    void begin(const planner::Request& request, const partition::Partition& cut) {
        for (std::size_t c = 0; c < cut.chains.size(); ++c)
            if (cut.unit_items[c] > 0) {
                chosen = cut.unit_items[c];
                module = cut.chains[c].stages.front().parts.front().module;
            }
        if (!module) fail(ErrorKind::input, "--model: no module of it takes items");
        workloads::Microbatch pooled;
        for (const auto& microbatch : cut_sample(request))
            pooled.items.insert(pooled.items.end(), microbatch.items.begin(), microbatch.items.end());
        double most = 0;
        for (std::int64_t items = 1; items <= rows.back().items; ++items)
            most = std::max(most, speed(request, pooled, items));
        for (UnitSize& row : rows) row.efficiency = speed(request, pooled, row.items) / most;
    }

    // Positions that a block takes in a second, forward and backward.
    double speed(const planner::Request& request, const workloads::Microbatch& pooled, std::int64_t items) const {
        const auto& modules = request.job.setup->model.modules;
        std::vector<emulator::PassShape> shapes(modules.size());
        shapes[*module] = partition::shape_in(modules[*module], pooled, 0, static_cast<std::size_t>(items));
        for (const auto& layer : emulator::layer_times(*request.job.setup, {shapes}))
            if (layer.module == modules[*module].name)
                return static_cast<double>(shapes[*module].positions()) /
                       std::chrono::duration<double>(layer.forward + layer.backward).count();
        return 0;
    }

    void print() const {
        fmt::print("{} batches of {}; partition dip takes {} items\n\n", batches, workload.dataset, chosen);
        fmt::print(
            "| items at most | mean | layer efficiency | step over the best size's: geometric mean | least | most "
            "| dual queue over searched |\n|---|---|---|---|---|---|---|\n");
        for (const UnitSize& row : rows) {
            const Ratios over_best = steps_over(row.searched, best);
            fmt::print("| {} | {:.1f} | {:.1f} % | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", row.items, row.mean_items(),
                       100 * row.efficiency, over_best.geometric_mean(), over_best.least(), over_best.most(),
                       steps_over(row.greedy, row.searched).geometric_mean());
        }
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"model", workload.model},     {"cluster", workload.cluster},
                                    {"dataset", workload.dataset}, {"batches", batches},
                                    {"chosen_items", chosen},      {"sizes", nlohmann::ordered_json::array()}};
        for (const UnitSize& row : rows) {
            const Ratios over_best = steps_over(row.searched, best);
            nlohmann::ordered_json one{
                {"items", row.items},
                {"mean_items", row.mean_items()},
                {"layer_efficiency", row.efficiency},
                {"step_over_best", over_best.geometric_mean()},
                {"least", over_best.least()},
                {"most", over_best.most()},
                {"dual_queue_over_searched", steps_over(row.greedy, row.searched).geometric_mean()},
                {"step_ns", nlohmann::ordered_json::array()}};
            for (const Duration step : row.searched) one["step_ns"].push_back(step.count());
            json["sizes"].push_back(std::move(one));
        }
        limits.add_run(json, start);
        return json;
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    planner::JobOptions job;
    Limits limits;
    std::int64_t batches = 5;
    std::vector<std::int64_t> sizes{4, 8, 12, 16, 20, 24, 28, 32};
    std::string strategy = "default";

    std::int64_t chosen = 0;            // by the published rule
    std::optional<std::size_t> module;  // that takes items
    std::vector<UnitSize> rows;
    std::vector<Duration> best;  // of all sizes, per batch
};

}  // namespace

void add_units(CLI::App& program) {
    add_command<UnitsStudy>(
        program, "units", "what the size of sub-microbatches costs and gains",
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description =
             "Plans drawn batches, with the seeds 1, 2, ..., on partition dip with sub-microbatches of each size in "
             "turn, all with the same limits of the search. Prints how efficient a layer is at each size, the step "
             "over that of the best size, batch by batch, and how much the search gains over the dual queue. A "
             "microbatch's items make sub-microbatches whose sizes differ by one at most, so their mean is below the "
             "size. Each schedule is checked by a second replay that shares no code with the search.",
         .examples = {{"Three sizes on a small batch",
                       "pipeweaver_studies units --model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 1 --sizes 4,12,24 --max-rounds 5"},
                      {"The published search in place of ours, for a program to read",
                       "pipeweaver_studies units --model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 1 --sizes 4,12 --strategy dip --max-rounds 5 --json"}},
         .see_also = {"pipeweaver_studies ablation", "studies/README.md"}});
}

}  // namespace pipeweaver::studies
