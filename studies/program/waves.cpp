// pipeweaver_studies waves: batches whose images rise and fall in two waves; what a static plan of the first loses.
#include "apps/command_line.hpp"
#include "bench/drawn_problem.hpp"
#include "bench/measure.hpp"
#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "studies/program/shifting_job.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

// Two waves over all steps. Of the published one its trough is known, the 15th to 20th of 40 steps.
constexpr double waves = 2, trough = 0.875;
constexpr double heavy_from = 0.7;  // of the cosine: a quarter of all steps on either side

struct WaveWay {
    enum : std::size_t { ours, dip, static_first, static_first_five, static_wave, static_1f1b, opponent, count };
};

struct WaveWayText {
    const char *name, *about;
};
constexpr std::array<WaveWayText, WaveWay::count> way_texts{{
    {"ours", "partition chosen on five batches of the waves, every batch planned"},
    {"dip", "the published partition and search, cut anew for every batch"},
    {"static-first", "partition chosen on steps 1-5, the order of step 1"},
    {"static-first-five", "our partition, the best order of steps 1-5 for all of them"},
    {"static-waves", "our partition, the best order of the five batches that it was chosen on"},
    {"static-1f1b", "one chain cut by time for steps 1-5, 1F1B, as nnScaler"},
    {"opponent",
     "the job's opponent: the fastest of what engineers run, on the batches that our partition was chosen on"},
}};

struct WaveStep {
    std::int64_t step = 0;
    double wanted = 0, items = 0, phase = 0;  // phase: 1 at the crest, -1 in the trough
    std::array<std::optional<Duration>, WaveWay::count> time;

    bool text_heavy() const { return phase < -heavy_from; }
    bool image_heavy() const { return phase > heavy_from; }
    std::optional<double> over_ours(std::size_t way) const {
        if (!time[way] || !time[WaveWay::ours]) return std::nullopt;
        return static_cast<double>(time[way]->count()) / static_cast<double>(time[WaveWay::ours]->count());
    }
};

struct WaveSummary {
    Ratios text, image, all;

    nlohmann::ordered_json json() const {
        const auto mean = [](const Ratios& ratios) {
            return ratios.values.empty() ? nlohmann::ordered_json(nullptr)
                                         : nlohmann::ordered_json(ratios.geometric_mean());
        };
        nlohmann::ordered_json told{{"steps", all.values.size()}, {"text_heavy", mean(text)},
                                    {"image_heavy", mean(image)}, {"all", mean(all)},
                                    {"least", nullptr},           {"most", nullptr}};
        if (!all.values.empty()) {
            told["least"] = all.least();
            told["most"] = all.most();
        }
        return told;
    }
};

struct WavesStudy {
    explicit WavesStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The benchmark");
        std::vector<std::string> names;
        for (const auto& one : shifting_set_ups()) names.emplace_back(one.model);
        options.choice("model", model, names, "which set-up (default dip-vlm-s, on h800-sxm:16; the others on H100s)");
        options.text("cluster", cluster, "CLUSTER", "another cluster for it, with the GPUs of one replica");
        options.text("dataset", dataset, "DATASET", "whose samples are drawn (default vlm-mix)");
        options.integer("steps", steps, 8, 10'000, "batches, two waves of them (default 40)");
        options.integer("microbatches", microbatches, 1, 1000, "microbatches of a batch (default 16)");
        options.number("crest", crest, 0.1, 48, "items of a microbatch at the crest, on average (default 22)");
        options.number("low", low, 0.1, 48, "items of a microbatch in the trough, on average (default 2, assumed)");
        planner::add_costs(options, costs);
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (low >= crest) fail(ErrorKind::input, "--low: is {:g}, allowed is less than --crest, {:g}", low, crest);
        if (model.empty()) model = shifting_set_ups().front().model;
        const auto set_up = std::find_if(shifting_set_ups().begin(), shifting_set_ups().end(),
                                         [&](const ShiftingSetUp& one) { return model == one.model; });
        const ShiftingJob job(*set_up, cluster, dataset, costs, microbatches, limits);
        cluster = job.cluster();
        choose(job);
        for (std::int64_t step = 1; step <= steps; ++step) course.push_back(run_step(job, step));
        console.clear();
        if (console.json) return print_json(start);
        print();
    }

    double phase(std::int64_t step) const {
        const double period = static_cast<double>(steps) / waves;
        return -std::cos(2 * std::numbers::pi * (static_cast<double>(step) / period - trough));
    }

    double wanted(std::int64_t step) const { return low + (crest - low) * (1 + phase(step)) / 2; }

    planner::Request batch_of(const ShiftingJob& job, std::int64_t step) const {
        return job.batch(static_cast<std::uint64_t>(step), wanted(step));
    }

    // Five batches of other seeds, a fifth of the steps apart, and steps 1 to 5.
    planner::Request wave_sample(const ShiftingJob& job) const {
        std::vector<planner::Request> sample;
        for (std::int64_t i = 0; i < 5; ++i)
            sample.push_back(job.batch(static_cast<std::uint64_t>(10'001 + i), wanted(steps * (2 * i + 1) / 10)));
        return job.on_sample(sample, "of the waves", 10'001);
    }

    planner::Request first_sample(const ShiftingJob& job) const {
        std::vector<planner::Request> sample;
        for (std::int64_t step = 1; step <= 5; ++step) sample.push_back(batch_of(job, step));
        return job.on_sample(sample, "steps 1-5", 1);
    }

    void choose(const ShiftingJob& job) {
        const auto execute = limits.executor();
        const auto of_waves = wave_sample(job), of_first = first_sample(job);
        our_choice = planner::choose_partition(of_waves.job, of_waves.batch, planner::thorough_choice, execute);
        first_choice = planner::choose_partition(of_first.job, of_first.batch, planner::thorough_choice, execute);
        by_waves.emplace(of_waves.job, of_waves.batch, our_choice.partition, execute, limits.begin(console));
        by_first_five.emplace(of_first.job, of_first.batch, our_choice.partition, execute, limits.begin(console));
        planner::Job first_alone = of_first.job;
        first_alone.sample.batches.resize(1);
        by_first.emplace(first_alone, of_first.batch, first_choice.partition, execute, limits.begin(console));
        best = first_of(planner::choose_opponents(of_waves.job, of_waves.batch, execute), {});
        chain = first_of(planner::choose_opponents(of_first.job, of_first.batch, execute), "balanced");
    }

    // The fastest way, or that of 1F1B on the partition.
    static planner::Opponents first_of(const planner::Opponents& all, std::string_view partition) {
        for (const auto& way : all.ways)
            if (partition.empty() || (way.name == partition && way.policy == "1f1b")) return {{way}, {}};
        return {};
    }

    WaveStep run_step(const ShiftingJob& job, std::int64_t step) const {
        const auto request = batch_of(job, step);
        const auto execute = limits.executor();
        WaveStep made{step, wanted(step), ShiftingJob::items(request), phase(step), {}};
        made.time[WaveWay::ours] = job.planned(request, our_choice.partition, console, {&*by_waves, &*by_first_five});
        made.time[WaveWay::dip] = published(request);
        made.time[WaveWay::static_first] = by_first->step(request.job, request.batch, execute);
        made.time[WaveWay::static_first_five] = by_first_five->step(request.job, request.batch, execute);
        made.time[WaveWay::static_wave] = by_waves->step(request.job, request.batch, execute);
        made.time[WaveWay::static_1f1b] = run_way(chain, request);
        made.time[WaveWay::opponent] = run_way(best, request);
        return made;
    }

    std::optional<Duration> run_way(const planner::Opponents& way, const planner::Request& request) const {
        const auto ran = planner::run_opponents(way, request.job, request.batch, limits.executor());
        if (!ran.all.empty()) return ran.all.front().step;
        for (const auto& one : ran.not_applicable) console.say(fmt::format("{}: {}", request.batch.name, one.why));
        return std::nullopt;
    }

    // The partition dip of this batch alone, searched by dip.
    std::optional<Duration> published(const planner::Request& request) const {
        std::optional<planner::Cut> cut;
        try {
            cut = bench::published_step(request);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::limit) throw;
            return std::nullopt;
        }
        const schedule::Replayer replayer(cut->step.problem);
        const auto found = search::solve(replayer, limits.search_options("dip"), limits.executor(),
                                         limits.begin(console).keep_going());
        if (!found.schedule) return std::nullopt;
        require_right(replayer.problem(), "dip", *found.schedule, found.replay.makespan);
        return emulator::replay_on_ports(cut->step, *found.schedule).replay.makespan + cut->step.optimizer;
    }

    WaveSummary summary(std::size_t way) const {
        WaveSummary made;
        for (const WaveStep& one : course)
            if (const auto ratio = one.over_ours(way)) {
                made.all.values.push_back(*ratio);
                if (one.text_heavy()) made.text.values.push_back(*ratio);
                if (one.image_heavy()) made.image.values.push_back(*ratio);
            }
        return made;
    }

    static std::string choice_text(const planner::PartitionChoice& choice) {
        return fmt::format("{} with {} chunks a rank, chosen on {}", choice.partition.name,
                           choice.partition.chunks_per_rank, choice.chosen_on.text());
    }

    static std::string way_text(const planner::Opponents& way) {
        if (way.ways.empty()) return "none fits";
        const auto& one = way.ways.front();
        return fmt::format("{}, {} chunks a rank, {}, recompute {}", one.name, one.partition.chunks_per_rank,
                           one.policy, name_of(*one.recompute));
    }

    void print() const {
        fmt::print("{} on {}: {} batches of {} microbatches, {:g} to {:g} items each\n", model, cluster, steps,
                   microbatches, low, crest);
        fmt::print("ours: {}\nstatic: {}\nstatic-1f1b: {}\nopponent: {}\n\n", choice_text(our_choice),
                   choice_text(first_choice), way_text(chain), way_text(best));
        fmt::print("| step | items |");
        for (const auto& way : way_texts) fmt::print(" {} |", way.name);
        fmt::print("\n|---|---|");
        for (std::size_t way = 0; way < WaveWay::count; ++way) fmt::print("---|");
        fmt::print("\n");
        for (const WaveStep& one : course) {
            fmt::print("| {} | {:.1f} |", one.step, one.items);
            for (const auto& time : one.time) fmt::print(" {} |", time ? human(*time) : "does not run");
            fmt::print("\n");
        }
        fmt::print(
            "\nstep over ours: geometric means\n\n| way | text-heavy steps | image-heavy steps | all | least | most "
            "|\n|---|---|---|---|---|---|\n");
        for (std::size_t way = WaveWay::dip; way < WaveWay::count; ++way)
            print_summary(way_texts[way].name, summary(way));
    }

    void print_summary(std::string_view name, const WaveSummary& found) const {
        const auto text = [](const Ratios& ratios, double (Ratios::*figure)() const) {
            return ratios.values.empty() ? std::string("none") : fmt::format("{:.3f}x", (ratios.*figure)());
        };
        fmt::print("| {} | {} | {} | {} | {} | {} |\n", name, text(found.text, &Ratios::geometric_mean),
                   text(found.image, &Ratios::geometric_mean), text(found.all, &Ratios::geometric_mean),
                   text(found.all, &Ratios::least), text(found.all, &Ratios::most));
    }

    void print_json(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"model", model},
                                    {"cluster", cluster},
                                    {"dataset", dataset.empty() ? "vlm-mix" : dataset},
                                    {"microbatches", microbatches},
                                    {"crest", crest},
                                    {"low", low},
                                    {"ways", nlohmann::ordered_json::array()},
                                    {"steps", nlohmann::ordered_json::array()}};
        const std::array<std::string, WaveWay::count> by{
            choice_text(our_choice), "dip of each batch",     choice_text(first_choice),
            choice_text(our_choice), choice_text(our_choice), way_text(chain),
            way_text(best)};
        for (std::size_t way = 0; way < WaveWay::count; ++way) {
            nlohmann::ordered_json one{
                {"name", way_texts[way].name}, {"about", way_texts[way].about}, {"partition", by[way]}};
            one["over_ours"] = summary(way).json();
            json["ways"].push_back(std::move(one));
        }
        for (const WaveStep& one : course) {
            nlohmann::ordered_json told{{"step", one.step},
                                        {"items_wanted", one.wanted},
                                        {"items", one.items},
                                        {"text_heavy", one.text_heavy()},
                                        {"image_heavy", one.image_heavy()}};
            for (std::size_t way = 0; way < WaveWay::count; ++way) {
                auto& time = told["step_ns"][way_texts[way].name];
                if (one.time[way]) time = one.time[way]->count();
            }
            json["steps"].push_back(std::move(told));
        }
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    std::string model, cluster, dataset, costs;
    std::int64_t steps = 40, microbatches = 16;
    double crest = 22, low = 2;

    planner::PartitionChoice our_choice, first_choice;
    std::optional<planner::StaticOrder> by_waves, by_first, by_first_five;
    planner::Opponents best, chain;
    std::vector<WaveStep> course;
};

}  // namespace

void add_waves(CLI::App& program) {
    add_command<WavesStudy>(
        program, "waves", "a static plan against plans of every batch, while images rise and fall",
        {.synopsis = "[--model MODEL] [--steps N] [OPTION...]",
         .description =
             "Draws batches whose images rise and fall in two waves, as in the published experiment on dynamic data: "
             "22 images a microbatch at the crest, 2 in the trough, around which steps 15 to 20 and 35 to 40 of 40 "
             "lie. "
             "Every batch takes its step as we plan it, on a partition chosen once on five batches of the waves; as "
             "the published method does; in one order of the first batches that never changes, on a partition chosen "
             "on them; and as the job's opponent. Prints all steps and how much longer each takes than ours in "
             "text-heavy, in image-heavy and in all steps.\n"
             "Schedules of ours and of dip are checked by a second replay that shares no code with the search.",
         .examples = {{"Eight small batches", "pipeweaver_studies waves --steps 8 --microbatches 2 --max-rounds 2"},
                      {"The same number of rounds on any machine, for a program to read",
                       "pipeweaver_studies waves --steps 8 --microbatches 2 --max-rounds 2 --json"}},
         .see_also = {"pipeweaver_studies shift", "pipeweaver bench plan", "studies/README.md"}});
}

}  // namespace pipeweaver::studies
