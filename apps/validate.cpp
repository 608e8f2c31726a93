// pipeweaver validate: published runs to predictions and an error table.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/errors_json.hpp"
#include "apps/own_run.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/validation/run_errors.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using emulator::MemoryKind;
using validation::Errors;
using validation::PredictedRows;
using validation::Prediction;
using validation::PublishedRun;
using validation::SourceErrors;
using validation::StepRatio;

// What was taken for granted, or why it was refused; of a rate that nothing can be compared with, that too.
std::string reason_of(const PublishedRun& run, const Prediction& one, bool is_compared) {
    const bool has_rate = run.tflops_per_gpu || run.mfu;
    if (one.refused() || is_compared || !has_rate) return one.reason;
    const std::string why = run.flops
                                ? fmt::format("no step compared: no FLOPs of kind {} are known", name_of(*run.flops))
                                : "no step compared: the column flops does not say what the rate counts";
    return one.reason.empty() ? why : fmt::format("{}; {}", one.reason, why);
}

std::string predictions_csv(const CsvTable& table, const std::vector<PublishedRun>& runs,
                            const std::vector<Prediction>& predictions) {
    std::string csv;
    for (const auto& column : table.columns()) csv += csv_cell(column) + ',';
    csv +=
        "predicted_step_time_s,compared_step_time_s,predicted_memory_gib,memory_kind,compared_memory_gib,status,reason,"
        "recipe,command\n";
    const auto number = [](const std::optional<double>& value, int digits) {
        return value ? fmt::format("{:.{}f}", *value, digits) : std::string();
    };
    for (std::size_t row = 0; row < table.rows(); ++row) {
        for (std::size_t column = 0; column < table.columns().size(); ++column)
            csv += csv_cell(table.text(row, column)) + ',';
        const Prediction& one = predictions[row];
        const auto compared = one.refused() ? std::nullopt : validation::measured_step(runs[row], one);
        csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", number(one.step_time_s, 9), number(compared, 9),
                           number(one.memory_gib, 3), one.memory_gib ? name_of(one.memory_kind) : "",
                           number(one.compared_gib, 3), one.refused() ? "refused" : "predicted",
                           csv_cell(reason_of(runs[row], one, compared.has_value())), csv_cell(one.recipe),
                           csv_cell(one.command));
    }
    return csv;
}

std::string_view name_of(const SourceErrors& source) {
    return source.source.empty() ? "(no source)" : std::string_view(source.source);
}

std::string kind_of(const PredictedRows& kind) {
    return kind.device + (kind.experts ? ", experts" : kind.multimodal ? ", multimodal" : "");
}

void add_errors(TextTable& table, const PredictedRows& kind, std::string_view what, const Errors& errors,
                std::string_view source) {
    std::vector<std::string> texts{kind_of(kind), std::string(what), std::to_string(errors.rows)};
    for (const double percent :
         {errors.mean_percent, errors.median_percent, errors.p90_percent, errors.max_percent, errors.bias_percent})
        texts.push_back(errors.rows == 0 ? " " : fmt::format("{:.2f}", percent));
    if (errors.rows > 0) texts.back() = fmt::format("{:+.2f}", errors.bias_percent);
    texts.push_back(fmt::format(" {}", source));
    table.add(std::move(texts));
}

void add_kind(TextTable& table, const PredictedRows& kind, std::string_view source) {
    add_errors(table, kind, "time", kind.step_time, source);
    for (std::size_t i = 0; i < kind.memory_of.size(); ++i)
        if (kind.memory_of[i].rows > 0)
            add_errors(table, kind, name_of(static_cast<MemoryKind>(i)), kind.memory_of[i], source);
}

void print_errors(const std::vector<SourceErrors>& sources, const std::vector<PredictedRows>& together) {
    std::vector<TextTable::Column> columns{{"|error| in percent", true, 20}, {"", true, 9}, {"n", false, 5}};
    for (const char* error : {"MAPE", "median", "p90", "max", "bias"}) columns.push_back({error, false, 7});
    columns.push_back({" source", true});
    TextTable table(std::move(columns), 1);
    for (const SourceErrors& source : sources)
        for (const PredictedRows& kind : source.predicted) add_kind(table, kind, name_of(source));
    if (sources.size() > 1)
        for (const PredictedRows& kind : together) add_kind(table, kind, "all");
    print_text("{}", table.text());
}

void print_refused(const std::vector<SourceErrors>& sources) {
    std::size_t rows = 0, refused = 0;
    for (const SourceErrors& source : sources) {
        rows += source.rows;
        refused += source.refused_rows();
    }
    print_text("\n{} of {} rows refused\n", refused, rows);
    for (const SourceErrors& source : sources) {
        if (source.refused.empty()) continue;
        print_text("{:>5}  {}\n", source.refused_rows(), name_of(source));
        for (const auto& one : source.refused) print_text("{:>12}  {}\n", one.rows, one.reason);
    }
}

// Of a ratio less 1.
std::string signed_percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

void print_ratios(const std::vector<StepRatio>& ratios) {
    if (ratios.empty()) return;
    std::vector<double> relative;
    relative.reserve(ratios.size());
    std::size_t same = 0;
    print_text("\n{:<44} {:>9} {:>9}\n", "step over another row's, less 1", "measured", "predicted");
    for (const StepRatio& one : ratios) {
        print_text("{:<44} {:>9} {:>9}{}\n", one.id + " / " + one.against, signed_percent(one.measured),
                   one.predicted ? signed_percent(*one.predicted) : "refused",
                   !one.predicted || one.same_sign() ? "" : "  other sign");
        if (!one.predicted) continue;
        same += one.same_sign() ? 1 : 0;
        relative.push_back(*one.predicted / one.measured - 1);
    }
    const std::size_t asked = relative.size();
    print_text("{} of {} have the measured sign; the ratios are {:.1f} % off on average\n", same, asked,
               validation::errors_of(std::move(relative)).mean_percent);
}

nlohmann::ordered_json to_json(const std::vector<StepRatio>& ratios) {
    auto list = nlohmann::ordered_json::array();
    for (const StepRatio& one : ratios)
        list.push_back({{"id", one.id},
                        {"against", one.against},
                        {"measured", one.measured},
                        {"predicted", or_null(one.predicted)}});
    return list;
}

nlohmann::ordered_json to_json(const std::vector<PredictedRows>& kinds) {
    auto list = nlohmann::ordered_json::array();
    for (const PredictedRows& kind : kinds)
        list.push_back({{"device", kind.device},
                        {"experts", kind.experts},
                        {"multimodal", kind.multimodal},
                        {"rows", kind.rows},
                        {"step_time", errors_json(kind.step_time)},
                        {"memory", errors_json(kind.memory)},
                        {"allocated", errors_json(kind.memory_of[0])},
                        {"reserved", errors_json(kind.memory_of[1])},
                        {"on_device", errors_json(kind.memory_of[2])}});
    return list;
}

nlohmann::ordered_json to_json(const SourceErrors& source) {
    auto refused = nlohmann::ordered_json::array();
    for (const auto& one : source.refused) refused.push_back({{"reason", one.reason}, {"rows", one.rows}});
    return {{"source", source.source},
            {"rows", source.rows},
            {"predicted", to_json(source.predicted)},
            {"refused", refused}};
}

nlohmann::ordered_json to_json(const std::vector<SourceErrors>& sources, const std::vector<PredictedRows>& together,
                               const std::vector<StepRatio>& ratios) {
    std::size_t rows = 0, refused = 0;
    auto list = nlohmann::ordered_json::array();
    for (const SourceErrors& source : sources) {
        rows += source.rows;
        refused += source.refused_rows();
        list.push_back(to_json(source));
    }
    return {{"format", "pipeweaver-validation/1"},
            {"rows", rows},
            {"predicted", rows - refused},
            {"refused", refused},
            {"sources", list},
            {"all", to_json(together)},
            {"ratios", to_json(ratios)}};
}

struct Validate {
    explicit Validate(CLI::App& app) : options(app) {
        add_operand(app, "runs", runs_file, "RUNS.csv", "runs, one a row; docs/formats.md has the columns");
        options.group("Published runs");
        options.text("recipes", recipes, "FILE,...",
                     "recipes in place of shipped ones of their names, as for fitting them");
        options.text("out", out, "FILE", "the runs with predicted_step_time_s,compared_step_time_s,...,status,reason");
        options.writes();
        console.add_to(app);
        own.add_to(options);
        options.with_configuration();
    }

    void run() const {
        options.apply();
        require_given(
            {{own.given() || !runs_file.empty(), "RUNS.csv", "a file of runs, or --measured TIME of your own"}});
        if (own.given() && !runs_file.empty()) fail(ErrorKind::input, "RUNS.csv: goes without --measured");
        if (own.given()) return validate_own();
        own.require_none();
        validate_published();
    }

private:
    void validate_own() const {
        if (!out.empty() || !recipes.empty())
            fail(ErrorKind::input, "--{}: is for RUNS.csv, not for --measured", out.empty() ? "recipes" : "out");
        own.run(console);
    }

    void validate_published() const {
        const auto table = CsvTable::read(runs_file);
        const auto runs = validation::read_published_runs(table);
        const auto predictions = validation::predict_all(runs, own_recipes());
        if (!out.empty()) {
            write_files({{out, predictions_csv(table, runs, predictions)}});
            console.say(fmt::format("{}: {} rows", out, runs.size()));
        }
        const auto sources = validation::errors_by_source(runs, predictions);
        const auto together = validation::errors_of_all(runs, predictions);
        const auto ratios = validation::ratios_of(runs, predictions);
        if (console.json) {
            print_json(to_json(sources, together, ratios));
        } else {
            print_errors(sources, together);
            print_refused(sources);
            print_ratios(ratios);
        }
        std::fflush(stdout);
        require_readable(runs);
    }

    // All others are predicted first.
    static void require_readable(const std::vector<PublishedRun>& runs) {
        const std::string* first = nullptr;
        std::size_t bad = 0;
        for (const PublishedRun& run : runs) {
            if (run.unreadable.empty()) continue;
            ++bad;
            if (first == nullptr) first = &run.unreadable;
        }
        if (bad == 0) return;
        const auto others = bad == 1 ? std::string() : fmt::format("; {} more rows have such cells", bad - 1);
        fail(ErrorKind::input, "{}{}", *first, others);
    }

    std::vector<emulator::Recipe> own_recipes() const {
        std::vector<emulator::Recipe> all;
        for (const auto& file : parts_of(recipes))
            if (!file.empty()) all.push_back(emulator::find_recipe(file));
        return all;
    }

    Options options;
    std::string runs_file, recipes, out;
    OwnRunOptions own;
    Console console;
};

}  // namespace

void add_validate(CLI::App& program) {
    add_command<Validate>(
        program, "validate", "predict training runs, published or your own, and how wrong that is",
        {.synopsis = "(RUNS.csv [--out FILE] | --measured TIME --model MODEL ...) [--json]",
         .description = "Predicts step time and memory of training runs from their columns, and compares them with "
                        "what was measured, by source.\n"
                        "An empty cell is unknown. A row that cannot be predicted is refused with the reason; nothing "
                        "is guessed, and what is taken for granted is said beside the prediction. With a cell that "
                        "cannot be read the exit status is 2; all other rows are predicted.\n"
                        "With --measured one run of your own is said by the options of `pipeweaver emulate`, and "
                        "stands beside its prediction part by part.",
         .examples = {{"Four runs", "pipeweaver validate examples/runs.csv --out predictions.csv"},
                      {"Multimodal runs", "pipeweaver validate examples/multimodal-runs.csv --out multimodal.csv"},
                      {"The errors, for a program to read", "pipeweaver validate examples/runs.csv --json"},
                      {"A run of your own",
                       "pipeweaver validate --measured 9.1s --memory 31GiB --model dip-vlm-m --cluster h100-sxm:32 "
                       "--tp 8 --pp 4 --dataset vlm-mix --microbatches 8"}},
         .see_also = {"pipeweaver emulate", "docs/accuracy.md", "docs/formats.md", "pipeweaver costdb query"}});
}

}  // namespace pipeweaver::apps
