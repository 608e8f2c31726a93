// Where GPUs lie on a network with a shape: the least traffic, held against all ways to fill domains and racks.
#include "pipeweaver/emulator/placement.hpp"

#include "emulator/operators/group_links.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/workloads/network.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using workloads::NetworkKind;

namespace {

// Numbers of GPUs by their places: place p lies in domain p / domain and rack p / rack.
using Places = std::vector<std::int64_t>;

// Bytes of one group by each member's place, counted member by member.
double crossing(const Group& group, const std::vector<std::int64_t>& at, const Fabric& fabric) {
    const auto border = [&](std::int64_t a, std::int64_t b) {
        if (a / fabric.domain == b / fabric.domain) return 0.0;
        return fabric.rack > 0 && a / fabric.rack != b / fabric.rack ? fabric.oversubscription : 1.0;
    };
    double sum = 0;
    if (group.pattern == Pattern::neighbours)
        for (std::size_t i = 1; i < at.size(); ++i) sum += group.bytes * border(at[i - 1], at[i]);
    if (group.pattern == Pattern::exchange)
        for (const auto a : at)
            for (const auto b : at)
                sum += group.bytes * border(a, b) / static_cast<double>(group.gpus * (group.gpus - 1));
    if (group.pattern == Pattern::ring) {
        std::set<std::int64_t> domains, racks;
        for (const auto a : at) {
            domains.insert(a / fabric.domain);
            racks.insert(a / fabric.rack);
        }
        sum = group.bytes * (static_cast<double>(domains.size() - racks.size()) +
                             fabric.oversubscription * static_cast<double>(racks.size() - 1));
    }
    return sum;
}

double counted(const std::vector<Group>& groups, const Places& number_at, const Fabric& fabric) {
    const auto gpus = static_cast<std::int64_t>(number_at.size());
    std::vector<std::int64_t> place_of(number_at.size());
    for (std::int64_t p = 0; p < gpus; ++p)
        place_of[static_cast<std::size_t>(number_at[static_cast<std::size_t>(p)])] = p;
    double sum = 0;
    for (const Group& group : groups)
        for (std::int64_t first = 0; first < gpus; ++first) {
            if (first / group.stride % group.gpus != 0) continue;
            std::vector<std::int64_t> at;
            for (std::int64_t i = 0; i < group.gpus; ++i)
                at.push_back(place_of[static_cast<std::size_t>(first + i * group.stride)]);
            sum += crossing(group, at, fabric);
        }
    return sum;
}

// Of all ways to fill domains and racks, once each: numbers of a domain, first ones of a rack's domains and first ones
// of racks go up.
struct Every {
    const std::vector<Group>& groups;
    const Fabric& fabric;
    std::vector<bool> used;
    Places places{};
    std::optional<double> least{};

    void fill() {
        const auto next = static_cast<std::int64_t>(places.size());
        if (places.size() == used.size()) {
            const double traffic = counted(groups, places, fabric);
            least = least ? std::min(*least, traffic) : traffic;
            return;
        }
        const bool opens_rack = next % fabric.rack == 0, opens_domain = next % fabric.domain == 0;
        const std::int64_t above = opens_rack     ? -1
                                   : opens_domain ? places[static_cast<std::size_t>(next - fabric.domain)]
                                                  : places.back();
        for (std::size_t number = 0; number < used.size(); ++number) {
            if (used[number] || static_cast<std::int64_t>(number) < above) continue;
            used[number] = true;
            places.push_back(static_cast<std::int64_t>(number));
            fill();
            places.pop_back();
            used[number] = false;
            if (opens_rack) return;  // the first that is left
        }
    }
};

// Tensor parallel GPUs, context parallel ones that exchange heads, copies of weights, pipeline ranks.
std::vector<Group> groups_of(const Layout& layout, Random& random) {
    const auto bytes = [&] { return static_cast<double>(1 + random.below(9)); };
    std::vector<Group> all{{layout.tp, 1, Pattern::ring, bytes()},
                           {layout.cp, layout.tp, Pattern::exchange, bytes()},
                           {layout.cp * layout.dp, layout.tp, Pattern::ring, bytes()},
                           {layout.pp, layout.tp * layout.cp * layout.dp, Pattern::neighbours, bytes()}};
    std::erase_if(all, [](const Group& group) { return group.gpus == 1; });
    return all;
}

const std::vector<Layout> eight_gpus{{.tp = 2, .pp = 2, .dp = 2},          {.tp = 2, .pp = 1, .dp = 2, .cp = 2},
                                     {.tp = 1, .pp = 2, .dp = 4},          {.tp = 1, .pp = 4, .dp = 2},
                                     {.tp = 4, .pp = 1, .dp = 2},          {.tp = 2, .pp = 4, .dp = 1},
                                     {.tp = 1, .pp = 2, .dp = 2, .cp = 2}, {.tp = 1, .pp = 2, .dp = 1, .cp = 4}};

// The same GPUs by the digits of a placement.
Places places_of(const Layout& placed) {
    const Placement& placement = placed.placement;
    const std::size_t digits = placement.count[0] + placement.count[1] + placement.count[2];
    Places number_at;
    for (std::int64_t p = 0; p < placed.gpus(); ++p) {
        std::array<std::int64_t, dimensions> value{}, weight{1, 1, 1, 1};
        std::int64_t rest = p;
        for (std::size_t i = 0; i < digits; ++i) {
            const auto d = static_cast<std::size_t>(placement.digits[i].of);
            value[d] += rest % placement.digits[i].size * weight[d];
            weight[d] *= placement.digits[i].size;
            rest /= placement.digits[i].size;
        }
        number_at.push_back(value[0] + placed.tp * (value[1] + placed.cp * (value[2] + placed.dp * value[3])));
    }
    return number_at;
}

}  // namespace

TEST_CASE("no other places of eight GPUs in domains and racks have less traffic") {
    Random random(7);
    for (const Fabric& fabric :
         {Fabric{.domain = 2, .rack = 4, .oversubscription = 4}, Fabric{.domain = 1, .rack = 4, .oversubscription = 2},
          Fabric{.domain = 4, .rack = 4, .oversubscription = 8}})
        for (std::size_t draw = 0; draw < 5 * eight_gpus.size(); ++draw) {
            const Layout& layout = eight_gpus[draw % eight_gpus.size()];
            const auto groups = groups_of(layout, random);
            Layout placed = layout;
            placed.placement = place(layout, fabric, groups);
            CAPTURE(name_of(layout));
            CAPTURE(name_of(placed.placement));
            REQUIRE(placed.placement.places(placed));
            Every every{groups, fabric, std::vector<bool>(8)};
            every.fill();
            CHECK(traffic_between(placed, groups) == doctest::Approx(*every.least));
        }
}

TEST_CASE("traffic by digits is the traffic counted member by member") {
    Random random(3);
    const Fabric fabric{.domain = 4, .rack = 12, .oversubscription = 3};
    for (const Layout& layout : {Layout{.tp = 2, .pp = 3, .dp = 4}, Layout{.tp = 2, .pp = 2, .dp = 3, .cp = 2},
                                 Layout{.tp = 4, .pp = 6, .dp = 1}}) {
        const auto groups = groups_of(layout, random);
        std::optional<double> least;
        for (const Placement& one : placements(layout, fabric)) {
            Layout placed = layout;
            placed.placement = one;
            CAPTURE(name_of(one));
            const double traffic = traffic_between(placed, groups);
            CHECK(traffic == doctest::Approx(counted(groups, places_of(placed), fabric)));
            CHECK(numbers_by_place(placed) == places_of(placed));
            least = least ? std::min(*least, traffic) : traffic;
        }
        Layout best = layout;
        best.placement = place(layout, fabric, groups);
        CHECK(traffic_between(best, groups) == doctest::Approx(*least));
    }
}

TEST_CASE("a layout's own numbers come first, and stay where nothing is sent") {
    // 32 GPUs: 8 tensor parallel ones fill a domain, two replicas of them a rack.
    const Layout layout{.tp = 8, .pp = 2, .dp = 2};
    const Fabric fabric{.domain = 8, .rack = 16, .oversubscription = 2};
    CHECK(name_of(as_numbered(layout, fabric)) == "tp 8 | dp 2 | pp 2");
    // Pipeline ranks that send more than copies lie in one rack.
    const std::vector<Group> groups{
        {8, 1, Pattern::ring, 1000}, {2, 16, Pattern::neighbours, 5}, {2, 8, Pattern::ring, 1}};
    CHECK(name_of(place(layout, fabric, groups)) == "tp 8 | pp 2 | dp 2");
    CHECK(!place(layout, Fabric{.domain = 8}, groups).is_made());
}

TEST_CASE("links of racks, cubes and rings are shared as their shapes say") {
    Layout layout{.tp = 4, .pp = 2, .dp = 8};
    // 4 GPUs a domain, 16 a rack: four domains of a replica group in each of its two racks.
    layout.placement = as_numbered(layout, {.domain = 4, .rack = 16, .oversubscription = 8});
    CHECK(name_of(layout.placement) == "tp 4 | dp 4 | dp 2 . pp 2");
    const Reach copies = reach_of(layout, 8, 4, Pattern::ring);
    CHECK(copies.together == 1);
    CHECK(copies.network == doctest::Approx(4.0 / 8));
    CHECK(reach_of(layout, 8, 4, Pattern::exchange).network == doctest::Approx(7.0 / 4 / 8));
    CHECK(reach_between(layout, 0, 1).network == doctest::Approx(1.0 / 8));
    CHECK(reach_of(layout, 4, 1, Pattern::ring).together == 4);
    // A cube of 4 x 4 x 4: tensor parallel GPUs on one axis, copies on the two others.
    layout.placement = as_numbered(layout, {.kind = NetworkKind::cube, .domain = 64});
    CHECK(reach_of(layout, 4, 1, Pattern::ring).link == doctest::Approx(1.0 / 3));
    CHECK(reach_of(layout, 8, 4, Pattern::ring).link == doctest::Approx(2.0 / 3));
    CHECK(reach_of(layout, 8, 4, Pattern::exchange).link == doctest::Approx(1.0 / 3));
    // A ring of 16 nodes, each linked to the next two: copies side by side, pipeline ranks 8 nodes apart.
    layout.placement = as_numbered(layout, {.kind = NetworkKind::ring, .domain = 4, .hops = 2});
    CHECK(reach_of(layout, 8, 4, Pattern::ring).link == 1);
    CHECK(reach_of(layout, 8, 4, Pattern::exchange).link == doctest::Approx(4.0 / 8));
    CHECK(reach_between(layout, 0, 1).link == doctest::Approx(1.0 / 4));
    CHECK(reach_between(layout, 0, 1).together == 2);
    // Four pipeline ranks 4 nodes apart: from the last to the first it is 4 nodes round the ring, not 12 back.
    layout = {.tp = 4, .pp = 4, .dp = 4};
    layout.placement = as_numbered(layout, {.kind = NetworkKind::ring, .domain = 4, .hops = 2});
    CHECK(reach_between(layout, 3, 0).link == doctest::Approx(1.0 / 2));
}

TEST_CASE("a ring puts those side by side that send more") {
    // 8 nodes of 4 GPUs: replicas first, as they are numbered, or pipeline ranks.
    const Layout layout{.tp = 4, .pp = 4, .dp = 2};
    const Fabric fabric{.kind = NetworkKind::ring, .domain = 4, .hops = 1};
    const Group tensor{4, 1, Pattern::ring, 1000};
    const std::vector<Group> pipeline{tensor, {4, 8, Pattern::neighbours, 5}, {2, 4, Pattern::ring, 1}};
    CHECK(name_of(place(layout, fabric, pipeline)) == "tp 4 | - | pp 4 . dp 2");
    const std::vector<Group> copies{tensor, {4, 8, Pattern::neighbours, 1}, {2, 4, Pattern::ring, 9}};
    CHECK(name_of(place(layout, fabric, copies)) == "tp 4 | - | dp 2 . pp 4");
}

TEST_CASE("collectives take their links, and without a shape those of the layout's nodes") {
    Layout layout{.tp = 4, .pp = 1, .dp = 8, .network = {400'000'000'000}, .node_link = {450'000'000'000}};
    costdb::Collective among{.kind = costdb::CollectiveKind::all_reduce,
                             .gpus = 8,
                             .gpus_per_node = 2,
                             .message = Bytes{1 << 20},
                             .network = {100'000'000'000},
                             .node_link = {450'000'000'000}};
    const costdb::Collective before = among;
    set_links(layout, 4, among);
    CHECK(among.network.bytes_per_second == before.network.bytes_per_second);
    // Two of the eight copies in each domain of 8, two domains a rack: half of the network leaves it.
    layout.placement = as_numbered(layout, {.domain = 8, .rack = 16, .oversubscription = 4});
    set_links(layout, 4, among);
    CHECK(among.gpus_per_node == 2);
    CHECK(among.network.bytes_per_second == 50'000'000'000);
    CHECK(among.node_link.bytes_per_second == 450'000'000'000);
    // A link that is not said stays so.
    layout.node_link = layout.network = {};
    set_links(layout, 4, among);
    CHECK(among.network.bytes_per_second == 0);
}

TEST_CASE("a switch of as many GPUs as a node changes no step, and a rack's uplinks make copies wait") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 8});
    const auto times = [&] {
        const auto partition = setup.cut(partition::megatron_partition);
        const StepProblem built = require_step(build_step(setup.input(partition)));
        std::vector<Duration> all;
        for (const auto& task : built.problem.tasks) all.push_back(task.duration);
        for (const auto& edge : built.problem.edges) all.push_back(edge.lag);
        for (const auto& rank : built.problem.ranks) all.push_back(rank.tail);
        return all;
    };
    const auto before = times();
    setup.cluster = workloads::with_network(setup.cluster, workloads::find_network("dgx-8"));
    CHECK(!best_placement(setup).is_made());
    CHECK(times() == before);
    // As many GPUs as copies take two racks, whose uplinks carry an eighth.
    setup.cluster = workloads::with_racks(setup.cluster, 16, 8);
    setup.layout.placement = as_numbered(setup.layout, fabric_of(setup.cluster));
    CHECK(name_of(setup.layout.placement) == "tp 2 . dp 4 | dp 2 | pp 2");
    const auto numbered = times();
    CHECK(numbered != before);
    setup.layout.placement = best_placement(setup);
    CHECK(setup.layout.placement.places(setup.layout));
}
