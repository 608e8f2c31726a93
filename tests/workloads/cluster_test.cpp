#include "pipeweaver/workloads/cluster.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

std::filesystem::path written(const std::string& content) { return testing::written("cluster.json", content); }

}  // namespace

TEST_CASE("a device is found under its name and all spellings of it") {
    for (const char* name : {"a100_sxm", "A100-SXM", "A100-80GB-SXM", "a100", "A100_80GB"})
        CHECK(device(name).name == "a100_sxm");
    CHECK(device("H100").name == "h100_sxm");
    CHECK(device("B200").name == "b200");
    CHECK(device("b200_sxm").name == "b200");
    CHECK_THROWS_WITH_AS(device("h10"), "unknown device 'h10'; did you mean 'h100'?", Error);
    CHECK(known_device("h10") == nullptr);
    CHECK(known_device("H100") == &device("h100_sxm"));
}

TEST_CASE("no two devices share a spelling, and each figure has its source") {
    for (const auto& one : devices()) {
        CAPTURE(one.name);
        CHECK(device(one.name).name == one.name);
        for (const auto& alias : one.aliases) CHECK(device(alias).name == one.name);
        CHECK(!one.source.empty());
        CHECK(one.bf16_flops > 0);
    }
    for (const auto& cluster : clusters()) {
        CHECK(!cluster.source.empty());
        CHECK(device(cluster.device).name == cluster.device);
    }
}

TEST_CASE("H100s have the peak, bandwidths and links of their data sheets") {
    const Cluster cluster = find_cluster("h100-sxm:32");
    CHECK(cluster.gpus == 32);
    CHECK(cluster.gpus_per_node == 8);
    CHECK(cluster.node_link.bytes_per_second == 450'000'000'000);
    CHECK(cluster.network.bytes_per_second == 8 * 50'000'000'000);  // 8 x 400 Gb/s
    const Device& gpu = device(cluster.device);
    CHECK(gpu.bf16_flops == 989e12);
    CHECK(gpu.fp8_flops == 1979e12);
    CHECK(gpu.memory_bandwidth.bytes_per_second == 3'350'000'000'000);
    CHECK(gpu.memory == 80_GiB);
    CHECK(gpu.multiprocessors == 132);
    CHECK(gpu.power_watts == 700);
    CHECK(device("cpu").power_watts == 0);
}

TEST_CASE("every published cluster can be named, in any case") {
    for (const char* name : {"a100-sxm", "h100-sxm", "h200-sxm", "h800-sxm", "h20-sxm", "b200-sxm", "a100-pcie", "cpu"})
        CHECK(find_cluster(std::string(name) + ":8").name == name);
    CHECK(find_cluster("H800_SXM:64").price_per_gpu_hour == 2.0);
}

TEST_CASE("a cluster's count must be a number of GPUs") {
    CHECK_THROWS_WITH_AS(find_cluster("h100-sxm"),
                         "cluster 'h100-sxm': the number of GPUs is missing, write h100-sxm:32 for 32 of them", Error);
    for (const char* count : {"", "0", "-8", "8x", "eight", "1e3", "1000001", "99999999999999999999", " 8", "8 "}) {
        CAPTURE(count);
        const std::string text = std::string("h100-sxm:") + count;
        const std::string message =
            "cluster '" + text + "': '" + count + "' is no number of GPUs, allowed are 1 to 1000000";
        CHECK_THROWS_WITH_AS(find_cluster(text), message.c_str(), Error);
    }
}

TEST_CASE("an unknown cluster is refused with the nearest name") {
    CHECK_THROWS_WITH_AS(find_cluster("h100-sx:8"), "unknown cluster 'h100-sx'; did you mean 'h100-sxm'?", Error);
    CHECK_THROWS_AS(find_cluster(""), Error);
}

TEST_CASE("a cluster comes back from its file, whose count can be overridden") {
    const auto path = written(to_json(find_cluster("h20-sxm:16")));

    CHECK(find_cluster(path.string()).gpus == 16);
    const Cluster other = find_cluster(path.string() + ":64");
    CHECK(other.gpus == 64);
    CHECK(other.device == "h20_sxm");
    CHECK(to_json(find_cluster(path.string())) == to_json(find_cluster("h20-sxm:16")));
    std::filesystem::remove(path);
}

TEST_CASE("a cluster file is read strictly") {
    const std::string start = R"({"format":"pipeweaver-cluster/1","name":"mine","device":"H100",)";
    const auto path = written(start + R"("gpus_per_node":8,"node_link_bytes_per_s":0,"network_bytes_per_s":1})");
    const auto message = [&](const std::string& text) { return path.string() + ": " + text; };
    CHECK_THROWS_WITH_AS(
        find_cluster(path.string()),
        message("node_link_bytes_per_s: is 0, must be a whole number from 1 to 1000000000000000").c_str(), Error);

    written(start + R"("gpus_per_nodes":8})");
    CHECK_THROWS_WITH_AS(find_cluster(path.string()),
                         message("unknown key 'gpus_per_nodes'; did you mean 'gpus_per_node'?").c_str(), Error);

    written(R"({"format":"pipeweaver-cluster/1","name":"mine","device":"H101","gpus_per_node":8,)"
            R"("node_link_bytes_per_s":1,"network_bytes_per_s":1})");
    CHECK_THROWS_WITH_AS(find_cluster(path.string() + ":8"),
                         message("device: unknown device 'H101'; did you mean 'h100'?").c_str(), Error);

    written(start + R"("gpus_per_node":8,"node_link_bytes_per_s":1,"network_bytes_per_s":1})");
    CHECK(find_cluster(path.string() + ":8").device == "h100_sxm");
    CHECK_THROWS_AS(find_cluster(path.string()), Error);  // no count at all
    std::filesystem::remove(path);
    CHECK_THROWS_AS(find_cluster(path.string()), Error);
}

TEST_CASE("a cluster without a link serves as many GPUs as do without it") {
    const std::string start = R"({"format":"pipeweaver-cluster/1","name":"mine","device":"H100","gpus_per_node":8,)";
    const auto path = written(start + R"("node_link_bytes_per_s":450000000000})");
    CHECK(find_cluster(path.string() + ":8").network == Bandwidth{});
    CHECK_THROWS_WITH_AS(find_cluster(path.string() + ":16"),
                         (path.string() + ": network_bytes_per_s: is missing; 16 GPUs in nodes of 8 need it, allowed "
                                          "without are 8 GPUs or fewer")
                             .c_str(),
                         Error);
    written(start + R"("network_bytes_per_s":400000000000})");
    CHECK(find_cluster(path.string() + ":1").node_link == Bandwidth{});
    CHECK_THROWS_WITH_AS(find_cluster(path.string() + ":2"),
                         (path.string() + ": node_link_bytes_per_s: is missing; 2 GPUs in nodes of 8 need it, allowed "
                                          "without are nodes of one GPU")
                             .c_str(),
                         Error);
    written(to_json(find_cluster(path.string() + ":1")));
    CHECK(find_cluster(path.string()).node_link == Bandwidth{});
    std::filesystem::remove(path);
}

TEST_CASE("every training GPU of NVIDIA's data centres is of a generation") {
    const std::set<std::string> others{"cpu",      "ascend_910b",  "l40",    "l40s",   "rtx_3090",
                                       "rtx_4090", "rtx_pro_6000", "mi300x", "mi325x", "mi355x"};
    for (const Device& one : devices()) {
        CAPTURE(one.name);
        CHECK((family_of(one.name) == Family::other) == others.contains(one.name));
    }
    CHECK(family_of("gh200") == Family::hopper);
    CHECK(family_of("b300") == Family::blackwell);
    CHECK(family_of("a100_pcie") == Family::ampere);
    CHECK(family_of("h20_sxm") == Family::hopper);
    CHECK(family_of("b200") == Family::blackwell);
}

TEST_CASE("devices without tables are known by the figures of their makers, and say so") {
    const Device& gpu = device("AMD-Instinct-MI300X");
    CHECK(gpu.name == "mi300x");
    CHECK(gpu.modelled);
    CHECK(gpu.bf16_flops == doctest::Approx(1307.4e12));
    CHECK(gpu.fp8_flops == doctest::Approx(2614.9e12));
    CHECK(gpu.memory == 192_GiB);
    CHECK(gpu.memory_bandwidth.bytes_per_second == 5'300'000'000'000);
    CHECK(find_cluster("mi300x:16").node_link.bytes_per_second == 448'000'000'000);
    for (const char* name : {"mi325x", "mi355x", "l40s", "l40", "rtx-4090", "rtx-3090", "rtx-pro-6000", "gh200",
                             "a100-40gb", "h100-nvl"}) {
        CAPTURE(name);
        CHECK(device(find_cluster(std::string(name) + ":8").device).modelled);
    }
    for (const char* measured : {"a100_sxm", "h100_sxm", "h200_sxm", "b200", "b300", "gb200", "gb300"})
        CHECK(!device(measured).modelled);
    CHECK(device("gb300").fp4_flops == doctest::Approx(1080e15 / 72));  // NVIDIA's data sheet of 72, without sparsity
    CHECK(device("b200").fp4_flops == doctest::Approx(72e15 / 8));
    CHECK(device("h100").fp4_flops == 0);
    CHECK(device("rtx-3090").fp8_flops == 0);
    CHECK(device("b300").memory < 270_GiB);  // not the 288 GB of its name
}

TEST_CASE("who names a device in place of a cluster is told its cluster") {
    CHECK_THROWS_WITH_AS(find_cluster("h100-94gb:8"), "unknown cluster 'h100-94gb'; did you mean 'h100-nvl'?", Error);
    CHECK_THROWS_WITH_AS(find_cluster("mi300:8"), "unknown cluster 'mi300'; did you mean 'mi300x'?", Error);
}

TEST_CASE("a cluster's network and racks come back from its file, and a GPU keeps its part of the network") {
    const Cluster plain = find_cluster("h100-sxm:64");
    const Cluster wide = with_network(plain, find_network("nvl-72"));
    CHECK(wide.gpus_per_node == 72);
    CHECK(wide.network.bytes_per_second == 9 * plain.network.bytes_per_second);
    const Cluster ring = with_network(plain, find_network("ring-k2"));
    CHECK(ring.gpus_per_node == 4);
    CHECK(ring.network.bytes_per_second == plain.network.bytes_per_second / 2);
    const Cluster racks = with_racks(with_network(plain, find_network("dgx-8")), 32, 4);
    for (const Cluster& one : {wide, ring, racks}) {
        const Cluster back = find_cluster(written(to_json(one)).string());
        CHECK(to_json(back) == to_json(one));
        CHECK(back.shape == one.shape);
    }
    CHECK(to_json(with_network(wide, find_network("nvl-72"))) == to_json(wide));
}

TEST_CASE("a network's shape that cannot be is refused") {
    const auto rejects = [](const std::string& members, const char* words) {
        const std::string text =
            R"({"format":"pipeweaver-cluster/1","name":"mine","device":"h100","gpus_per_node":8,"gpus":64,)"
            R"("node_link_bytes_per_s":450000000000,"network_bytes_per_s":400000000000,)" +
            members + "}";
        CHECK_THROWS_WITH_AS(static_cast<void>(find_cluster(text)), doctest::Contains(words), Error);
    };
    rejects(R"("network":"nvl-73")", "unknown network 'nvl-73'; known are dgx-8");
    rejects(R"("network":"other.json")",
            "network: is 'other.json', must be a name of `pipeweaver list networks`, or the network itself");
    rejects(R"("network":{"format":"pipeweaver-network/1","name":"odd","kind":"cube","gpus_per_domain":36,)"
            R"("gpus_per_node":4})",
            "network 'odd': 36 GPUs are no cube, which has a whole number cubed, like 64");
    rejects(R"("gpus_per_rack":12)", "gpus_per_rack: is 12, must be whole nodes of 8 GPUs");
    const Cluster racks = with_racks(find_cluster("h100-sxm:64"), 16, 4);
    CHECK_THROWS_WITH_AS(static_cast<void>(with_network(racks, find_network("nvl-36"))),
                         "gpus_per_rack: is 16, must be whole nodes of 36 GPUs", Error);
    rejects(R"("rack_oversubscription":4)", "rack_oversubscription: goes with gpus_per_rack");
    rejects(R"("gpus_per_rack":16,"rack_oversubscription":0.5)", "rack_oversubscription: is 0.5, must be");
    rejects(R"("network":"ring-k2","gpus_per_rack":16)",
            "network 'ring-k2' is a ring through all nodes, which has no racks");
}
