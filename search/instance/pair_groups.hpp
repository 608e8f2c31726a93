// Pairs with a choice of modes by what they belong to: what changes its mode together in the search over groups.
#pragma once

#include "search/instance/task_groups.hpp"

namespace pipeweaver::search {

struct PairGroups {
    explicit PairGroups(const Flat& flat, const TaskGroups& groups);

    /// Pairs of a microbatch's module, all its items on all ranks; and of one item of it. Empty where no pair has a
    /// choice.
    Groups<std::uint32_t> of_module, of_item;
};

}  // namespace pipeweaver::search
