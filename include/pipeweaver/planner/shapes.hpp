// How far microbatches of a step differ in shape: what an allocator cuts its memory up for.
#pragma once

#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstddef>
#include <vector>

namespace pipeweaver::planner {

/// How many different shapes the microbatches have: by the positions of an encoder's or a generator's items and, where
/// the backbone is no language model, the lengths of its sequences. Text is packed up to one length and does not count.
[[nodiscard]] std::size_t shapes_of(const workloads::Model& model, const std::vector<workloads::Microbatch>& all);

}  // namespace pipeweaver::planner
