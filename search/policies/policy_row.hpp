// What makes a policy: its row among policies() and the function of its own that the row names. A new policy is that
// function and that row.
#pragma once

#include "pipeweaver/search/policies.hpp"
#include "search/policies/orders.hpp"

namespace pipeweaver::search {

struct PolicyRow {
    Policy policy;
    Order (*order)(const Flat&) = nullptr;         ///< of a policy with a fixed order, else null
    PolicyResult (*apply)(const Flat&) = nullptr;  ///< of one without, else null
};

/// Applies the row's policy as apply_policy() does.
[[nodiscard]] PolicyResult apply_row(const PolicyRow& row, const schedule::Replayer& replayer);

/// Applies a policy without a fixed order within `flat.room`, on a problem in whatever form a search has it. Pre: not
/// policy(name).fixed_order.
[[nodiscard]] PolicyResult apply_list_policy(std::string_view name, const Flat& flat);

}  // namespace pipeweaver::search
