// What tests look for among a layer's operators.
#pragma once

#include "pipeweaver/emulator/operators.hpp"

#include <variant>
#include <vector>

namespace pipeweaver::testing {

/// The operators that are a Query (costdb::Gemm, emulator::PackedAttention, ...), in order.
template <class Query>
std::vector<Query> queries(const std::vector<emulator::Operator>& operators) {
    std::vector<Query> found;
    for (const auto& op : operators)
        if (const auto* query = std::get_if<Query>(&op.query)) found.push_back(*query);
    return found;
}

}  // namespace pipeweaver::testing
