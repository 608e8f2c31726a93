// Where the GPUs of a layout lie on a network that has a shape, and what links their groups then cross.
//
// Numbers      A layout numbers its GPUs tensor parallel first, then context parallel ones, replicas, pipeline ranks.
//              A placement writes the same GPUs in digits, the innermost first, each of one dimension:
//
//                tp 8 | dp 4 | pp 2 . dp 2     8 GPUs fill a domain, 32 a rack; pipeline ranks, then two halves of the
//                                              replicas, lie in different racks
//
//              In each part dimensions come in the layout's order; along a ring, in any.
// Traffic      bytes * 1 for each border between domains that they pass, * the racks' oversubscription for one between
//              racks, * hops along a ring. Groups cross as rings or exchanges that fill domains and racks first do.
// Source       InfiniteHBD (arXiv 2502.03885) for the ring and its hops, TPU v4 (arXiv 2304.01433) for the cube. The
//              shares of links below are counted from these shapes, not measured.
#pragma once

#include "pipeweaver/workloads/network.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace pipeweaver::emulator {

struct Layout;

/// In the order in which a layout numbers its GPUs.
enum class Dimension : std::uint8_t { tensor, context, data, pipeline };
inline constexpr std::size_t dimensions = 4;

struct Digit {
    Dimension of = Dimension::tensor;
    std::int64_t size = 1;

    friend auto operator<=>(const Digit&, const Digit&) = default;
};

/// How GPUs are joined, of a cluster that says more than the size of its nodes.
struct Fabric {
    workloads::NetworkKind kind = workloads::NetworkKind::switched;
    std::int64_t domain = 8;      ///< GPUs joined at high bandwidth; of a ring those of a node
    std::int64_t hops = 0;        ///< of a ring: nodes on each side that a node is linked to
    std::int64_t rack = 0;        ///< GPUs of a rack; 0: there are none
    double oversubscription = 1;  ///< of what leaves a rack

    /// Whether places matter: without, all domains are as far from each other, and nothing is placed.
    bool has_shape() const { return kind != workloads::NetworkKind::switched || rack > 0; }
};

[[nodiscard]] Fabric fabric_of(const workloads::Cluster& cluster);

struct Placement {
    std::array<Digit, 3 * dimensions> digits{};  ///< those of a domain, of a rack and the rest, each without ones
    std::array<std::size_t, 3> count{};          ///< digits of each part
    Fabric fabric{};

    bool is_made() const { return fabric.has_shape(); }
    /// Whether it places a layout of these degrees.
    bool places(const Layout& layout) const;

    /// On one fabric.
    friend auto operator<=>(const Placement& a, const Placement& b) {
        return std::tie(a.digits, a.count) <=> std::tie(b.digits, b.count);
    }
    friend bool operator==(const Placement& a, const Placement& b) { return (a <=> b) == 0; }
};

/// "tp 8 | dp 4 | pp 2 . dp 2": domain, rack, the rest; "-" for a part without digits.
[[nodiscard]] std::string name_of(const Placement& placement);

/// Of each place, domain by domain and rack by rack, the layout's number of the GPU that lies there. Pre: the layout's
/// placement is made.
[[nodiscard]] std::vector<std::int64_t> numbers_by_place(const Layout& placed);

/// How members of a group send.
enum class Pattern : std::uint8_t {
    ring,       ///< each to the next: gathers, scatters, reductions
    exchange,   ///< each to all others
    neighbours  ///< from the first to the last: pipeline ranks
};

/// Groups of `gpus` members that are `stride` numbers apart, together all of the layout's GPUs.
struct Group {
    std::int64_t gpus = 1, stride = 1;
    Pattern pattern = Pattern::ring;
    double bytes = 0;  ///< of a step: that pass between two members side by side; of an exchange, that all of them send
};

/// Of a layout's placement, which is made: bytes that pass borders, times what a border counts.
[[nodiscard]] double traffic_between(const Layout& placed, std::span<const Group> groups);

/// All ways to fill domains and racks with blocks of the layout's dimensions, that of its own numbers first. A block
/// has as many GPUs as divide a domain (a rack) and as the degrees can make.
[[nodiscard]] std::vector<Placement> placements(const Layout& layout, const Fabric& fabric);

/// That with the least traffic, of equal ones the first; not made where the fabric has no shape.
[[nodiscard]] Placement place(const Layout& layout, const Fabric& fabric, std::span<const Group> groups);

/// The layout's own numbers as places.
[[nodiscard]] Placement as_numbered(const Layout& layout, const Fabric& fabric);

/// What a group reaches of its links.
struct Reach {
    std::int64_t together = 1;  ///< members in one domain; all of them along a ring
    double link = 1;            ///< of a GPU's link inside a domain
    double network = 1;         ///< of its share of the network between domains
};

/// Of members of a group `stride` numbers apart. Pre: the layout's placement is made.
///   cube   gathers and reductions go round the axes that the group has members on: so many thirds of a GPU's links; an
///          exchange, a third (on average one hop on each axis of four); neighbours, one of its six links
///   ring   between nodes d apart, 1 / ceil(d / hops); exchanges over n nodes, 2 hops / n (what passes the middle)
///   racks  in each of which the group has q domains: gathers and reductions q / oversubscription, as one domain's
///          traffic leaves; exchanges by the part that leaves; neighbours as gathers
[[nodiscard]] Reach reach_of(const Layout& placed, std::int64_t gpus, std::int64_t stride, Pattern pattern);

/// The same of what the pipeline rank `from` sends to `to`, the shorter way round a ring; together 2: in one domain, 1:
/// not.
[[nodiscard]] Reach reach_between(const Layout& placed, std::int64_t from, std::int64_t to);

}  // namespace pipeweaver::emulator
