// Schedules for problems of several modules: one is the backbone (most work), the others, encoders and generators, go
// where the backbone leaves room. Each policy gives the rules of a few list schedules, which keep memory safe, and
// takes the best of them.
#pragma once

#include "search/instance/flat.hpp"

#include <string>

namespace pipeweaver::search {

/// List schedules by one priority, of which the best counts.
struct ListRules {
    std::vector<std::uint32_t> position;  ///< per task; smaller runs first; all differ
    std::vector<std::uint32_t> windows;   ///< Dispatcher::run's, one for each schedule
};

/// Why there is no backbone with others around it; empty if there is.
[[nodiscard]] std::string one_module_only(const Flat& flat);

/// Bubble filling in the style of Optimus (W. Feng et al., USENIX ATC 2025, arXiv 2408.03505): the backbone goes first,
/// another module runs where the backbone has nothing ready; of each, backwards before forwards. Coarse: whole tasks,
/// none cut to fit a bubble; and the backbone's own order is a list schedule, where the paper has a fixed 1F1B. With
/// all microbatches in the window, as where memory is plenty, and with twice those that fill the pipeline. Pre:
/// one_module_only() is empty.
[[nodiscard]] ListRules bubble_filling_rules(const Flat& flat);

/// Nesting in the style of BigMac (Z. Zhang et al., arXiv 2605.25451): encoder and generator passes of a microbatch go
/// right around its passes through the backbone, so that the microbatches that hold their memory are few, whatever the
/// batch. Here: a list schedule, a microbatch at a time, backwards first, of a window of those that fill the pipeline,
/// and of twice as many. The paper's own table is for equal microbatches. Pre: one_module_only() is empty.
[[nodiscard]] ListRules nesting_rules(const Flat& flat);

}  // namespace pipeweaver::search
