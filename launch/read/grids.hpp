// MegatronMIMO's grids as a script's variables say them: GPUs of its own for each module.
//
// Source       Megatron-Bridge 067f987d, examples/megatron_mimo/qwen35_vl/slurm_sft.sh: names and what it takes where
//              they are not set. PIPEWEAVER_* are of our own scripts (spell_beside_mimo()).
#pragma once

#include "launch/read/words.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/launch/said.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

/// A module's GPUs, from rank `offset` on.
struct Grid {
    std::string_view name;  ///< LANGUAGE, IMAGES
    std::int64_t tp = 1, pp = 1, cp = 1, dp = 1, offset = 0;
    std::optional<std::int64_t> size{};  ///< as it is said beside the degrees
    emulator::Recompute recompute = emulator::Recompute::none;
    std::vector<std::int64_t> layers{};  ///< of each stage; none: in equal parts

    std::int64_t gpus() const { return tp * pp * cp * dp; }
    std::int64_t end() const { return offset + gpus(); }
};

struct GridsLaunch {
    Grid language{"LANGUAGE"}, images{"IMAGES"};
    std::optional<std::int64_t> micro_batch{}, global_batch{}, seq_length{};
    std::string planned{};               ///< what the split was planned for, as JSON; empty: not said
    std::vector<std::string> assumed{};  ///< sentences
    std::int64_t layers = 0;             ///< of the language model; 0: no model is named
};

/// Whether a variable is a module's degree or offset.
[[nodiscard]] bool says_grids(const Variables& variables);

/// Whether the command starts a program that takes grids.
[[nodiscard]] bool takes_grids(const std::vector<Word>& words);

/// The script's variables as settings; what it sets to no plain text is unset.
[[nodiscard]] SaidLaunch said_grids(std::string_view script, const std::string& name, Variables variables);

/// Throws Error{input} with the variable: another module, no whole number, no such recomputation, layers that are not
/// as many as stages.
[[nodiscard]] GridsLaunch read_grids(const SaidLaunch& said);

}  // namespace pipeweaver::launch
