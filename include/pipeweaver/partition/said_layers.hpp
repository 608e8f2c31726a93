// A cut in words: the layers that each stage of one chain has.
//
//   10,18,18,18                          of the backbone; encoders lie whole on the first stage, generators on the last
//   vit:63,0x3/llm:1,27,26,26            of each module that is named; 0x3 are three stages without any
#pragma once

#include "pipeweaver/partition/partition.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::partition {

/// Stage by stage: so many for each chunk of every rank.
struct ModuleLayers {
    std::string module;  ///< empty: the backbone
    std::vector<std::int64_t> layers;
};

using SaidLayers = std::vector<ModuleLayers>;

/// Parses what --layers is given. Throws Error{input}.
[[nodiscard]] SaidLayers parse_layers(const std::string& text);

/// The text again.
[[nodiscard]] std::string text_of(const SaidLayers& said);

/// One chain of all modules, cut so. Throws Error{input} where the layers do not add up to a module's, a module's
/// begin before those of the module in front of it end, or a stage would be empty.
[[nodiscard]] Partition cut_by_layers(const emulator::Setup& setup, const SaidLayers& said);

/// What cut_by_layers() makes the chain of: of all modules where another than the backbone is cut, too. Pre: one chain.
[[nodiscard]] SaidLayers said_layers(const workloads::Model& model, const Partition& partition);

}  // namespace pipeweaver::partition
