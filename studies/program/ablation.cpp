// pipeweaver_studies ablation: the published ablation, one condition added to the other, on drawn batches.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/measure.hpp"
#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "studies/program/checked_run.hpp"
#include "studies/program/studies.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

using emulator::Recompute;

// Seconds of VLM-S on 16 H800 (arXiv 2504.14145, ablation), in the order of the first rows.
constexpr std::array published_seconds{26.13, 22.27, 18.81, 17.61, 16.05};

constexpr std::array<std::string_view, 4> chain_cuts{"megatron", "uniform", "balanced", "first-stage"};
constexpr std::array<std::int64_t, 4> chain_chunks{1, 2, 4, 8};
const std::vector<Recompute> varied_modes{Recompute::none, Recompute::selective, Recompute::half, Recompute::full};

// A way to run every batch; its steps, none where it does not fit.
struct Way {
    std::string name, partition;
    std::int64_t chunks = 0;
    std::string schedule, recompute;
    std::vector<std::optional<Duration>> steps{};

    // Of the batches that both run.
    Ratios over(const Way& other) const {
        Ratios ratios;
        for (std::size_t i = 0; i < steps.size(); ++i)
            if (steps[i] && other.steps[i])
                ratios.values.push_back(static_cast<double>(steps[i]->count()) /
                                        static_cast<double>(other.steps[i]->count()));
        return ratios;
    }
    double mean_seconds() const {
        Ratios seconds;
        for (const auto& step : steps)
            if (step) seconds.values.push_back(std::chrono::duration<double>(*step).count());
        return seconds.values.empty() ? 0 : seconds.geometric_mean();
    }
    bool runs_all() const {
        return std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step.has_value(); });
    }
};

std::string ratio_cells(const Ratios& ratios) {
    if (ratios.values.empty()) return "- | - | -";
    return fmt::format("{:.3f} | {:.3f} | {:.3f}", ratios.geometric_mean(), ratios.least(), ratios.most());
}

nlohmann::ordered_json ratio_json(const Ratios& ratios) {
    if (ratios.values.empty()) return nullptr;
    return {{"batches", ratios.values.size()},
            {"geometric_mean", ratios.geometric_mean()},
            {"least", ratios.least()},
            {"most", ratios.most()}};
}

Recompute read_recompute(const std::string& text) {
    const auto read = emulator::recompute_named(text);
    if (!read) fail(ErrorKind::input, "{}", must_be(text, one_of(emulator::recompute_names())));
    return *read;
}

// "none,half,full".
std::vector<Recompute> read_menu(const std::string& text) {
    std::vector<Recompute> menu;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        menu.push_back(read_recompute(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return menu;
}

// --fixed-recompute and its like.
void add_recompute(OptionTable& options, const std::string& name, Recompute& mode, const std::string& about) {
    options.parsed(name, "MODE", fmt::format("{} (default {})", about, name_of(mode)),
                   [&mode](const std::string& text) { mode = read_recompute(text); });
}

struct AblationStudy {
    explicit AblationStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        limits.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 5)");
        options.text("sample", job.sample, "SEEDS|FILES|batch",
                     "what all partitions are cut on (default: five other seeds)");
        options.choice("cut", cut, {chain_cuts.begin(), chain_cuts.end()},
                       "how the first row's chain of all modules is cut (default uniform)");
        options.integer("chunks", chunks, 1, 64, "of the first row, on each rank (default 4)");
        add_recompute(options, "fixed-recompute", fixed_mode, "of the first two rows, whose orders are fixed");
        options.choice("fixed-order", fixed_order, {"interleaved", "gpipe"}, "of the second row (default interleaved)");
        add_recompute(options, "queue-recompute", queue_mode, "of the third and fourth row");
        options.parsed("menu", "LIST", "memory modes that the last row chooses from (default none,half,full)",
                       [this](const std::string& text) { menu = read_menu(text); });
        options.flag("vary", vary, "other cuts, chunks, orders and recomputation of the rows as well");
        options.flag("ours", ours, "our search on the same partition and our plan of the job as well");
        options.flag("no-pipeline", flat, "PyTorch's FSDP2 on the same GPUs as well");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        for (std::int64_t seed = 1; seed <= batches; ++seed) add(static_cast<std::uint64_t>(seed));
        console.clear();
        if (!all_rows_run())
            fail(ErrorKind::limit,
                 "a row does not fit on every batch: try another --cut, --chunks, --fixed-recompute or "
                 "--queue-recompute");
        if (console.json)
            fmt::print("{}\n", answer(start).dump());
        else
            print();
    }

    // ---- running

    planner::Request request_of(std::uint64_t seed) const {
        planner::Request request = workload.request(seed, limits.executor());
        request.job.max_rounds = limits.rounds();
        request.job.sample = job.read_sample(request.job, workload);
        return request;
    }

    void add(std::uint64_t seed) {
        const planner::Request request = request_of(seed);
        if (workload.dataset.empty()) fail_missing("--dataset DATASET", "batches are drawn from it");
        apart = partition::partitioner("dip").make(*request.job.setup, cut_sample(request), 1);
        ++drawn;
        add_rows(request);
        if (vary) add_varied(request);
        if (ours) add_ours(request);
        if (flat) add_without_pipeline(request);
    }

    void add_rows(const planner::Request& request) {
        keep(rows, {"chain", cut, chunks, chain_policy(chunks), name_of(fixed_mode)},
             chain(request, cut, chunks, fixed_mode));
        keep(rows, {"modules apart", "dip", 0, fixed_order, name_of(fixed_mode)},
             timed(run_policy(request, apart, fixed_order, {fixed_mode})));
        keep(rows, {"stage interleaving", "dip", 0, "dual-queue", name_of(queue_mode)},
             timed(run_policy(request, apart, "dual-queue", {queue_mode})));
        keep(rows, {"segment order", "dip", 0, "search dip", name_of(queue_mode)},
             searched(request, "dip", {queue_mode}));
        keep(rows, {"memory modes", "dip", 0, "search dip", "of each pass"}, searched(request, "dip", menu));
    }

    void add_varied(const planner::Request& request) {
        for (const auto name : chain_cuts)
            for (const auto count : chain_chunks)
                for (const Recompute mode : varied_modes)
                    keep(chains, {"chain", std::string(name), count, chain_policy(count), name_of(mode)},
                         chain(request, std::string(name), count, mode));
        for (const Recompute mode : varied_modes) {
            for (const std::string policy : {"interleaved", "gpipe"})
                keep(fixed, {"modules apart", "dip", 0, policy, name_of(mode)},
                     timed(run_policy(request, apart, policy, {mode})));
            keep(queues, {"stage interleaving", "dip", 0, "dual-queue", name_of(mode)},
                 timed(run_policy(request, apart, "dual-queue", {mode})));
            keep(orders, {"segment order", "dip", 0, "search dip", name_of(mode)}, searched(request, "dip", {mode}));
        }
    }

    void add_ours(const planner::Request& request) {
        keep(beside, {"our search", "dip", 0, "search default", "of each pass"}, searched(request, "default", menu));
        planner::Request job_request = request;
        if (!job_partition)
            job_partition =
                planner::choose_partition(job_request.job, job_request.batch, planner::quick_choice, limits.executor());
        job_request.job.fixed = partition::PartitionFile{job_partition->partition, job_partition->chosen_on};
        const auto plan =
            planner::make_plan(job_request.job, job_request.batch, limits.executor(), limits.begin(console),
                               {.targets = false, .robustness = false, .opponents = false});
        const auto& replica = plan.replicas.front();
        require_right(replica.cut.step.problem, "plan", *replica.found.schedule, plan.makespan);
        keep(beside, {"our plan", plan.partition().name, plan.partition().chunks_per_rank, "plan", "of each pass"},
             plan.step);
    }

    // Every GPU a replica, weights shared out; the recomputation that is fastest.
    void add_without_pipeline(const planner::Request& request) {
        emulator::Layout layout = request.job.setup->layout;
        layout.dp = layout.gpus();
        layout.tp = layout.pp = layout.cp = layout.ep = 1;
        planner::EmulationRequest asked;
        asked.job = request.job;
        asked.batch = request.batch;
        asked.job.setup = std::make_shared<const emulator::Setup>(emulator::with_recipe(
            emulator::with_layout(*request.job.setup, layout), emulator::find_recipe("torch-fsdp2")));
        asked.job.partition = "megatron";
        std::optional<Duration> least;
        for (const Recompute mode : varied_modes) {
            asked.recompute = {.everywhere = mode};
            try {
                const Duration step = planner::emulate(asked, limits.executor()).step;
                least = std::min(least.value_or(step), step);
            } catch (const Error& error) {
                if (error.kind() == ErrorKind::io) throw;
            }
        }
        keep(beside, {"no pipeline, FSDP2", "-", 0, "1f1b", "fastest"}, least);
    }

    static std::string chain_policy(std::int64_t count) { return count == 1 ? "1f1b" : "interleaved"; }

    static std::optional<Duration> timed(const std::optional<CheckedRun>& run) {
        return run ? std::optional(run->time()) : std::nullopt;
    }

    std::optional<Duration> chain(const planner::Request& request, const std::string& name, std::int64_t count,
                                  Recompute mode) const {
        try {
            const auto made = partition::partitioner(name).make(*request.job.setup, cut_sample(request), count);
            return timed(run_policy(request, made, chain_policy(count), {mode}));
        } catch (const Error& error) {
            // More stages than layers.
            if (error.kind() != ErrorKind::input || request.job.setup->layout.dp != 1) throw;
            return std::nullopt;
        }
    }

    std::optional<Duration> searched(const planner::Request& request, const std::string& strategy,
                                     const std::vector<Recompute>& modes) const {
        return timed(run_search(request, apart, limits.search_options(strategy), modes, limits.executor(),
                                limits.begin(console).keep_going()));
    }

    // The way's step of the last batch that was drawn.
    void keep(std::vector<Way>& ways, Way way, std::optional<Duration> step) const {
        const auto same = [&](const Way& one) {
            return one.name == way.name && one.partition == way.partition && one.chunks == way.chunks &&
                   one.schedule == way.schedule && one.recompute == way.recompute;
        };
        auto found = std::find_if(ways.begin(), ways.end(), same);
        if (found == ways.end()) found = ways.insert(ways.end(), std::move(way));
        found->steps.resize(drawn - 1);
        found->steps.push_back(step);
    }

    bool all_rows_run() const {
        return std::all_of(rows.begin(), rows.end(), [](const Way& row) { return row.runs_all(); });
    }

    // ---- telling

    bool as_published() const { return workload.model == "dip-vlm-s" && workload.cluster == "h800-sxm:16"; }

    static double published_factor(std::size_t row) { return published_seconds[row - 1] / published_seconds[row]; }
    static double published_total() { return published_seconds.front() / published_seconds.back(); }

    Ratios factor(std::size_t row) const { return rows[row - 1].over(rows[row]); }
    Ratios total() const { return rows.front().over(rows.back()); }

    void print() const {
        fmt::print("{} batches of {}; factor: the row above over this one\n\n", batches, workload.dataset);
        fmt::print(
            "| row | partition | chunks | schedule | recompute | step, s | factor | least | most |{}\n|---|---|---|"
            "---|---|---|---|---|---|{}\n",
            as_published() ? " published |" : "", as_published() ? "---|" : "");
        for (std::size_t k = 0; k < rows.size(); ++k) {
            const Way& row = rows[k];
            fmt::print("| {} | {} | {:.3f} | {} |", k == 0 ? row.name : "+ " + row.name, setting_cells(row),
                       row.mean_seconds(), k == 0 ? "1 | |" : ratio_cells(factor(k)));
            fmt::print("{}\n", !as_published() ? "" : k == 0 ? " 1 |" : fmt::format(" {:.3f} |", published_factor(k)));
        }
        fmt::print("| all | | | | | | {} |{}\n", ratio_cells(total()),
                   as_published() ? fmt::format(" {:.3f} |", published_total()) : "");
        if (!beside.empty()) print_over("over the last row", beside, rows.back());
        if (!vary) return;
        print_over("over the second row", chains, rows[1]);
        print_over("over the second row", fixed, rows[1]);
        fmt::print("\n| recompute of rows 3 and 4 | interleaving | order | memory |\n|---|---|---|---|\n");
        for (std::size_t k = 0; k < queues.size(); ++k)
            fmt::print("| {} | {} | {} | {} |\n", queues[k].recompute, mean_text(rows[1].over(queues[k])),
                       mean_text(queues[k].over(orders[k])), mean_text(orders[k].over(rows.back())));
    }

    static std::string mean_text(const Ratios& ratios) {
        return ratios.values.empty() ? "-" : fmt::format("{:.3f}", ratios.geometric_mean());
    }

    static std::string setting_cells(const Way& way) {
        return fmt::format("{} | {} | {} | {}", way.partition, way.chunks == 0 ? "" : std::to_string(way.chunks),
                           way.schedule, way.recompute);
    }

    void print_over(std::string_view what, const std::vector<Way>& ways, const Way& base) const {
        fmt::print(
            "\n| row | partition | chunks | schedule | recompute | fits | {} | least | most |\n|---|---|---|---|---|"
            "---|---|---|---|\n",
            what);
        for (const Way& way : ways) {
            const Ratios ratios = way.over(base);
            fmt::print("| {} | {} | {} of {} | {} |\n", way.name, setting_cells(way), ratios.values.size(), batches,
                       ratio_cells(ratios));
        }
    }

    static nlohmann::ordered_json way_json(const Way& way) {
        nlohmann::ordered_json steps = nlohmann::ordered_json::array();
        for (const auto& step : way.steps)
            steps.push_back(step ? nlohmann::ordered_json(step->count()) : nlohmann::ordered_json(nullptr));
        return {{"name", way.name},         {"partition", way.partition}, {"chunks_per_rank", way.chunks},
                {"schedule", way.schedule}, {"recompute", way.recompute}, {"step_ns", steps}};
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"model", workload.model},
                                    {"cluster", workload.cluster},
                                    {"dataset", workload.dataset},
                                    {"batches", batches},
                                    {"microbatches", workload.microbatches.value_or(16)},
                                    {"unit_items", apart.unit_items},
                                    {"segments", apart.chunks_per_rank},
                                    {"total", ratio_json(total())},
                                    {"published_total", nullptr},
                                    {"rows", nlohmann::ordered_json::array()}};
        if (as_published()) json["published_total"] = published_total();
        for (std::size_t k = 0; k < rows.size(); ++k) {
            auto row = way_json(rows[k]);
            row["factor"] = k == 0 ? nlohmann::ordered_json(nullptr) : ratio_json(factor(k));
            row["published_factor"] = nullptr;
            if (k > 0 && as_published()) row["published_factor"] = published_factor(k);
            json["rows"].push_back(std::move(row));
        }
        add_ways(json, "beside", beside, rows.back());
        add_ways(json, "chains", chains, rows[1]);
        add_ways(json, "fixed_orders", fixed, rows[1]);
        json["queue_modes"] = nlohmann::ordered_json::array();
        for (std::size_t k = 0; k < queues.size(); ++k)
            json["queue_modes"].push_back({{"recompute", queues[k].recompute},
                                           {"interleaving", ratio_json(rows[1].over(queues[k]))},
                                           {"order", ratio_json(queues[k].over(orders[k]))},
                                           {"memory", ratio_json(orders[k].over(rows.back()))}});
        limits.add_run(json, start);
        return json;
    }

    static void add_ways(nlohmann::ordered_json& json, const char* key, const std::vector<Way>& ways, const Way& base) {
        json[key] = nlohmann::ordered_json::array();
        for (const Way& way : ways) {
            auto one = way_json(way);
            one["over"] = base.name;
            one["ratio"] = ratio_json(way.over(base));
            json[key].push_back(std::move(one));
        }
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    planner::JobOptions job;
    Limits limits;
    std::int64_t batches = 5, chunks = 4;
    std::string cut = "uniform", fixed_order = "interleaved";
    Recompute fixed_mode = Recompute::full, queue_mode = Recompute::half;
    std::vector<Recompute> menu = emulator::usual_modes();
    bool vary = false, ours = false, flat = false;

    partition::Partition apart;  // each module a chain of its own
    std::optional<planner::PartitionChoice> job_partition;
    std::size_t drawn = 0;  // batches so far
    std::vector<Way> rows, beside, chains, fixed, queues, orders;
};

}  // namespace

void add_ablation(CLI::App& program) {
    add_command<AblationStudy>(
        program, "ablation", "the published ablation: what each part of the method gains",
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description =
             "Runs drawn batches, with the seeds 1, 2, ..., in five ways, each with one condition more: a chain of "
             "all modules as Megatron-LM runs it; the modules as chains of their own in a fixed order; the dual "
             "queue in its place; the published search over the order of segments; memory modes chosen for each "
             "pass. Prints step times and, for each condition, the factor that it gains: geometric mean, least and "
             "most; with VLM-S on 16 H800s the published one beside it. What the publication leaves open are options, "
             "and --vary tries all of them. Each schedule is checked by a second replay that shares no code with the "
             "search.",
         .examples = {{"One small batch",
                       "pipeweaver_studies ablation --model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 1 --max-rounds 5"},
                      {"With everything beside it, for a program to read",
                       "pipeweaver_studies ablation --model dip-vlm-s --cluster h20-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 1 --max-rounds 2 --vary --ours --no-pipeline --json"}},
         .see_also = {"pipeweaver bench plan", "pipeweaver_studies units", "studies/README.md"}});
}

}  // namespace pipeweaver::studies
