#include "emulator/operators/group_links.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

namespace {

Bandwidth share_of(Bandwidth link, double share) {
    const double speed = share * static_cast<double>(link.bytes_per_second);
    return {share == 1 || link.bytes_per_second == 0 ? link.bytes_per_second
                                                     : std::max<std::int64_t>(1, std::llround(speed))};
}

void set_reach(const Layout& placed, const Reach& reach, costdb::PointToPoint& sent) {
    sent.gpus_per_node = reach.together > 1 ? 2 : 1;
    sent.network = share_of(placed.network_of_gpu(), reach.network);
    sent.node_link = share_of(placed.node_link, reach.link);
}

}  // namespace

void set_links(const Layout& placed, std::int64_t stride, costdb::Collective& among) {
    if (!placed.placement.is_made() || among.gpus == 1) return;
    const auto pattern = among.kind == costdb::CollectiveKind::all_to_all ? Pattern::exchange : Pattern::ring;
    const Reach reach = reach_of(placed, among.gpus, stride, pattern);
    const bool inside = reach.together >= among.gpus;
    among.gpus_per_node = inside ? std::max(among.gpus_per_node, among.gpus) : reach.together;
    const Bandwidth share = share_of(placed.network_of_gpu(), reach.network);
    among.network.bytes_per_second = std::min(reach.together, among.gpus) * share.bytes_per_second;
    among.node_link = share_of(placed.node_link, reach.link);
}

void set_links(const Layout& placed, std::int64_t gpus, std::int64_t stride, costdb::PointToPoint& sent) {
    if (!placed.placement.is_made() || gpus == 1) return;
    Reach reach = reach_of(placed, gpus, stride, Pattern::neighbours);
    // Keys go round: the last member's to the first.
    reach.together = reach.together >= gpus ? 2 : 1;
    set_reach(placed, reach, sent);
}

void set_links_between(const Layout& placed, std::int64_t from, std::int64_t to, costdb::PointToPoint& sent) {
    if (placed.placement.is_made()) set_reach(placed, reach_between(placed, from, to), sent);
}

void set_links_between(const Layout& placed, std::int64_t from, std::int64_t to, costdb::Collective& among) {
    if (!placed.placement.is_made()) return;
    const Reach reach = reach_between(placed, from, to);
    among.gpus_per_node = reach.together > 1 ? std::max(placed.gpus_per_node, among.gpus) : 1;
    among.network = share_of(placed.network_of_gpu(), reach.network);
    among.node_link = share_of(placed.node_link, reach.link);
}

}  // namespace pipeweaver::emulator
