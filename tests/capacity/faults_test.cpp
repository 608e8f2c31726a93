// What faults leave of a network: the closed form beside all patterns, beside trials, and by hand.
#include "pipeweaver/capacity/faults.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity;
using workloads::find_network;
using workloads::Network;
using workloads::NetworkKind;

namespace {

Network network_with(NetworkKind kind, std::int64_t domain_or_hops, std::int64_t node) {
    Network network;
    network.name = "mine";
    network.kind = kind;
    network.node = node;
    (kind == NetworkKind::ring ? network.hops : network.domain) = domain_or_hops;
    if (kind == NetworkKind::ring) network.domain = 0;
    return network;
}

double usable(const FaultCase& asked) {
    const auto groups = usable_groups(asked);
    REQUIRE(groups);
    return static_cast<double>(asked.tp) * groups->mean();
}

double wasted(const FaultCase& asked) { return static_cast<double>(asked.gpus) * (1 - asked.faulty) - usable(asked); }

// A pattern of faults as text, '.' a free node and 'x' a faulty one, turned so that the ring begins behind a cut.
std::string turned(std::string ring, std::int64_t hops) {
    const std::string cut(static_cast<std::size_t>(hops), 'x');
    for (std::size_t i = 0; i < ring.size() && !ring.ends_with(cut); ++i) ring = ring.substr(1) + ring[0];
    return ring;
}

std::int64_t free_in(const std::string& nodes) { return std::count(nodes.begin(), nodes.end(), '.'); }

// Groups of a ring by its text: cut at every run of faults that is long enough.
std::int64_t groups_of_text(const FaultCase& asked, const std::string& nodes) {
    const std::int64_t node = asked.network.node;
    const auto hops = static_cast<std::size_t>(asked.network.hops);
    const std::string cut(hops, 'x');
    std::string rest = turned(nodes, asked.network.hops);
    std::int64_t groups = 0;
    for (std::size_t at = rest.find(cut); at != std::string::npos; at = rest.find(cut)) {
        groups += free_in(rest.substr(0, at)) * node / asked.tp;
        rest = rest.substr(at + hops);
    }
    return groups + free_in(rest) * node / asked.tp;
}

std::int64_t groups_of_blocks(const FaultCase& asked, const std::string& nodes) {
    std::int64_t groups = 0;
    const auto domain = static_cast<std::size_t>(asked.network.domain / asked.network.node);
    for (std::size_t from = 0; from < nodes.size(); from += domain) {
        const std::string own = nodes.substr(from, domain);
        std::string gpus;
        for (const char node : own) gpus += std::string(static_cast<std::size_t>(asked.network.node), node);
        const auto tp = static_cast<std::size_t>(asked.tp);
        if (asked.network.kind == NetworkKind::switched) groups += free_in(gpus) / asked.tp;
        if (asked.network.kind == NetworkKind::cube)
            for (std::size_t at = 0; at + tp <= gpus.size(); at += tp)
                groups += free_in(gpus.substr(at, tp)) == asked.tp ? 1 : 0;
    }
    return groups;
}

// Probability of each number of groups, over all patterns of faults.
std::map<std::int64_t, double> by_all_patterns(const FaultCase& asked) {
    const auto nodes = static_cast<unsigned>(asked.gpus / asked.network.node);
    std::map<std::int64_t, double> probability;
    for (std::uint32_t pattern = 0; pattern < (1U << nodes); ++pattern) {
        std::string text;
        std::vector<char> faulty;
        for (unsigned i = 0; i < nodes; ++i) {
            const bool down = (pattern >> i & 1U) != 0;
            text += down ? 'x' : '.';
            faulty.push_back(down ? 1 : 0);
        }
        const std::int64_t groups =
            asked.network.kind == NetworkKind::ring ? groups_of_text(asked, text) : groups_of_blocks(asked, text);
        CHECK_MESSAGE(groups_with(asked, faulty) == groups, text);
        const int down = std::popcount(pattern);
        probability[groups] +=
            std::pow(asked.faulty, down) * std::pow(1 - asked.faulty, static_cast<int>(nodes) - down);
    }
    return probability;
}

void check_all_patterns(const FaultCase& asked) {
    CAPTURE(asked.network.domain);
    CAPTURE(asked.network.hops);
    CAPTURE(asked.network.node);
    CAPTURE(asked.gpus);
    CAPTURE(asked.tp);
    CAPTURE(asked.faulty);
    const auto groups = usable_groups(asked);
    REQUIRE(groups);
    double mean = 0;
    for (const auto& [count, probability] : by_all_patterns(asked)) {
        const std::int64_t i = count - groups->first;
        const bool is_in = i >= 0 && i < static_cast<std::int64_t>(groups->probability.size());
        const double found = is_in ? groups->probability[static_cast<std::size_t>(i)] : 0;
        CHECK(std::abs(found - probability) < 1e-13);
        mean += static_cast<double>(count) * probability;
    }
    CHECK(std::abs(groups->mean() - mean) < 1e-12);
}

}  // namespace

TEST_CASE("the closed form is what all patterns of faults give") {
    for (const double faulty : {0.0, 0.02, 0.3, 0.9, 1.0}) {
        // Domains of 6 nodes and one that is smaller; groups that are parts of nodes, nodes, and neither.
        for (const std::int64_t tp : {1, 2, 3, 4, 6, 8, 12, 24})
            check_all_patterns({network_with(NetworkKind::switched, 24, 4), 40, faulty, tp});
        for (const std::int64_t tp : {1, 2, 4, 8, 16})
            check_all_patterns({network_with(NetworkKind::cube, 16, 2), 20, faulty, tp});
        for (const std::int64_t hops : {1, 2, 3})
            for (const std::int64_t tp : {1, 4, 6, 8, 12, 20})
                check_all_patterns({network_with(NetworkKind::ring, hops, 4), 40, faulty, tp});
        check_all_patterns({network_with(NetworkKind::ring, 2, 1), 12, faulty, 4});
        check_all_patterns({network_with(NetworkKind::ring, 4, 8), 24, faulty, 8});
    }
}

TEST_CASE("two machines by hand") {
    // A machine of 8 is whole or gone: nothing is wasted, whatever the size of a group.
    const FaultCase machines{find_network("dgx-8"), 16, 0.1, 8};
    CHECK(usable(machines) == doctest::Approx(2 * 8 * 0.9));
    CHECK(std::abs(wasted(machines)) < 1e-12);
    CHECK(usable_groups(machines)->at(0.80) == 2);  // 0.81
    CHECK(usable_groups(machines)->at(0.82) == 1);
    CHECK(usable_groups(machines)->at(0.995) == 0);  // 0.99
    // Two nodes of 4 for groups of 8: both or nothing.
    CHECK(usable({network_with(NetworkKind::switched, 8, 4), 8, 0.1, 8}) == doctest::Approx(8 * 0.81));
    // A rack of 72 has 4 groups of 16 while no more than 2 of its 18 nodes are down.
    const FaultCase rack{find_network("nvl-72"), 72, 0.02, 16};
    double up_to_two = 0;
    for (const int down : {0, 1, 2})
        up_to_two += std::vector{1., 18., 153.}[static_cast<std::size_t>(down)] * std::pow(0.02, down) *
                     std::pow(0.98, 18 - down);
    CHECK(usable_groups(rack)->probability.back() == doctest::Approx(up_to_two));
    // A cube's block of 16 is 4 nodes, all free.
    CHECK(usable({find_network("cube-64"), 128, 0.02, 16}) == doctest::Approx(128 * std::pow(0.98, 4)));
}

TEST_CASE("the closed form is inside the interval of trials, for every switch domain") {
    int asked = 0, inside = 0;
    for (const char* name : {"dgx-8", "nvl-36", "nvl-72", "nvl-576", "cube-64", "ring-k2", "ring-k3"})
        for (const std::int64_t tp : testing::full_or_short<std::vector<std::int64_t>>({1, 4, 8, 16, 32, 64}, {4, 32}))
            for (const double faulty : {0.005, 0.02, 0.07, 0.2}) {
                const auto network = find_network(name);
                if (why_no_group(network, tp)) continue;
                CAPTURE(name);
                CAPTURE(tp);
                CAPTURE(faulty);
                const FaultCase one{network, 1152, faulty, tp};
                const auto tried = try_faults(one, 4'000, 1, on_threads(2));
                const double off = std::abs(tried.usable.mean - usable(one));
                ++asked;
                if (off <= tried.usable.half_width + 1e-9) ++inside;
                CHECK(off <= 2 * tried.usable.half_width + 1e-9);  // of 20,000 such intervals one does not hold it
                CHECK(std::abs(tried.wasted.mean - wasted(one)) <= 2 * tried.wasted.half_width + 1e-9);
            }
    CHECK(asked > testing::full_or_short(120, 40));
    // 95 of 100 intervals hold it; those of one fault rate share their draws.
    CHECK(inside >= asked * 88 / 100);
    // What docs/studies/nvl72-or-hgx.md prints: 1,024 GPUs, 2 %, 10,000 trials.
    for (const char* name : {"dgx-8", "nvl-36", "nvl-72", "nvl-576"})
        for (const std::int64_t tp : {8, 16, 32}) {
            const FaultCase one{find_network(name), 1024, 0.02, tp};
            if (why_no_group(one.network, tp)) continue;
            CAPTURE(name);
            CAPTURE(tp);
            const auto tried = try_faults(one, 10'000, 1);
            CHECK(std::abs(tried.wasted.mean - wasted(one)) <= tried.wasted.half_width + 1e-9);
        }
}

TEST_CASE("larger groups waste more, if each is two of the smaller") {
    for (const char* name : {"dgx-8", "nvl-36", "nvl-72", "nvl-576", "cube-64", "ring-k2", "ring-k3"})
        for (const double faulty : {0.0, 0.01, 0.1, 0.5}) {
            const auto network = find_network(name);
            double before = 0;
            for (std::int64_t tp = 1; tp <= 64 && !why_no_group(network, tp); tp *= 2) {
                CAPTURE(name);
                CAPTURE(tp);
                const double now = wasted({network, 1152, faulty, tp});
                CHECK(now >= before - 1e-9);
                before = now;
            }
        }
}

TEST_CASE("a ring wastes less than a group until so many nodes in a row are faulty as it has hops") {
    const FaultCase ring{find_network("ring-k3"), 256, 0.02, 16};
    std::vector<char> faulty(64);
    const auto waste = [&] {
        return 4 * std::count(faulty.begin(), faulty.end(), char{0}) - 16 * groups_with(ring, faulty);
    };
    CHECK(waste() == 0);
    // Pairs of faults everywhere, also over the end: 16 of 64 nodes down, one segment left.
    for (const std::size_t node : {0UL, 5UL, 6UL, 11UL, 12UL, 20UL, 21UL, 30UL, 31UL, 40UL, 41UL, 50UL, 51UL, 63UL})
        faulty[node] = 1;
    CHECK(waste() == 8);  // 50 nodes are 12 groups of 4 and 2 nodes
    faulty[1] = 1;        // 63, 0, 1: a cut, but the ring is still one line
    CHECK(waste() == 4);
    faulty[32] = 1;  // 30, 31, 32: two lines, of 23 nodes and 25
    CHECK(groups_with(ring, faulty) == 5 + 6);
    // On average: more hops are cut more rarely, and both waste less than a rack of 72.
    const auto on_average = [](const char* name) { return wasted({find_network(name), 1152, 0.02, 16}); };
    CHECK(on_average("ring-k3") < on_average("ring-k2"));
    CHECK(on_average("ring-k2") < 0.02 * 1152);
    CHECK(on_average("nvl-72") > 3 * on_average("ring-k2"));
    // Without cuts what is wasted is a part of one group.
    CHECK(on_average("ring-k3") < 16);
}

TEST_CASE("trials are the same on any number of threads, and other seeds draw others") {
    const FaultCase asked{find_network("nvl-72"), 1024, 0.02, 16};
    const auto one = try_faults(asked, 3'000, 7), four = try_faults(asked, 3'000, 7, on_threads(4));
    CHECK(one.usable_gpus == four.usable_gpus);
    CHECK(one.wasted.mean == four.wasted.mean);
    CHECK(one.wasted.half_width == four.wasted.half_width);
    CHECK(one.usable_gpus != try_faults(asked, 3'000, 8).usable_gpus);
    // Their quantile is the closed form's, to a group.
    CHECK(std::abs(one.at(0.9) - 16 * usable_groups(asked)->at(0.9)) <= 16);
}

TEST_CASE("a job's GPUs are the fewest in whole domains that hold it") {
    for (const char* name : {"dgx-8", "nvl-36", "nvl-72", "nvl-576", "cube-64", "ring-k2"})
        for (const std::int64_t tp : {8, 16}) {
            FaultCase asked{find_network(name), 0, 0.02, tp};
            if (why_no_group(asked.network, tp)) continue;
            CAPTURE(name);
            const auto buy = gpus_for_job(asked, 1000, 0.99);
            REQUIRE(buy);
            const std::int64_t groups = (1000 + tp - 1) / tp;
            const std::int64_t unit = asked.network.kind == NetworkKind::ring ? 4 : asked.network.domain;
            CHECK(*buy % unit == 0);
            asked.gpus = *buy;
            CHECK(usable_groups(asked)->at(0.99) >= groups);
            asked.gpus -= unit;
            CHECK(usable_groups(asked)->at(0.99) < groups);
        }
    CHECK_FALSE(gpus_for_job({find_network("dgx-8"), 0, 1, 8}, 8, 0.99));
    CHECK(gpus_for_job({find_network("dgx-8"), 0, 0, 8}, 1020, 0.99) == 1024);
    CHECK(gpus_for_job({find_network("nvl-72"), 0, 0, 16}, 1024, 0.99) == 16 * 72);
}

TEST_CASE("columns for a table of capacity") {
    const auto network = workloads::network_of(workloads::find_cluster("gb200-nvl72:1152"));
    REQUIRE(network);
    const FaultCase asked{*network, 1152, 0.02, 16};
    const auto columns = fault_columns(asked);
    CHECK(columns.usable_gpus == doctest::Approx(usable(asked)));
    CHECK(columns.wasted_share == doctest::Approx(wasted(asked) / 1152));
    CHECK(columns.job_gpus == 16 * usable_groups(asked)->at(0.99));
    CHECK(*columns.spares == *gpus_for_job(asked, 1152, 0.99) - 1152);
    CHECK(*columns.usd_per_gpu == 9563.20);
    CHECK(*columns.usd_of_a_usable == doctest::Approx(9563.20 * 1152 / usable(asked)));
    const auto machines = fault_columns({find_network("hgx-8"), 1024, 0.02, 8});
    CHECK(machines.wasted_share == doctest::Approx(0));
    CHECK_FALSE(machines.usd_per_gpu);
    CHECK_FALSE(fault_columns({find_network("nvl-36"), 36, 1, 8}).usd_of_a_usable);
    // A ring too long for the walk is tried.
    const FaultCase long_ring{find_network("ring-k2"), 20'000, 0.05, 64};
    CHECK_FALSE(usable_groups(long_ring));
    const auto tried = fault_columns({long_ring.network, 20'000, 0.05, 64});
    // 5,000 nodes have 5,000 x 0.05^2 x 0.95 cuts, each segment a rest of 0 to 60 GPUs.
    CHECK(tried.wasted_share == doctest::Approx(5000 * 0.0025 * 0.95 * 30 / 20'000).epsilon(0.05));
    CHECK_FALSE(tried.spares);
}

TEST_CASE("what cannot be asked is said") {
    const auto rejects = [](const FaultCase& asked, const char* words) {
        CHECK_THROWS_WITH_AS(static_cast<void>(usable_groups(asked)), words, Error);
        CHECK_THROWS_AS(static_cast<void>(try_faults(asked, 10, 1)), Error);
    };
    rejects({find_network("dgx-8"), 1024, 0.02, 16}, "tp 16 is above the 8 GPUs of a domain of dgx-8");
    rejects({find_network("cube-64"), 1024, 0.02, 12},
            "groups of tp 12 do not fill the 64 GPUs of a cube of cube-64 in whole nodes of 4");
    rejects({find_network("nvl-72"), 1022, 0.02, 8}, "1022 GPUs are no multiple of the 4 of a node of nvl-72");
    rejects({find_network("nvl-72"), 1024, 1.5, 8}, "a node is faulty with probability 1.5: allowed are 0 to 1");
    rejects({find_network("nvl-72"), 1024, std::nan(""), 8},
            "a node is faulty with probability nan: allowed are 0 to 1");
    rejects({find_network("ring-k2"), 64, 0.02, 65}, "tp 65: allowed are 1 to the 64 GPUs");
    rejects({find_network("ring-k2"), 0, 0.02, 1}, "0 GPUs: allowed are 1 to 1000000");
}
