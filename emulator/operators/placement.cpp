#include "pipeweaver/emulator/placement.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

namespace pipeweaver::emulator {

using workloads::NetworkKind;

namespace {

using Block = std::array<std::int64_t, dimensions>;  // GPUs along each dimension

constexpr std::array<Dimension, dimensions> as_layouts{Dimension::tensor, Dimension::context, Dimension::data,
                                                       Dimension::pipeline};

Block degrees_of(const Layout& layout) { return {layout.tp, layout.cp, layout.dp, layout.pp}; }

Block degrees_of(const Placement& placement) {
    Block sizes{1, 1, 1, 1};
    for (const Digit& digit : placement.digits) sizes[static_cast<std::size_t>(digit.of)] *= digit.size;
    return sizes;
}

std::int64_t gpus_in(const Block& block) {
    return std::accumulate(block.begin(), block.end(), std::int64_t{1}, std::multiplies<>());
}

// All blocks of `gpus` GPUs with sides that divide `whole`, those with more along its first dimensions first.
void add_placed_blocks(const Block& whole, std::int64_t gpus, std::size_t dimension, Block& block,
                       std::vector<Block>& all) {
    if (dimension == dimensions) {
        if (gpus == 1) all.push_back(block);
        return;
    }
    for (std::int64_t side = std::gcd(whole[dimension], gpus); side >= 1; --side) {
        if (whole[dimension] % side != 0 || gpus % side != 0) continue;
        block[dimension] = side;
        add_placed_blocks(whole, gpus / side, dimension + 1, block, all);
    }
}

// Of the most GPUs that divide `room`, all of `whole` where it has no more.
std::vector<Block> blocks_in(const Block& whole, std::int64_t room) {
    if (gpus_in(whole) <= room) return {whole};
    std::vector<Block> all;
    for (std::int64_t gpus = room; all.empty(); --gpus) {
        Block block{};
        if (room % gpus == 0) add_placed_blocks(whole, gpus, 0, block, all);
    }
    return all;
}

Block divided(const Block& whole, const Block& part) {
    Block rest{};
    for (std::size_t d = 0; d < dimensions; ++d) rest[d] = whole[d] / part[d];
    return rest;
}

void append_digits(Placement& to, std::size_t part, const Block& block,
                   const std::array<Dimension, dimensions>& order) {
    std::size_t next = to.count[0] + to.count[1] + to.count[2];
    for (const Dimension one : order) {
        const std::int64_t size = block[static_cast<std::size_t>(one)];
        if (size == 1) continue;
        to.digits[next++] = {one, size};
        ++to.count[part];
    }
}

// Every so many-th number along a dimension, so many of them.
struct Extent {
    std::int64_t stride = 1, gpus = 1;
};

// Takes of an extent what lies on the next `size` numbers.
Extent taken(Extent& rest, std::int64_t size) {
    Extent part;
    part.stride = std::gcd(rest.stride, size);
    rest.stride /= part.stride;
    if (rest.stride > 1) return part;
    part.gpus = std::gcd(rest.gpus, size / part.stride);
    rest.gpus /= part.gpus;
    return part;
}

// A digit that a group has members on: from `low` places apart to `high`.
struct Span {
    std::size_t part = 0;
    std::int64_t low = 1, gpus = 1;

    std::int64_t high() const { return low * gpus; }
};

// How members of a group are spread.
struct Spread {
    std::int64_t all = 1, in_domain = 1, in_rack = 1;
    std::int64_t node = 1, rack = 1;  // GPUs of a domain and of a rack, of all groups
    std::vector<Span> spans;

    std::int64_t domains() const { return all / in_domain; }
    std::int64_t racks() const { return all / in_rack; }
};

Spread spread_of(const Layout& placed, std::int64_t gpus, std::int64_t stride) {
    std::array<Extent, dimensions> along{};
    Extent rest{stride, gpus};
    const Placement& placement = placed.placement;
    const Block degrees = degrees_of(placement);  // of the job: a module's own layout may have others
    for (std::size_t d = 0; d < dimensions; ++d) along[d] = taken(rest, degrees[d]);
    Spread spread;
    std::int64_t places = 1;
    std::size_t next = 0;
    for (std::size_t part = 0; part < placement.count.size(); ++part)
        for (std::size_t i = 0; i < placement.count[part]; ++i) {
            const Digit& digit = placement.digits[next++];
            const Extent here = taken(along[static_cast<std::size_t>(digit.of)], digit.size);
            if (here.gpus > 1) spread.spans.push_back({part, places * here.stride, here.gpus});
            places *= digit.size;
            spread.all *= here.gpus;
            if (part == 0) spread.in_domain *= here.gpus;
            if (part == 0) spread.node *= digit.size;
            if (part <= 1) spread.in_rack *= here.gpus;
            if (part <= 1) spread.rack *= digit.size;
        }
    return spread;
}

double as_real(std::int64_t number) { return static_cast<double>(number); }

// Nodes of a ring from one member's to the next, on average.
std::int64_t nodes_apart(const Spread& spread) {
    if (spread.domains() == 1) return 0;
    const std::int64_t nodes = std::max<std::int64_t>(1, spread.spans.back().high() / spread.node);
    return std::max<std::int64_t>(1, (nodes + spread.domains() - 1) / spread.domains());
}

std::int64_t hops_over(std::int64_t nodes, std::int64_t hops) {
    return std::max<std::int64_t>(1, (nodes + hops - 1) / hops);
}

// Of an exchange over these nodes, how often its bytes pass the links of the middle, at least once.
double crowding(const Spread& spread, const Fabric& fabric) {
    const std::int64_t nodes = spread.domains() * nodes_apart(spread);
    return std::max(1.0, as_real(nodes) / as_real(2 * fabric.hops));
}

double bytes_passing(const Group& group, const Spread& spread, const Fabric& fabric) {
    if (spread.all == 1) return 0;
    const bool along_ring = fabric.kind == NetworkKind::ring;
    if (group.pattern == Pattern::exchange) {
        const auto others = as_real(spread.all - 1);
        if (along_ring) return group.bytes * as_real(spread.all - spread.in_domain) / others * crowding(spread, fabric);
        return group.bytes *
               (as_real(spread.in_rack - spread.in_domain) +
                fabric.oversubscription * as_real(spread.all - spread.in_rack)) /
               others;
    }
    if (along_ring)
        return group.bytes * as_real(spread.domains() - 1) * as_real(hops_over(nodes_apart(spread), fabric.hops));
    return group.bytes *
           (as_real(spread.domains() - spread.racks()) + fabric.oversubscription * as_real(spread.racks() - 1));
}

// Axes of a cube on which a group has members of one cube.
std::int64_t axes_of(const Spread& spread, std::int64_t domain) {
    const std::int64_t side = workloads::side_of(domain);
    std::int64_t axes = 0, begins = 1;
    for (int axis = 0; axis < 3; ++axis, begins *= side)
        axes += std::any_of(spread.spans.begin(), spread.spans.end(), [&](const Span& span) {
            return span.part == 0 && span.low < begins * side && span.high() > begins;
        });
    return std::max<std::int64_t>(1, axes);
}

double link_of_cube(const Spread& spread, std::int64_t domain, Pattern pattern) {
    if (pattern == Pattern::neighbours) return 1.0 / 6;
    return pattern == Pattern::exchange ? 1.0 / 3 : as_real(axes_of(spread, domain)) / 3;
}

double out_of_rack(const Spread& spread, const Fabric& fabric, Pattern pattern) {
    if (spread.racks() == 1) return 1;
    const double uplinks = 1 / fabric.oversubscription;
    if (pattern == Pattern::exchange)
        return std::min(1.0, as_real(spread.all - spread.in_domain) / as_real(spread.all - spread.in_rack) * uplinks);
    return std::min(1.0, as_real(spread.in_rack / spread.in_domain) * uplinks);
}

// Places of its replica in front of a pipeline rank.
std::int64_t place_of_rank(const Placement& placement, std::int64_t rank) {
    std::int64_t place = 0, places = 1;
    for (const Digit& digit : placement.digits) {
        if (digit.of == Dimension::pipeline) {
            place += rank % digit.size * places;
            rank /= digit.size;
        }
        places *= digit.size;
    }
    return place;
}

}  // namespace

Fabric fabric_of(const workloads::Cluster& cluster) {
    Fabric fabric{
        .domain = cluster.gpus_per_node, .rack = cluster.gpus_per_rack, .oversubscription = cluster.oversubscription};
    if (cluster.shape) {
        fabric.kind = cluster.shape->kind;
        fabric.hops = cluster.shape->hops;
    }
    return fabric;
}

bool Placement::places(const Layout& layout) const { return is_made() && degrees_of(*this) == degrees_of(layout); }

std::string name_of(const Placement& placement) {
    constexpr std::array<std::string_view, dimensions> names{"tp", "cp", "dp", "pp"};
    std::string text;
    std::size_t next = 0;
    for (std::size_t part = 0; part < placement.count.size(); ++part) {
        text += part > 0 ? " | " : "";
        if (placement.count[part] == 0) text += "-";
        for (std::size_t i = 0; i < placement.count[part]; ++i) {
            const Digit& digit = placement.digits[next++];
            text += fmt::format("{}{} {}", i > 0 ? " . " : "", names[static_cast<std::size_t>(digit.of)], digit.size);
        }
    }
    return text;
}

std::vector<std::int64_t> numbers_by_place(const Layout& placed) {
    const Block degrees = degrees_of(placed);
    Block weight{1, 1, 1, 1};  // of a dimension's next digit
    for (std::size_t d = 1; d < dimensions; ++d) weight[d] = weight[d - 1] * degrees[d - 1];
    std::vector<std::int64_t> numbers{0};
    for (const Digit& digit : placed.placement.digits) {
        std::int64_t& step = weight[static_cast<std::size_t>(digit.of)];
        const std::size_t inner = numbers.size();
        for (std::int64_t value = 1; value < digit.size; ++value)
            for (std::size_t i = 0; i < inner; ++i) numbers.push_back(numbers[i] + value * step);
        step *= digit.size;
    }
    return numbers;
}

double traffic_between(const Layout& placed, std::span<const Group> groups) {
    PIPEWEAVER_ASSERT(placed.placement.places(placed));
    double sum = 0;
    for (const Group& group : groups) {
        const Spread spread = spread_of(placed, group.gpus, group.stride);
        sum += as_real(placed.gpus() / group.gpus) * bytes_passing(group, spread, placed.placement.fabric);
    }
    return sum;
}

std::vector<Placement> placements(const Layout& layout, const Fabric& fabric) {
    const Block whole = degrees_of(layout);
    std::vector<Placement> all;
    for (const Block& domain : blocks_in(whole, fabric.domain)) {
        const Block domains = divided(whole, domain);
        const std::int64_t room = fabric.rack > 0 ? fabric.rack / gpus_in(domain) : 1;
        for (const Block& rack : blocks_in(domains, room)) {
            std::array<Dimension, dimensions> order = as_layouts;
            do {
                Placement one;
                one.fabric = fabric;
                append_digits(one, 0, domain, as_layouts);
                append_digits(one, 1, rack, as_layouts);
                append_digits(one, 2, divided(domains, rack), order);
                all.push_back(one);
            } while (fabric.kind == NetworkKind::ring && std::next_permutation(order.begin(), order.end()));
        }
    }
    return all;
}

Placement place(const Layout& layout, const Fabric& fabric, std::span<const Group> groups) {
    if (!fabric.has_shape()) return {};
    constexpr double less = 1 - 1e-9;  // than which no rounding makes a sum
    Layout placed = layout;
    std::optional<double> least;
    Placement best;
    for (const Placement& one : placements(layout, fabric)) {
        placed.placement = one;
        const double traffic = traffic_between(placed, groups);
        if (least && traffic >= less * *least) continue;
        least = traffic;
        best = one;
    }
    return best;
}

Placement as_numbered(const Layout& layout, const Fabric& fabric) {
    return fabric.has_shape() ? placements(layout, fabric).front() : Placement{};
}

Reach reach_of(const Layout& placed, std::int64_t gpus, std::int64_t stride, Pattern pattern) {
    const Fabric& fabric = placed.placement.fabric;
    const Spread spread = spread_of(placed, gpus, stride);
    Reach reach;
    reach.together = spread.in_domain;
    if (fabric.kind == NetworkKind::cube) reach.link = link_of_cube(spread, fabric.domain, pattern);
    if (fabric.kind == NetworkKind::ring && spread.domains() > 1) {
        reach.link = pattern == Pattern::exchange ? 1 / crowding(spread, fabric)
                                                  : 1 / as_real(hops_over(nodes_apart(spread), fabric.hops));
        reach.together = gpus;
    }
    reach.network = out_of_rack(spread, fabric, pattern);
    return reach;
}

Reach reach_between(const Layout& placed, std::int64_t from, std::int64_t to) {
    const Placement& placement = placed.placement;
    const Fabric& fabric = placement.fabric;
    const std::int64_t a = place_of_rank(placement, from), b = place_of_rank(placement, to);
    const Spread spread = spread_of(placed, placed.pp, placed.gpus() / placed.pp);
    Reach reach;
    const bool in_domain = a / spread.node == b / spread.node;
    reach.together = in_domain || fabric.kind == NetworkKind::ring ? 2 : 1;
    if (fabric.kind == NetworkKind::cube && in_domain) reach.link = 1.0 / 6;
    if (fabric.kind == NetworkKind::ring && !in_domain) {
        const std::int64_t all = std::max<std::int64_t>(1, placed.gpus() / spread.node);
        const std::int64_t nodes = std::abs(a - b) / spread.node;
        reach.link = 1 / as_real(hops_over(std::min(nodes, std::max<std::int64_t>(1, all - nodes)), fabric.hops));
    }
    if (a / spread.rack != b / spread.rack) reach.network = out_of_rack(spread, fabric, Pattern::neighbours);
    return reach;
}

}  // namespace pipeweaver::emulator
