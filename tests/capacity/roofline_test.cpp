// Work and price of a decoded token, beside the Step-3 report and by hand.
#include "pipeweaver/capacity/roofline.hpp"

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity;

namespace {

const workloads::Architecture& network(const std::string& name) {
    for (const auto& one : workloads::architectures())
        if (one.name == name) return one;
    FAIL("no network is called " << name);
    return workloads::architectures().front();
}

workloads::Cluster cluster(const std::string& name) { return workloads::find_cluster(name + ":8"); }

double of_quantity(const TokenWork& work, std::string_view quantity) {
    if (quantity == "kv_cache_bytes_read_per_token") return work.cache_bytes;
    if (quantity == "attention_flops_per_token") return work.attention_flops;
    if (quantity == "attention_linear_flops_per_token") return work.linear_flops;
    REQUIRE(quantity == "ffn_flops_per_token");
    return work.ffn_flops;
}

}  // namespace

TEST_CASE("a decoded token's work by hand") {
    // Qwen3 32B: 64 layers, 8 key heads of 128; a thousand tokens: 64 x 2 x 8 x 128 x 1000 bytes.
    const auto dense = token_work(network("qwen3-32b"), 1000);
    CHECK(dense.cache_bytes == 131'072'000);
    // 64 heads of 128, scores and their use: 64 x 4 x 64 x 128 x 1000.
    CHECK(dense.attention_flops == 2'097'152'000);
    CHECK(dense.intensity() == 16);
    // Projections 2 x 5120 x 8192 + 2 x 5120 x 1024 = 94,371,840 a layer; feed-forward 3 x 5120 x 25600.
    CHECK(dense.linear_flops == 2. * 64 * 94'371'840);
    CHECK(dense.ffn_flops == 2. * 64 * 3 * 5120 * 25600);
    // DeepSeek-V3 keeps 512 + 64 values a token and layer, read by 128 heads.
    const auto latent = token_work(network("deepseek-v3"), 1000);
    CHECK(latent.cache_bytes == 61. * 576 * 1000);
    CHECK(latent.attention_flops == 61. * 4 * 128 * 576 * 1000);
    CHECK(latent.ffn_weights == 3. * 7168 * (3 * 18432 + 58. * 257 * 2048));
    // Of 40 layers 10 attend, with 2 key heads of 256; the others keep a state of 32 heads of 128 x 128 in fp32.
    const auto hybrid = token_work(network("qwen3.6-35b-a3b-llm"), 1000);
    CHECK(hybrid.cache_bytes == 10. * 2 * 2 * 256 * 1000 + 30. * 8 * 32 * 128 * 128);
}

TEST_CASE("the tables of the Step-3 report") {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared || !std::filesystem::exists(*shared / "data/published/step3_cost_tables.csv")) {
        pipeweaver::testing::left_out("the tables of the Step-3 report, which are not at hand");
        return;
    }
    const std::map<std::string_view, std::string> networks{{"DSv3", "deepseek-v3"},
                                                           {"Kimi K2", "kimi-k2"},
                                                           {"Qwen3 MoE", "qwen3-235b-a22b"},
                                                           {"Qwen3 32B", "qwen3-32b"},
                                                           {"ERNIE 4.5", "ernie-4.5-300b-a47b"},
                                                           {"Step-3", "step3-316b-llm"}};
    const std::map<std::string_view, std::string> clusters{
        {"H800", "h800-sxm"}, {"H20", "h20-sxm"}, {"A800", "a800-sxm"}, {"910B", "ascend-910b"}};
    const auto table = CsvTable::read(*shared / "data/published/step3_cost_tables.csv");
    const auto cell = [&](std::size_t row, std::string_view column) { return table.text(row, table.column(column)); };
    std::map<std::string_view, int> compared;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        CAPTURE(table.line(row));
        const std::string_view which = cell(row, "table");
        const double value = table.number(row, table.column("value"), 0, 1e18);
        if (which == "devices") continue;
        ++compared[which];
        if (which == "7") {
            auto of = cluster(clusters.at(cell(row, "device")));
            of.network = Bandwidth{400'000'000'000};
            CHECK(std::round(1000 * least_sparsity(7168, 61, 11.1e-3, of)) == std::round(1000 * value));
            continue;
        }
        const bool any_context = cell(row, "context_tokens").empty();
        const std::int64_t context =
            any_context ? 8192 : table.integer(row, table.column("context_tokens"), 1, 1'000'000);
        const auto work = token_work(network(networks.at(cell(row, "model"))), context);
        if (which == "2-3") {
            // The report prints three digits.
            const double found = of_quantity(work, cell(row, "quantity"));
            const double digit = std::pow(10, std::floor(std::log10(found)) - 2);
            const bool same_digits = std::abs(std::round(found / digit) * digit - value) < digit / 100;
            CHECK((same_digits || std::abs(found / value - 1) < 0.003));
            continue;
        }
        REQUIRE(which == "6");
        const auto of = cluster(clusters.at(cell(row, "device")));
        const double seconds = token_time(work, workloads::device(of.device)).attention;
        CHECK(std::abs(usd_per_million(seconds, of.price_per_gpu_hour) - value) <= 0.002);
    }
    CHECK(compared["2-3"] == 36);
    CHECK(compared["6"] == 48);
    CHECK(compared["7"] == 4);
}

TEST_CASE("a split has nodes enough for its latency, and no more") {
    const auto model = network("deepseek-v3");
    const auto work = token_work(model, 8192);
    const auto h800 = cluster("h800-sxm");
    const auto& device = workloads::device("h800_sxm");
    for (const double latency : {0.03, 0.05, 0.1}) {
        CAPTURE(latency);
        const auto split = split_instances(model, work, latency, h800, h800);
        const double share = latency / 3;
        // Products and network of the feed-forward fit their third, and one of them or the weights fills it.
        const double gpus = 8. * static_cast<double>(split.ffn_nodes);
        CHECK(split.tokens * work.ffn_flops / (gpus * 1979e12) <= share * 1.0001);
        CHECK(split.tokens * 2 * 7168 * 61 / (static_cast<double>(split.ffn_nodes) * 200e9) <= share * 1.0001);
        CHECK(work.ffn_weights / (gpus * 3.35e12) <= share);
        CHECK(work.ffn_weights <= 0.92 * gpus * static_cast<double>(device.memory.count));
        // Attention too, with one node fewer it does not.
        const double of_a_gpu = token_time(work, device).attention;
        const auto on_gpus = [&](std::int64_t nodes) { return split.tokens / (8. * static_cast<double>(nodes)); };
        CHECK(on_gpus(split.attention_nodes) * of_a_gpu <= share * 1.0001);
        if (split.limit != SplitInstances::Limit::cache)
            CHECK(on_gpus(split.attention_nodes - 1) * of_a_gpu > share * 0.9999);
        CHECK(split.tokens_per_second_per_gpu * 8 * static_cast<double>(split.attention_nodes + split.ffn_nodes) ==
              doctest::Approx(split.tokens / share));
    }
    CHECK_THROWS_AS(static_cast<void>(split_instances(model, work, 1e-6, h800, h800)), Error);
    CHECK_THROWS_AS(static_cast<void>(split_instances(model, token_work(model, 50'000'000), 0.03, h800, h800)), Error);
}
