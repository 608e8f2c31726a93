// Networks by name, as files, and of clusters.
#include "pipeweaver/workloads/network.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

TEST_CASE("every network has its source, whole nodes, and names of its own") {
    std::set<std::string> names;
    for (const Network& one : networks()) {
        CAPTURE(one.name);
        CHECK(!one.source.empty());
        CHECK(one.domain % one.node == 0);
        CHECK((one.kind == NetworkKind::ring) == (one.domain == 0));
        CHECK((one.kind == NetworkKind::ring) == (one.hops > 0));
        CHECK(names.insert(one.name).second);
        for (const auto& alias : one.aliases) {
            CHECK(names.insert(alias).second);
            CHECK(find_network(alias).name == one.name);
        }
    }
    CHECK(find_network("NVL72").domain == 72);
    CHECK(find_network("hgx-8").node == 8);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(find_network("nvl-73")),
        "unknown network 'nvl-73'; known are dgx-8, nvl-36, nvl-72, nvl-576, cube-64, ring-k2, ring-k3", Error);
}

TEST_CASE("what the ring costs is 31 % of NVL-72 for each GB/s, as its paper's abstract says") {
    const double ring = *find_network("ring-k2").usd_per_gpu / 800, rack = *find_network("nvl-72").usd_per_gpu / 900;
    CHECK(ring / rack == doctest::Approx(0.31).epsilon(0.01));
}

TEST_CASE("a network comes back from its file") {
    for (const Network& one : networks()) {
        const auto file = testing::written("network.json", to_json(one));
        const Network back = find_network(file.string());
        CHECK(back.name == one.name);
        CHECK(back.kind == one.kind);
        CHECK(back.domain == one.domain);
        CHECK(back.node == one.node);
        CHECK(back.hops == one.hops);
        CHECK(back.usd_per_gpu == one.usd_per_gpu);
    }
}

TEST_CASE("a network's file that cannot be is refused with its key") {
    const auto rejects = [](const std::string& members, const char* words) {
        const std::string text = R"({"format":"pipeweaver-network/1","name":"mine",)" + members + "}";
        CHECK_THROWS_WITH_AS(static_cast<void>(find_network(text)), doctest::Contains(words), Error);
    };
    rejects(R"("kind":"switch","gpus_per_domain":10,"gpus_per_node":4)",
            "gpus_per_node: is 4, which does not divide the 10 GPUs of a domain");
    rejects(R"("kind":"switch","gpus_per_domain":8,"gpus_per_node":4,"hops":2)",
            "hops: goes with no switch, which has gpus_per_domain");
    rejects(R"("kind":"ring","gpus_per_domain":8,"gpus_per_node":4,"hops":2)",
            "gpus_per_domain: goes with no ring, which has hops");
    rejects(R"("kind":"torus","gpus_per_domain":8,"gpus_per_node":4)", "kind: is 'torus'");
    rejects(R"("kind":"ring","gpus_per_node":4)", "hops");
    rejects(R"("kind":"cube","gpus_per_domain":8,"gpus_per_node":4,"usd":1)", "unknown key 'usd'");
}

TEST_CASE("a cluster's network goes by the size of its nodes") {
    const auto name = [](const char* cluster) {
        const auto found = network_of(find_cluster(cluster));
        return found ? found->name : std::string("none");
    };
    CHECK(name("h100-sxm:32") == "dgx-8");
    CHECK(name("gb200-nvl36:72") == "nvl-36");
    CHECK(name("gb200-nvl72:72") == "nvl-72");
    CHECK(name("gb200-nvl576:576") == "nvl-576");
    CHECK(name("cpu:8") == "none");
    auto other = find_cluster("h100-sxm:32");
    other.gpus_per_node = 16;
    CHECK_FALSE(network_of(other));
}
