// A model whose encoders are built as a framework does.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::workloads {

/// `model` with its encoders as the row says: those in front of the backbone that take items. Of a row without a source
/// they stay as the job's.
void build_as(Model& model, const Built& row);

/// Pads the encoders with `heads` heads that tensor parallel GPUs split to what `tp` divides, and says which: a
/// sentence each. Pre: tp > 0.
std::vector<std::string> pad_heads(Model& model, std::int64_t heads, std::int64_t tp);

/// Heads of a module where its framework pads them for so many tensor parallel GPUs; as many as the model has where it
/// does not. Pre: tp > 0.
[[nodiscard]] std::int64_t heads_on(const Model& model, const Module& module, std::int64_t tp);

/// Pads heads as the model's framework does, from those that the model has, and says so in `assumed` in place of what
/// an earlier call said of other layouts. Pre: tp > 0.
void pad_as_built(Model& model, std::int64_t tp);

/// What of a module's blocks runs again beside what is said.
[[nodiscard]] EncoderRecompute recompute_of(const Model& model, std::size_t module);

/// Layers of the backbone that its first stage must have, of a model with encoders; 0: none.
[[nodiscard]] std::int64_t first_layers(const Model& model);

/// Whether its framework deals whole images over context parallel groups.
[[nodiscard]] bool deals_images(const Model& model);

/// "vit: whole on each GPU of its rank, which all do the same (megatron-bridge)"; empty: the model has no encoders, or
/// nobody asked how they are built.
[[nodiscard]] std::string how_built(const Model& model);

}  // namespace pipeweaver::workloads
