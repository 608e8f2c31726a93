#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "tests/support/small_emulation.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace pipeweaver;
using namespace std::chrono_literals;
using testing::SmallEmulation;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string table_of(const SmallEmulation& small) {
    return emit::emulation_table(small.request, small.emulation, nullptr);
}

// The lines between one that contains `first` and the next empty one.
std::vector<std::string> lines_after(const std::string& text, const std::string& first) {
    std::vector<std::string> lines;
    auto from = text.find('\n', text.find(first)) + 1;
    while (from < text.size() && text[from] != '\n') {
        const auto end = text.find('\n', from);
        lines.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return lines;
}

std::string without_spaces(std::string text) {
    std::erase(text, ' ');
    return text;
}

}  // namespace

TEST_CASE("the table of an emulation says what a step takes and by which convention") {
    const std::string text = table_of(SmallEmulation());

    // 6 x 12 x 1024^2 parameters, and 8 x 16 x 2048^2 with 2 x 32,000 x 2048 of embedding and head.
    CHECK(
        text.starts_with("small on 8 x h100_sxm, tp 2 x pp 4 x dp 1; by hand: 8 samples in 8 microbatches\n"
                         "vit 0.08 B, llm 0.67 B parameters"));
    CHECK(has(text,
              "\npartition megatron, 1 chunk a rank, schedule 1f1b, recompute none, recipe megatron-core, ZeRO 1\n"));
    CHECK(has(text, "step 0.001000 s = makespan 0.000960 s + optimizer 0.000040 s\n"));
    CHECK(has(text, "MFU 50.0 %: 4e+12 model FLOPs (forward and backward, recomputation not counted) over 8 GPUs x "));
    CHECK(has(text,
              "9984000 tokens/s, 1248000 a GPU: 9984 tokens of 'llm' a step; 8000.00 samples/s; 500.0 TFLOP/s a GPU; "
              "1000 kernels\n"));
    CHECK(has(text, "assumed: the host launches kernels ahead: it is never waited for\n"));
    CHECK(!has(text, "what if"));
    CHECK(!has(text, "replica 0"));
}

TEST_CASE("beside a range by how layers are launched nothing says that the host is never waited for") {
    SmallEmulation small;
    REQUIRE(has(table_of(small), "assumed: the host launches kernels ahead: it is never waited for\n"));
    planner::HostBound host;
    host.as = "megatron-core-plain";
    host.layer = 2ms;
    host.step = 2 * small.emulation.step;
    host.waits.assign(4, 100us);
    small.emulation.host = host;
    const std::string text = table_of(small);
    CHECK(has(text, "launched kernel by kernel (2.000 ms of it for a layer's forward, as megatron-core-plain has it)"));
    CHECK(!has(text, "assumed: the host launches"));
    CHECK(
        !has(emit::emulation_json(small.request, small.emulation, nullptr).dump(), "the host launches kernels ahead"));
    small.emulation.host.reset();
    CHECK(has(emit::emulation_json(small.request, small.emulation, nullptr).dump(), "the host launches kernels ahead"));
}

TEST_CASE("the line of a host that is known has its time for routing where the model has experts") {
    SmallEmulation small;
    for (auto& time : small.emulation.replicas.front().time)
        time.exposed[static_cast<std::size_t>(emulator::Stream::host)] = 100us;
    small.change_setup([](emulator::Setup& setup) { setup.recipe.expert_layer = 6ms; });
    CHECK(!has(table_of(small), "never waited for"));
    small.change_setup([](emulator::Setup& setup) { setup.recipe.layer = 2ms; });
    CHECK(has(table_of(small), "host: rank 0 waits 10.0 % of the step for it, 2.000 ms of it for a layer's forward\n"));
    small.change_setup([](emulator::Setup& setup) {
        setup.model.modules.back().architecture.moe =
            workloads::MixtureOfExperts{.moe_layers = 1, .every = 1, .experts = 8, .top_k = 2, .expert_ffn = 512};
    });
    CHECK(has(table_of(small), "for it, 2.000 ms of it for a layer's forward, 6.000 ms for routing\n"));
}

TEST_CASE("the table of an emulation divides every rank's step, and leaves out streams that nobody waits for") {
    SmallEmulation small;
    auto& odd = small.emulation.replicas.front().time[2];
    odd.bubble -= 50us;
    odd.compute += 50us;

    const auto lines = lines_after(table_of(small), "time of each rank");
    REQUIRE(lines.size() == 5);
    CHECK(without_spaces(lines[0]) == "rankbusycompute+tensor+gradients+optimizerbubble");
    CHECK(without_spaces(lines[1]) == "080.0%60.0%10.0%6.0%4.0%20.0%");
    CHECK(without_spaces(lines[3]) == "285.0%65.0%10.0%6.0%4.0%15.0%");
}

TEST_CASE("the table of an emulation shows each rank's memory in its fullest replica, and the slowest one's time") {
    SmallEmulation small(2);
    small.emulation.slowest = 1;
    small.emulation.replicas[1].memory[3].activations += 1_GiB;
    small.emulation.replicas[1].memory[3].peak += 1_GiB;
    const std::string text = table_of(small);

    CHECK(has(text, "in replica 1, the slowest of 2"));
    const auto lines = lines_after(text, "memory of a GPU");
    REQUIRE(lines.size() == 6);
    CHECK(lines[5] == emulator::not_counted());
    CHECK(without_spaces(lines[1]) == "050.00GiB4.00GiB8.00GiB24.00GiB2.00GiB10.00GiB2.00GiB0");
    CHECK(without_spaces(lines[4]) == "351.00GiB4.00GiB8.00GiB24.00GiB2.00GiB11.00GiB2.00GiB1");
}

TEST_CASE("the table of an emulation has a column for what each rank recomputes, where each has its own") {
    SmallEmulation small(2);
    small.emulation.recompute = planner::recompute_by_rank;
    using emulator::Recompute;
    small.emulation.by_rank = {{Recompute::full, Recompute::blocks(3), Recompute::selective, Recompute::none},
                               {Recompute::none, Recompute::none, Recompute::none, Recompute::blocks(1)}};
    small.emulation.replicas[1].memory[3].peak += 1_GiB;
    const std::string text = table_of(small);

    CHECK(has(text, "schedule 1f1b, recompute by-rank, recipe"));
    const auto lines = lines_after(text, "memory of a GPU");
    REQUIRE(lines.size() == 6);
    CHECK(without_spaces(lines[0]).ends_with("transientrecomputefullestreplica"));
    CHECK(without_spaces(lines[2]).ends_with("2.00GiBblocks:30"));
    CHECK(without_spaces(lines[4]).ends_with("2.00GiBblocks:11"));
}

TEST_CASE("of many ranks the table of an emulation shows the ends and the extremes") {
    SmallEmulation small(1, 32);
    auto& replica = small.emulation.replicas.front();
    replica.time[9].bubble -= 10us;
    replica.time[9].compute += 10us;
    replica.time[17].bubble += 10us;
    replica.time[17].compute -= 10us;
    replica.memory[20].peak += 1_GiB;
    const std::string text = table_of(small);

    const std::string remark =
        "of 32 ranks the first and last 4, that with least bubble (9), with most (17), and the "
        "fullest (20)";
    const auto lines = lines_after(text, "time of each rank");
    REQUIRE(lines.size() == 13);
    CHECK(lines[0] == remark);
    std::vector<int> ranks;
    for (std::size_t i = 2; i < lines.size(); ++i) ranks.push_back(std::stoi(lines[i]));
    CHECK(ranks == std::vector<int>{0, 1, 2, 3, 9, 17, 20, 28, 29, 30, 31});
}

TEST_CASE("the table of an emulation adds up the critical path to the step") {
    SmallEmulation small;
    const auto lines = lines_after(table_of(small), "the path that decides the step");
    CHECK(lines == std::vector<std::string>{"   70.0 % gemm of llm", "   26.0 % transfer", "    4.0 % optimizer"});

    auto& critical = small.emulation.replicas.front().critical;
    critical.clear();
    for (int i = 0; i < 20; ++i) critical.push_back({"gemm", "llm", 50us});
    const auto many = lines_after(table_of(small), "the path that decides the step");
    REQUIRE(many.size() == 13);
    CHECK(many.back() == "   40.0 % all else");
}

TEST_CASE("a what-if stands beside the step as it is, with the difference") {
    SmallEmulation small;
    const auto base = small.emulation;
    small.change_setup([](emulator::Setup& setup) {
        setup.what_if.links = {{"tensor", 0.5}};
        setup.what_if.devices = {{3, 1, 1.25}};
    });
    small.emulation.step = 950us;
    small.emulation.mfu = 0.5 / 0.95;
    const std::string text = emit::emulation_table(small.request, small.emulation, &base);

    CHECK(has(text, "what if times change: rank 3 of replica 1 x1.25, link tensor x0.5\n"));
    const auto lines = lines_after(text, "what if times change");
    CHECK(without_spaces(lines[0]) == "asitiswhatifchange");
    CHECK(without_spaces(lines[1]) == "step0.001000s0.000950s-5.00%");
    CHECK(without_spaces(lines[2]) == "makespan0.000960s0.000960s+0.00%");
    CHECK(without_spaces(lines[3]) == "MFU50.0%52.6%+5.26%");
}
