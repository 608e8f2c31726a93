// What parts of a step of reinforcement learning take at shares of a device's peaks.
#include "pipeweaver/rl/costs.hpp"

#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::rl;

namespace {

// Of times: 1 where they are alike, within two thousandths where an epsilon is one.
double ratio(Duration time, double seconds) { return static_cast<double>(time.count()) * 1e-9 / seconds; }

double seconds(Duration time) { return static_cast<double>(time.count()) * 1e-9; }

// 80 GB at 2 TB/s, 1e15 products a second.
workloads::Device round_device() {
    workloads::Device device;
    device.name = "round";
    device.bf16_flops = 1e15;
    device.memory_bandwidth = {2'000'000'000'000};
    device.memory = {80'000'000'000};
    return device;
}

TEST_CASE("one answer of a dense model reads its weights, and keys and values of what is in front") {
    const auto& network = workloads::architecture("qwen2.5-7b");
    const auto device = round_device();
    const Generator generator{.network = network, .device = device, .prompt_tokens = 100, .longest_answer = 900};
    const auto decoding = decoding_of(generator);
    REQUIRE(decoding);
    const double read =
        2. * static_cast<double>(workloads::matrix_parameters(network) - workloads::embedding_parameters(network));
    CHECK(ratio(decoding->token[0], read / 2e12) == doctest::Approx(1).epsilon(0.001));
    // 28 layers, 4 heads of keys and values of 128 columns in two bytes.
    CHECK(decoding->front_ps == 28 * 2 * 4 * 128 * 2 / 2);
    Generator slow{generator};
    slow.share = 0.5;
    slow.host = Duration{1'000'000};
    CHECK(ratio(decoding_of(slow)->token[0], 2 * seconds(decoding->token[0]) + 0.001) ==
          doctest::Approx(1).epsilon(0.001));
}

TEST_CASE("many answers of a mixture read all experts, one its own") {
    const auto& network = workloads::architecture("qwen3-30b-a3b");
    const auto device = round_device();
    const auto decoding = decoding_of({.network = network, .device = device, .gpus = 4});
    REQUIRE(decoding);
    double active = 0, all = 0;
    for (std::int64_t layer = 0; layer < network.layers; ++layer) {
        active += static_cast<double>(workloads::active_layer_parameters(network, layer));
        all += static_cast<double>(workloads::layer_parameters(network, layer));
    }
    const auto head = static_cast<double>(workloads::head_parameters(network));
    // Routers, a thousandth of what is active, are left out.
    CHECK(ratio(decoding->token[0], 2 * (active + head) / 8e12) == doctest::Approx(1).epsilon(0.01));
    CHECK(ratio(decoding->token.at(255), 2 * (all + head) / 8e12) == doctest::Approx(1).epsilon(0.01));
    CHECK(std::is_sorted(decoding->token.begin(), decoding->token.end()));
}

TEST_CASE("a layer of one half has half of a block's time of the host") {
    CHECK(usual_host(workloads::architecture("qwen3-30b-a3b")) == 48 * usual_host_of_block);
    CHECK(usual_host(workloads::architecture("nemotron-3-nano-30b-a3b")) == 26 * usual_host_of_block);  // 52 halves
}

TEST_CASE("an instance has as many slots as its memory holds, or none") {
    const auto& network = workloads::architecture("qwen2.5-7b");
    const auto device = round_device();
    Generator generator{.network = network, .device = device, .prompt_tokens = 1'000, .mean_answer = 9'000};
    const double left = 0.92 * 80e9 - 2 * static_cast<double>(workloads::all_parameters(network));
    const auto slots = static_cast<std::size_t>(left / (28. * 2 * 4 * 128 * 2 * 10'000));
    CHECK(decoding_of(generator)->token.size() == slots);
    generator.slots = 8;
    CHECK(decoding_of(generator)->token.size() == 8);
    const auto& large = workloads::architecture("qwen3-235b-a22b");
    CHECK_FALSE(decoding_of({.network = large, .device = device, .gpus = 4}));
}

TEST_CASE("training takes three forwards of each answer and its prompt") {
    const auto& network = workloads::architecture("qwen2.5-7b");
    const std::vector<std::int64_t> answers{1'000, 3'000};
    const auto times = forward_times(network, round_device(), 0.5, 3, answers, 1'000);
    const double flops = forward_flops(network, 4'000);
    CHECK(ratio(times[1], 3 * flops / 0.5e15) == doctest::Approx(1).epsilon(1e-6));
    // Two FLOPs for each parameter but the embedding's, and some for attention.
    const double products =
        2. * 4'000 *
        static_cast<double>(workloads::matrix_parameters(network) - workloads::embedding_parameters(network));
    CHECK(flops > products);
    CHECK(flops < 1.1 * products);
}

TEST_CASE("measured time is shared out by tokens") {
    const auto times = shares_of(Duration{100}, 4, std::vector<std::int64_t>{90, 290}, 10);
    CHECK(times == std::vector{Duration{100}, Duration{300}});
}

TEST_CASE("weights come through the network once a node, then by its links") {
    workloads::Cluster cluster;
    cluster.gpus = 16;
    cluster.network = {100};
    cluster.node_link = {50};
    const Bandwidth any{1'000'000};
    CHECK(weights_time(cluster, Bytes{800}, 4, any) ==
          Duration{12'000'000'000});  // 800 by the network, 200 by each link
    CHECK(weights_time(cluster, Bytes{800}, 16, any) == Duration{5'000'000'000});  // a node has half of them
    cluster.gpus = 8;
    CHECK(weights_time(cluster, Bytes{800}, 4, any) == Duration{4'000'000'000});
    CHECK(weights_time(cluster, Bytes{800}, 4, Bandwidth{50}) == Duration{16'000'000'000});
}

}  // namespace
