// Added cross-attention layers (Llama 3.2 vision) and heads behind a backbone (NextStep-1), by hand.
#include "emulator/operators/head_network.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/operator_flops.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

constexpr std::int64_t image_positions = 4 * 1601;

const workloads::Architecture& llama() { return workloads::architecture("llama-3.2-11b-vision-llm"); }
const workloads::Architecture& fm_head() { return workloads::architecture("nextstep-fm-head"); }

// The step of one microbatch of a model of the catalogue, on two ranks.
StepProblem step_of(const std::string& model, const workloads::Microbatch& microbatch) {
    testing::SmallWorkload setup({.tp = 8, .pp = 2});
    setup.model = workloads::model(model);
    setup.microbatches = {microbatch};
    auto input = setup.input(setup.cut("dip"));
    input.name = "step";
    return require_step(build_step(input));
}

// Two samples of 1000 and 500 tokens, one image of 300 tokens in the second.
workloads::Microbatch two_samples() {
    workloads::Microbatch microbatch;
    microbatch.samples = {4, 7};
    microbatch.lengths = {1000, 500};
    microbatch.tokens = microbatch.loss_tokens = 1500;
    microbatch.items = {{7, 0, {workloads::Modality::image, 300, 1200, 0, false}, 500}};
    return microbatch;
}

}  // namespace

TEST_CASE("an added cross-attention layer has queries of its positions, and keys of the images alone") {
    const PassShape shape{{1024, 256}, {1600, 960}};
    const Layout layout{.tp = 2};
    const auto found = queries<costdb::Gemm>(layer_operators(llama(), shape, layout, PassKind::forward, 3));

    REQUIRE(found.size() == 5);
    CHECK((found[0].m == 1280 && found[0].n == 4096 / 2 && found[0].k == 4096));            // query
    CHECK((found[1].m == 2560 && found[1].n == 2 * 8 * 128 / 2 && found[1].k == 4096));     // keys and values
    CHECK((found[2].m == 1280 && found[2].n == 4096 && found[2].k == 4096 / 2));            // output
    CHECK((found[3].m == 1280 && found[3].n == 2 * 14336 / 2 && found[4].k == 14336 / 2));  // feed-forward
    const auto attention = queries<PackedAttention>(layer_operators(llama(), shape, layout, PassKind::forward, 3));
    REQUIRE(attention.size() == 1);
    CHECK((attention[0].lengths == shape.lengths && attention[0].keys == shape.context));
    CHECK((!attention[0].shape.causal && attention[0].shape.q_heads == 16 && attention[0].shape.kv_heads == 4));
}

TEST_CASE("the other layers of such a network are as if there were no images") {
    const PassShape with{{1024}, {1600}}, without{{1024}};
    const auto some = queries<costdb::Gemm>(layer_operators(llama(), with, {}, PassKind::backward, 0));
    const auto same = queries<costdb::Gemm>(layer_operators(llama(), without, {}, PassKind::backward, 0));
    REQUIRE(some.size() == same.size());
    for (std::size_t i = 0; i < some.size(); ++i)
        CHECK((some[i].m == same[i].m && some[i].n == same[i].n && some[i].k == same[i].k));
    CHECK(queries<PackedAttention>(layer_operators(llama(), with, {}, PassKind::forward, 0)).front().keys.empty());
}

TEST_CASE("a sample's added cross attention reads its images, or an assumed one where it has none") {
    auto module = workloads::model("llama-3.2-11b-vision-llm").modules.front();
    auto microbatch = two_samples();
    CHECK(partition::shape_in(module, microbatch, 0, 1).context == std::vector<std::int64_t>{image_positions, 300});
    microbatch.lengths.push_back(548);  // padding
    CHECK(partition::shape_in(module, microbatch, 0, 1).context == std::vector<std::int64_t>{image_positions, 300, 0});
}

TEST_CASE("an added cross-attention layer keeps no keys of its own positions but those of the images") {
    const std::int64_t m = 1024, images = 1600, h = 4096, queries = 4096, keys = 8 * 128, ffn = 14336;
    CHECK(workloads::layer_activations(llama(), 3, m, images, 1) ==
          Bytes{m * (8 * h + 4 * queries + 6 * ffn) + images * 4 * keys});
    CHECK(workloads::layer_activations(llama(), 0, m, images, 1) ==
          Bytes{m * (8 * h + 2 * (queries + 2 * keys) + 2 * queries + 6 * ffn)});
    const auto needs = workloads::weight_gradient_needs(llama(), 3, m, images, 1);
    CHECK(needs.inputs == Bytes{m * (4 * h + 2 * queries + 2 * ffn)});
    CHECK(needs.gradients == Bytes{m * (2 * queries + 4 * ffn) + images * 4 * keys + m * 4 * h});
}

TEST_CASE("images travel with the activations of a network that attends to them") {
    const auto step = step_of("llama-3.2-11b-vision-llm", two_samples());
    REQUIRE(!step.transfers.empty());
    CHECK(step.transfers.front().rows == 1500 + image_positions + 300);
    CHECK(step.model_flops > 0);
}

TEST_CASE("a head's block is a modulation and a plain feed-forward, for every position") {
    const std::int64_t h = 1536;
    const auto operators = layer_operators(fm_head(), {{1000}}, {.tp = 2}, PassKind::forward);
    const auto found = queries<costdb::Gemm>(operators);
    REQUIRE(found.size() == 3);
    CHECK((found[0].m == 1024 && found[0].n == 3 * h / 2 && found[0].k == h));
    CHECK((found[1].m == 1024 && found[1].n == h / 2 && found[1].k == h));
    CHECK((found[2].m == 1024 && found[2].n == h && found[2].k == h / 2));
    CHECK(queries<PackedAttention>(operators).empty());
    const auto collectives = queries<costdb::Collective>(operators);
    REQUIRE(collectives.size() == 4);
    CHECK((collectives[0].kind == costdb::CollectiveKind::all_gather && collectives[0].message == Bytes{2 * 1024 * h}));
    CHECK((collectives[1].kind == costdb::CollectiveKind::all_to_all &&
           collectives[1].message == Bytes{2 * 1024 * 3 * h / 2}));
}

TEST_CASE("a position of a head passes every one of its matrices once") {
    for (const std::int64_t tp : {1, 2}) {
        const Layout layout{.tp = tp};
        const PassShape shape{{2048}};
        const double around = testing::flops_of(head_inputs(fm_head(), shape, layout, PassKind::forward)) +
                              testing::flops_of(head_outputs(fm_head(), shape, layout, PassKind::forward));
        const double block = testing::flops_of(layer_operators(fm_head(), shape, layout, PassKind::forward));
        CHECK(static_cast<double>(tp) * (12 * block + around) ==
              doctest::Approx(2.0 * 2048 * static_cast<double>(*fm_head().params_computed)));
    }
}

TEST_CASE("what a head predicts and when are data: they get no gradient") {
    const PassShape shape{{2048}};
    CHECK(head_inputs(fm_head(), shape, {}, PassKind::input_gradient).size() == 2);
    for (const auto& op : head_inputs(fm_head(), shape, {}, PassKind::backward)) {
        const bool data = op.name == "input" || op.name == "time features";
        CHECK(std::get<costdb::Gemm>(op.query).pass == (data ? costdb::Pass::backward_weight : costdb::Pass::backward));
    }
}

TEST_CASE("a head's block keeps its condition and modulation beside both sides of the activation") {
    const std::int64_t m = 1000, h = 1536, ffn = 1536;
    CHECK(workloads::layer_activations(fm_head(), 0, m, 0, 2) == Bytes{m * (16 * h + 4 * ffn) / 2});
    CHECK(workloads::head_input(fm_head(), m, 2) == Bytes{2 * m * (5120 + 64) / 2});
    CHECK(workloads::head_input(llama(), m, 2) == Bytes{});
}

TEST_CASE("a head gets the tokens that it predicts, each as often as it passes them") {
    workloads::Microbatch microbatch = two_samples();
    microbatch.items = {{7, 0, {workloads::Modality::image, 256, 1024, 0, true}, 500}};
    const auto step = step_of("nextstep-1-14b", microbatch);
    std::size_t into_head = 0;
    for (const Transfer& transfer : step.transfers) {
        const Edge& edge = step.problem.edges[transfer.edge];
        const Task &from = step.problem.tasks[index(edge.from)], &to = step.problem.tasks[index(edge.to)];
        if (from.kind != TaskKind::forward || to.kind != TaskKind::forward || to.module != "head") continue;
        if (from.module == "llm") {
            ++into_head;
            CHECK((transfer.rows == 256 && transfer.columns == 5120));
        } else {
            CHECK((transfer.rows == 2 * 1024 && transfer.columns == 1536));
        }
    }
    CHECK(into_head == 1);
}
