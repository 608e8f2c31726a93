// The links that members of a group send over, where their GPUs have places on a network with a shape.
#pragma once

#include "pipeweaver/costdb/operators.hpp"
#include "pipeweaver/emulator/layout.hpp"

namespace pipeweaver::emulator {

/// Prices a collective by the slowest link that its members, `stride` of the layout's numbers apart, cross. Where the
/// layout's placement is not made, nothing changes.
void set_links(const Layout& placed, std::int64_t stride, costdb::Collective& among);

/// The same of what one of `gpus` such members sends to the next.
void set_links(const Layout& placed, std::int64_t gpus, std::int64_t stride, costdb::PointToPoint& sent);

/// Of what a pipeline rank sends to another.
void set_links_between(const Layout& placed, std::int64_t from, std::int64_t to, costdb::PointToPoint& sent);

/// Of what both have halves of.
void set_links_between(const Layout& placed, std::int64_t from, std::int64_t to, costdb::Collective& among);

}  // namespace pipeweaver::emulator
