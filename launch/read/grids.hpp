// MegatronMIMO's grids as a script says them: GPUs of its own for each module.
//
// Source       Megatron-Bridge 067f987d, examples/megatron_mimo/qwen35_vl/slurm_sft.sh: names and what it takes where
//              they are not set; finetune_qwen35_vl.py beside it, whose --component says a module.
//              PIPEWEAVER_* are of our own scripts (spell_beside_mimo()).
#pragma once

#include "launch/read/script.hpp"
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

/// The script's variables as settings, where they say degrees and `launches`, the words of what is launched, are of a
/// program that takes grids, or null; else what --component says in its last command that has it. What is set to no
/// plain text is unset. None: it says no grids. Throws Error{input} for a component that is none.
[[nodiscard]] std::optional<SaidLaunch> said_grids(const Script& script, std::string_view text, const std::string& name,
                                                   const std::vector<Word>* launches);

/// Throws Error{input} with the variable: another module, no whole number, no such recomputation, layers that are not
/// as many as stages.
[[nodiscard]] GridsLaunch read_grids(const SaidLaunch& said);

}  // namespace pipeweaver::launch
