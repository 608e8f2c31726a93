// Orders in which a component of the task graph may be run alone with little memory.
#pragma once

#include "search/instance/flat.hpp"

namespace pipeweaver::search {

/// A few topological orders of all tasks, each as the place of every task: a microbatch at a time, backwards first,
/// what frees memory first, depth first along the edges. Which of them needs least differs from problem to problem.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> canonical_orders(const Flat& flat, std::span<const Cost> costs);

}  // namespace pipeweaver::search
