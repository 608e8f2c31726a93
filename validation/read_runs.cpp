#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/validation/published_run.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace pipeweaver::validation {

namespace {

struct TextColumn {
    std::string_view name;
    std::string PublishedRun::*cell;
    bool required;
};
constexpr std::array<TextColumn, 8> texts{{{"source", &PublishedRun::source, false},
                                           {"model", &PublishedRun::model, false},
                                           {"gpu", &PublishedRun::gpu, true},
                                           {"recompute", &PublishedRun::recompute, true},
                                           {"dtype", &PublishedRun::dtype, true},
                                           {"note", &PublishedRun::note, false},
                                           {"id", &PublishedRun::id, false},
                                           {"against", &PublishedRun::against, false}}};

// With these limits no size of a step exceeds what 64 bits hold.
struct CountColumn {
    std::string_view name;
    PublishedRun::Count PublishedRun::*cell;
    double limit;
};
constexpr std::array<CountColumn, 16> counts{{{"layers", &PublishedRun::layers, 4096},
                                              {"hidden", &PublishedRun::hidden, 0x1p18},
                                              {"ffn", &PublishedRun::ffn, 0x1p20},
                                              {"heads", &PublishedRun::heads, 16384},
                                              {"kv_heads", &PublishedRun::kv_heads, 16384},
                                              {"vocab", &PublishedRun::vocab, 0x1p24},
                                              {"seq", &PublishedRun::seq, 0x1p26},
                                              {"gpus", &PublishedRun::gpus, 1e7},
                                              {"tp", &PublishedRun::tp, 1024},
                                              {"pp", &PublishedRun::pp, 1024},
                                              {"vpp", &PublishedRun::vpp, 1024},
                                              {"dp", &PublishedRun::dp, 1e6},
                                              {"cp", &PublishedRun::cp, 1024},
                                              {"ep", &PublishedRun::ep, 1024},
                                              {"micro_batch", &PublishedRun::micro_batch, 0x1p16},
                                              {"global_batch", &PublishedRun::global_batch, 1e8}}};

struct MeasuredColumn {
    std::string_view name;
    std::optional<double> PublishedRun::*cell;
    double scale = 1;  // of the cell, to the member's unit
    double limit = 1e9;
};
constexpr std::array<MeasuredColumn, 7> measured_columns{{{"step_time_s", &PublishedRun::step_time_s},
                                                          {"memory_gib", &PublishedRun::memory_gib},
                                                          {"tflops_per_gpu", &PublishedRun::tflops_per_gpu},
                                                          {"mfu", &PublishedRun::mfu, 1, 1},
                                                          {"tokens_per_s", &PublishedRun::tokens_per_s, 1, 1e12},
                                                          {"tokens_per_s_per_gpu", &PublishedRun::tokens_per_s_per_gpu},
                                                          {"step_ratio", &PublishedRun::step_ratio}}};

// vTrain's table of single-node runs.
constexpr std::array<CountColumn, 10> single_node_counts{{{"# GPUs", &PublishedRun::gpus, 1e7},
                                                          {"global batch", &PublishedRun::global_batch, 1e8},
                                                          {"micro batch", &PublishedRun::micro_batch, 0x1p16},
                                                          {"hidden size", &PublishedRun::hidden, 0x1p18},
                                                          {"attention heads", &PublishedRun::heads, 16384},
                                                          {"# layers", &PublishedRun::layers, 4096},
                                                          {"sequence length", &PublishedRun::seq, 0x1p26},
                                                          {"tensor parallelism", &PublishedRun::tp, 1024},
                                                          {"data parallelism", &PublishedRun::dp, 1e6},
                                                          {"pipeline parallelism", &PublishedRun::pp, 1024}}};
constexpr MeasuredColumn single_node_time{"iteration time (ms)", &PublishedRun::step_time_s, 1e-3};

PublishedRun::Count count(const CsvTable& table, std::size_t row, std::size_t column, double limit) {
    if (table.text(row, column).empty()) return std::nullopt;
    const double value = table.number(row, column, 0, limit);
    if (value != std::floor(value))
        table.fail_at(row, column,
                      must_be(table.text(row, column), fmt::format("a whole number from 1 to {:.0f}", limit)));
    return static_cast<std::int64_t>(value);
}

std::optional<double> positive(const CsvTable& table, std::size_t row, std::size_t column, double limit) {
    if (table.text(row, column).empty()) return std::nullopt;
    return table.number(row, column, 0, limit);
}

// What cannot be read refuses its row alone.
template <class Read>
void read_cell(PublishedRun& run, const Read& read) {
    try {
        read(run);
    } catch (const Error& error) {
        if (run.unreadable.empty()) run.unreadable = error.what();
    }
}

template <std::size_t n>
void read_counts(const CsvTable& table, const std::array<CountColumn, n>& columns, std::vector<PublishedRun>& runs) {
    for (const auto& [name, cell, limit] : columns) {
        const auto column = table.column(name);
        for (std::size_t row = 0; row < runs.size(); ++row)
            read_cell(runs[row], [&, cell = cell, limit = limit](PublishedRun& run) {
                run.*cell = count(table, row, column, limit);
            });
    }
}

void read_measured(const CsvTable& table, const MeasuredColumn& wanted, std::vector<PublishedRun>& runs) {
    const auto column = table.find(wanted.name);
    if (!column) return;
    for (std::size_t row = 0; row < runs.size(); ++row)
        read_cell(runs[row], [&](PublishedRun& run) {
            if (const auto value = positive(table, row, *column, wanted.limit))
                run.*wanted.cell = *value * wanted.scale;
        });
}

void read_flops(const CsvTable& table, std::vector<PublishedRun>& runs) {
    const auto column = table.find("flops");
    if (!column) return;
    for (std::size_t row = 0; row < runs.size(); ++row)
        read_cell(runs[row], [&](PublishedRun& run) {
            const std::string_view text = table.text(row, *column);
            run.flops = flops_called(text);
            if (!run.flops && !text.empty()) table.fail_at(row, *column, must_be(text, one_of(flops_names())));
        });
}

void read_single_node(const CsvTable& table, std::vector<PublishedRun>& runs) {
    read_counts(table, single_node_counts, runs);
    read_measured(table, single_node_time, runs);
    for (PublishedRun& run : runs) {
        run.source = "vTrain single-node table";
        run.model = "GPT";
        run.gpu = "A100-SXM";
        run.dtype = "fp16";
        run.recompute = name_of(emulator::Recompute::full);
        run.kv_heads = run.heads;
        if (run.hidden) run.ffn = 4 * *run.hidden;
        run.vocab = 50257;
        run.cp = run.vpp = 1;
    }
}

// Of "..., max allocated 39.81 GiB".
std::optional<double> memory_in(std::string_view note) {
    constexpr std::string_view words = "max allocated ";
    const auto place = note.find(words);
    if (place == std::string_view::npos) return std::nullopt;
    const auto rest = note.substr(place + words.size());
    double gib = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), gib);
    const std::string_view unit(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
    return error == std::errc{} && gib > 0 && unit.starts_with(" GiB") ? std::optional(gib) : std::nullopt;
}

void read_text(const CsvTable& table, const TextColumn& wanted, std::vector<PublishedRun>& runs) {
    const auto column = wanted.required ? table.column(wanted.name) : table.find(wanted.name);
    if (!column) return;
    for (std::size_t row = 0; row < runs.size(); ++row) runs[row].*wanted.cell = table.text(row, *column);
}

}  // namespace

std::vector<PublishedRun> read_published_runs(const CsvTable& table) {
    for (const auto* added : {"predicted_step_time_s", "compared_step_time_s", "predicted_memory_gib", "memory_kind",
                              "compared_memory_gib", "status", "reason", "recipe", "command"})
        if (table.find(added))
            fail(ErrorKind::input, "{}:1: column '{}' is one that predictions add, allowed is a table without it",
                 table.name(), added);
    std::vector<PublishedRun> runs(table.rows());
    if (table.find(single_node_counts.front().name)) {
        read_single_node(table, runs);
        return runs;
    }
    for (const TextColumn& column : texts) read_text(table, column, runs);
    read_counts(table, counts, runs);
    for (const MeasuredColumn& column : measured_columns) read_measured(table, column, runs);
    read_flops(table, runs);
    for (PublishedRun& run : runs)
        if (!run.memory_gib) run.memory_gib = memory_in(run.note);
    return runs;
}

}  // namespace pipeweaver::validation
