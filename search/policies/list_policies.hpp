// Policies that decide by times, on a problem in whatever form a search has it.
#pragma once

#include "pipeweaver/search/policies.hpp"
#include "search/instance/flat.hpp"

namespace pipeweaver::search {

/// Applies a policy without a fixed order within `flat.room`. Pre: not policy(name).fixed_order.
[[nodiscard]] PolicyResult apply_list_policy(std::string_view name, const Flat& flat);

}  // namespace pipeweaver::search
