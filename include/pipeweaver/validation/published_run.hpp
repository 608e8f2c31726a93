// Training runs as others published them, and what the emulator says of them.
//
// Tables       CSV with the columns
// source,model,layers,hidden,ffn,heads,kv_heads,vocab,seq,gpu,gpus,tp,pp,vpp,dp,cp,ep,
//              micro_batch,global_batch,recompute,dtype,tflops_per_gpu,step_time_s,mfu,memory_gib,note in any order; an
//              empty cell is unknown. source, model, note and what was measured (tflops_per_gpu ... memory_gib) may be
//              missing; other columns are passed on. id, against and step_ratio are read, too: a row whose `against`
//              names another row's `id` is a ratio, measured as step_ratio or by both steps. Or the header of vTrain's
//              single-node table ("# GPUs", "global batch", ..., "iteration time (ms)"), whose rows stand for GPTs on
//              A100-SXM with fp16, full recomputation, ffn = 4 hidden and 50257 words.
// Architecture The columns win; the model's name adds what they lack and what no column holds: the head size, whether
//              the feed-forward has a gate, latent attention, experts.
// Refused      A row that lacks a figure the step depends on, contradicts itself, or is of a kind that no published run
//              was fitted for. Never guessed: what is taken for granted is said in `reason`.
// Multimodal   Rows that say so, or whose model a table knows (validation/multimodal_kinds.cpp): FLUX.1, LLaVA-1.5-7B,
//              Wan 2.1 14B, Qwen2.5-VL, Qwen3.5-VL, Nemotron 3 Nano Omni; what columns do not hold is in that table.
//              TFLOP/s and MFU of theirs count the model's own FLOPs where the row does not say.
// Rates        Where step_time_s is empty a rate stands for it: tokens_per_s or tokens_per_s_per_gpu, else
//              tflops_per_gpu or mfu, counted as the column flops says (flops.hpp).
// Source       formulas: docs/accuracy.md; fitted numbers: emulator/pricing/in_situ.cpp.
#pragma once

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/validation/flops.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::validation {

/// A row of a table of runs; nothing: unknown.
struct PublishedRun {
    using Count = std::optional<std::int64_t>;

    std::string source, model, gpu, recompute, dtype, note;
    std::string id, against;  ///< its name, and that of the row whose step its own is measured against
    Count layers, hidden, ffn, heads, kv_heads, vocab, seq;
    Count gpus, tp, pp, vpp, dp, cp, ep, micro_batch, global_batch;
    /// What was measured. memory_gib is the peak of the fullest GPU, of the kind that the source prints; where the
    /// column is empty, a note may say it: `max allocated N GiB`.
    std::optional<double> step_time_s, memory_gib, tflops_per_gpu;
    std::optional<double> mfu;                                 ///< of the dense bf16 peak, up to 1
    std::optional<double> tokens_per_s, tokens_per_s_per_gpu;  ///< of the backbone
    std::optional<FlopsCounted> flops;                         ///< what tflops_per_gpu and mfu count
    std::optional<double> step_ratio;                          ///< its step over that of `against`
    std::string unreadable;  ///< not empty: the first of its cells that cannot be read, with its place; it is refused
};

/// The rows of the table, in order. Throws Error{input} for a missing column and a column that predict adds. A cell
/// that is no possible number or word makes its row unreadable: file:line: column: what is wrong, what is allowed.
[[nodiscard]] std::vector<PublishedRun> read_published_runs(const CsvTable& table);

/// What a run is predicted to take.
struct Prediction {
    std::optional<double> step_time_s;   ///< nothing: refused
    std::optional<double> memory_gib;    ///< peak allocated of the fullest GPU; nothing: not known for such runs
    std::optional<double> compared_gib;  ///< the same with what is allowed for the kind that the source prints
    emulator::MemoryKind memory_kind = emulator::MemoryKind::allocated;  ///< what the source prints as a GPU's peak
    std::string device;                                                  ///< canonical name, empty where unknown
    bool experts = false;                                                ///< a mixture of experts
    bool multimodal = false;                                             ///< of several networks, or of a generator
    double model_flops = 0;   ///< of a step on all GPUs, nothing counted twice for recomputation
    StepFlops flops{};        ///< the same as sources count it
    double peak_flops = 0;    ///< dense bf16, per second, of all GPUs
    std::int64_t tokens = 0;  ///< of the backbone, in a step
    std::int64_t gpus = 0;
    std::string recipe{};    ///< its name; empty: refused before it was known
    std::string products{};  ///< number format of products, as bf16; empty: refused before it was known
    std::string command{};   ///< of `pipeweaver emulate` that prints the same step; empty: refused
    std::string reason;      ///< refused: why; else what was taken for granted, if anything

    bool refused() const { return !step_time_s; }
};

/// The costs of a device, by canonical name.
using CostsOf = std::function<std::shared_ptr<const costdb::CostDatabase>(const std::string& device)>;

/// Predicts one run from its columns and what its note says of how it was trained; measured values are not looked at.
/// `own`: recipes that take the place of shipped ones of their names. Throws what `costs` throws.
[[nodiscard]] Prediction predict(const PublishedRun& run, const CostsOf& costs,
                                 std::span<const emulator::Recipe> own = {});

/// Of each run, by the costs that the program holds.
[[nodiscard]] std::vector<Prediction> predict_all(std::span<const PublishedRun> runs,
                                                  std::span<const emulator::Recipe> own = {});

}  // namespace pipeweaver::validation
