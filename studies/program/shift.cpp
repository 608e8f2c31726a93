// pipeweaver_studies shift: what a partition chosen on another kind of batches costs, and when to choose again.
#include "apps/command_line.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "studies/program/shifting_job.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::studies {

using namespace apps;

namespace {

// What a partition is chosen on, and what batches are: images and text alone.
enum BatchKind : std::size_t { of_images, of_text, of_mix, batch_kinds };
constexpr std::array<const char*, batch_kinds> batch_kind_names{"images", "text", "mix"};

// A kind of batches on one partition: the mean step.
struct OnPartition {
    BatchKind batches = of_images, chosen_on = of_images;
    std::vector<Duration> steps;
    std::size_t asked = 0;

    bool fits() const { return steps.size() == asked; }
    double mean_ns() const {
        Duration sum{};
        for (const Duration step : steps) sum += step;
        return static_cast<double>(sum.count()) / static_cast<double>(steps.size());
    }
};

struct Shift {
    std::string model, cluster;
    std::array<planner::PartitionChoice, batch_kinds> choices;
    std::vector<OnPartition> cells;

    const OnPartition& cell(BatchKind batches, BatchKind chosen_on) const {
        return *std::find_if(cells.begin(), cells.end(), [&](const OnPartition& one) {
            return one.batches == batches && one.chosen_on == chosen_on;
        });
    }

    // The part of a step that the partition of the right kind saves; none: one of the two does not fit.
    std::optional<double> saved(const OnPartition& one) const {
        const OnPartition& right = cell(one.batches, one.batches);
        if (!one.fits() || !right.fits()) return std::nullopt;
        return 1 - right.mean_ns() / one.mean_ns();
    }

    // Steps until what a stop costs is saved; none: never.
    std::optional<std::int64_t> pays_after(const OnPartition& one, Duration stop) const {
        const auto part = saved(one);
        if (!part || *part <= 0) return std::nullopt;
        return static_cast<std::int64_t>(std::ceil(static_cast<double>(stop.count()) / (*part * one.mean_ns())));
    }
};

struct ShiftStudy {
    explicit ShiftStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The benchmark");
        std::vector<std::string> names;
        for (const auto& one : shifting_set_ups()) names.emplace_back(one.model);
        options.choice("model", model, names,
                       "one of the set-ups, dip-vlm-s on h800-sxm:16, the others on H100s (default: all three)");
        options.text("dataset", dataset, "DATASET", "whose samples are drawn (default vlm-mix)");
        options.integer("batches", batches, 1, 1000, "batches of each kind, with the seeds 1, 2, ... (default 5)");
        options.integer("sample", sample, 2, 100,
                        "batches that a partition is chosen on, with the seeds 10001, 10002, ... (default 4)");
        options.integer("microbatches", microbatches, 1, 1000, "microbatches of a batch (default 16)");
        options.number("crest", heavy, 0.1, 48, "items of a microbatch in image-heavy batches (default 22)");
        options.number("low", light, 0.1, 48, "items of a microbatch in text-heavy batches (default 2)");
        options.parsed("stop-cost", "TIME",
                       "a checkpoint saved, the job stopped, started and the checkpoint loaded elsewhere (default "
                       "10min, assumed)",
                       [this](const std::string& given) { stop = parse_duration(given); });
        planner::add_costs(options, costs);
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (light >= heavy) fail(ErrorKind::input, "--low: is {:g}, allowed is less than --crest, {:g}", light, heavy);
        for (const auto& one : shifting_set_ups())
            if (model.empty() || model == one.model) shifts.push_back(shift(one));
        console.clear();
        if (console.json) return print_json(start);
        print();
    }

    Shift shift(const ShiftingSetUp& set_up) const {
        const ShiftingJob job(set_up, {}, dataset, costs, microbatches, limits);
        Shift made{set_up.model, job.cluster(), {}, {}};
        for (const BatchKind kind : {of_images, of_text, of_mix}) {
            const planner::Request of_kind = sample_of(job, kind);
            made.choices[kind] =
                planner::choose_partition(of_kind.job, of_kind.batch, planner::thorough_choice, limits.executor());
        }
        for (const BatchKind kind : {of_images, of_text}) {
            std::array<OnPartition, batch_kinds> on;
            for (const BatchKind chosen_on : {of_images, of_text, of_mix})
                on[chosen_on] = {kind, chosen_on, {}, static_cast<std::size_t>(batches)};
            for (std::int64_t seed = 1; seed <= batches; ++seed) {
                const auto batch = job.batch(static_cast<std::uint64_t>(seed), items_of(kind));
                for (const BatchKind chosen_on : {of_images, of_text, of_mix})
                    if (const auto step = job.planned(batch, made.choices[chosen_on].partition, console))
                        on[chosen_on].steps.push_back(*step);
            }
            made.cells.insert(made.cells.end(), on.begin(), on.end());
        }
        return made;
    }

    double items_of(BatchKind kind) const { return kind == of_images ? heavy : light; }

    // Of a mix every other batch is of images.
    planner::Request sample_of(const ShiftingJob& job, BatchKind kind) const {
        std::vector<planner::Request> all;
        for (std::int64_t i = 0; i < sample; ++i) {
            const BatchKind of = kind != of_mix ? kind : i % 2 == 0 ? of_images : of_text;
            all.push_back(job.batch(static_cast<std::uint64_t>(10'001 + i), items_of(of)));
        }
        return job.on_sample(all, batch_kind_names[kind], 10'001);
    }

    void print() const {
        fmt::print(
            "{} batches of {} microbatches of each kind: images {:g} items a microbatch, text {:g}; a stop costs "
            "{}\n\n",
            batches, microbatches, heavy, light, human(stop));
        fmt::print(
            "| set-up | batches | partition chosen on | it is | mean step | the right one saves | a stop pays after "
            "|\n|---|---|---|---|---|---|---|\n");
        for (const Shift& one : shifts)
            for (const OnPartition& cell : one.cells) fmt::print("{}", row(one, cell));
    }

    std::string row(const Shift& of, const OnPartition& cell) const {
        const auto& partition = of.choices[cell.chosen_on].partition;
        const auto saved = of.saved(cell);
        const auto after = of.pays_after(cell, stop);
        const bool right = cell.batches == cell.chosen_on;
        std::string pays =
            after ? fmt::format("{} steps, {}", *after,
                                human(Duration(std::llround(cell.mean_ns() * static_cast<double>(*after)))))
                  : "never";
        return fmt::format("| {} | {} | {} | {}, {} chunks a rank | {} | {} | {} |\n", of.model,
                           batch_kind_names[cell.batches], batch_kind_names[cell.chosen_on], partition.name,
                           partition.chunks_per_rank,
                           cell.fits() ? human(Duration(std::llround(cell.mean_ns()))) : "does not fit",
                           right || !saved ? "" : fmt::format("{:.1f} %", 100 * *saved), right ? "" : pays);
    }

    void print_json(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"batches", batches},
                                    {"sample", sample},
                                    {"microbatches", microbatches},
                                    {"images_items", heavy},
                                    {"text_items", light},
                                    {"stop_cost_ns", stop.count()},
                                    {"set_ups", nlohmann::ordered_json::array()}};
        for (const Shift& one : shifts) json["set_ups"].push_back(told(one));
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    nlohmann::ordered_json told(const Shift& of) const {
        nlohmann::ordered_json json{{"model", of.model},
                                    {"cluster", of.cluster},
                                    {"partitions", nlohmann::ordered_json::object()},
                                    {"on", nlohmann::ordered_json::array()}};
        for (std::size_t kind = 0; kind < batch_kinds; ++kind) {
            const auto& partition = of.choices[kind].partition;
            json["partitions"][batch_kind_names[kind]] = {{"name", partition.name},
                                                          {"chunks_per_rank", partition.chunks_per_rank},
                                                          {"unit_items", partition.unit_items},
                                                          {"notes", partition.notes}};
        }
        for (const OnPartition& cell : of.cells) {
            nlohmann::ordered_json one{{"batches", batch_kind_names[cell.batches]},
                                       {"partition", batch_kind_names[cell.chosen_on]},
                                       {"step_ns", nlohmann::ordered_json::array()},
                                       {"mean_ns", nullptr},
                                       {"saved", nullptr},
                                       {"pays_after_steps", nullptr}};
            for (const Duration step : cell.steps) one["step_ns"].push_back(step.count());
            if (cell.fits()) one["mean_ns"] = std::llround(cell.mean_ns());
            if (const auto saved = of.saved(cell)) one["saved"] = *saved;
            if (const auto after = of.pays_after(cell, stop)) one["pays_after_steps"] = *after;
            json["on"].push_back(std::move(one));
        }
        return json;
    }

    Options options;
    Console console;
    Limits limits;
    std::string model, dataset, costs;
    std::int64_t batches = 5, sample = 4, microbatches = 16;
    double heavy = 22, light = 2;
    Duration stop = std::chrono::minutes(10);
    std::vector<Shift> shifts;
};

}  // namespace

void add_shift(CLI::App& program) {
    add_command<ShiftStudy>(
        program, "shift", "a partition chosen on other batches than it is used on, and when to choose again",
        {.synopsis = "[--model MODEL] [--stop-cost TIME] [OPTION...]",
         .description =
             "Draws batches of two kinds, image-heavy and text-heavy, and chooses a partition on each kind and on a "
             "mix of both. Plans every batch on all three, and prints how much of a step the partition of the right "
             "kind would save, and after how many steps it pays to stop the job, to choose again, and to load the "
             "weights where they then belong.\n"
             "Every schedule is checked by a second replay that shares no code with the search.",
         .examples = {{"One set-up, small batches",
                       "pipeweaver_studies shift --model dip-vlm-s --batches 1 --sample 2 --microbatches 2 "
                       "--max-rounds 2"},
                      {"A stop of two minutes, for a program to read",
                       "pipeweaver_studies shift --model dip-vlm-s --batches 1 --sample 2 --microbatches 2 "
                       "--max-rounds 2 --stop-cost 2min --json"}},
         .see_also = {"pipeweaver_studies waves", "pipeweaver partition", "studies/README.md"}});
}

}  // namespace pipeweaver::studies
