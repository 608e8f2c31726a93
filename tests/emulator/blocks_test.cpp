// Blocks that are not all alike: windows, cross attention, two streams; by hand-worked numbers.
#include "emulator/pricing/price.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

const Layout tp4{.tp = 4, .pp = 1, .dp = 1};

bool is(const costdb::Gemm& gemm, std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm.m == m && gemm.n == n && gemm.k == k;
}

// FLOPs of one GPU's GEMMs and attentions.
double flops(const std::vector<Operator>& operators) {
    double sum = 0;
    for (const auto& gemm : queries<costdb::Gemm>(operators))
        sum += 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k);
    for (const auto& attention : queries<PackedAttention>(operators)) {
        double pairs = 0;
        for (std::size_t i = 0; i < attention.lengths.size(); ++i)
            pairs += static_cast<double>(attention.lengths[i] *
                                         (attention.keys.empty() ? attention.lengths[i] : attention.keys[i]));
        if (attention.shape.causal) pairs /= 2;
        sum += 4.0 * static_cast<double>(attention.shape.q_heads * attention.shape.head_dim) * pairs;
    }
    return sum;
}

// hidden 1024, 8 heads, ffn 4096, reads a context of width 512
workloads::Architecture cross_dit() {
    auto dit = testing::small_network(workloads::ModuleKind::diffusion_transformer, 2, 1024);
    dit.cross_attention_dim = 512;
    return dit;
}

// hidden 1024: two double and two single blocks
workloads::Architecture mmdit() {
    auto dit = testing::small_network(workloads::ModuleKind::diffusion_transformer, 4, 1024);
    dit.mmdit = true;
    dit.single_layers = 2;
    return dit;
}

}  // namespace

TEST_CASE("a diffusion transformer's block has cross attention between self attention and feed-forward") {
    const PassShape shape{{128, 256}, {64, 64}};  // 384 positions read 128
    const auto operators = layer_operators(cross_dit(), shape, tp4, PassKind::forward);

    const auto found = queries<costdb::Gemm>(operators);
    REQUIRE(found.size() == 7);
    CHECK(is(found[0], 384, 3 * 1024 / 4, 1024));  // qkv
    CHECK(is(found[1], 384, 1024, 1024 / 4));      // output
    CHECK(is(found[2], 384, 1024 / 4, 1024));      // queries
    CHECK(is(found[3], 128, 2 * 1024 / 4, 512));   // keys and values of the context
    CHECK(is(found[4], 384, 1024, 1024 / 4));      // output
    CHECK(is(found[5], 384, 4096 / 4, 1024));
    CHECK(is(found[6], 384, 1024, 4096 / 4));
    const auto attends = queries<PackedAttention>(operators);
    REQUIRE(attends.size() == 2);
    CHECK(attends[0].keys.empty());
    CHECK(attends[1].lengths == std::vector<std::int64_t>{128, 256});
    CHECK(attends[1].keys == std::vector<std::int64_t>{64, 64});
    CHECK(!attends[1].shape.causal);
}

TEST_CASE("operators of every kind of block have the FLOPs that the counts say") {
    struct Case {
        workloads::Architecture network;
        std::int64_t layer;
        PassShape shape;
        std::int64_t tp;
    };
    // Positions are whole tiles and whole windows: nothing is padded.
    const std::vector<Case> cases{
        {cross_dit(), 0, {{128, 256}, {64, 192}}, 4},
        {workloads::architecture("step-video-t2v-dit"), 47, {{1280}, {256}}, 8},
        {workloads::architecture("dip-dit-5b"), 0, {{1280, 640}, {128, 128}}, 4},
        {mmdit(), 0, {{256, 128}, {64, 64}}, 4},
        {mmdit(), 3, {{256, 128}, {64, 64}}, 4},
        {workloads::architecture("flux.1-dev"), 0, {{1024}, {512}}, 8},
        {workloads::architecture("flux.1-dev"), 56, {{1024}, {512}}, 8},
        {workloads::architecture("qwen2.5-vl-vit"), 0, {{1024, 256}, {}}, 4},
        {workloads::architecture("qwen2.5-vl-vit"), 7, {{1024, 256}, {}}, 4},
        {workloads::architecture("whisper-large-v3-encoder"), 0, {{1500, 36}, {}}, 4},
        {workloads::architecture("t5-xxl-encoder"), 0, {{512}, {}}, 8},
        {workloads::architecture("gpt3-175b"), 0, {{2048}, {}}, 8},
    };
    for (const Case& c : cases) {
        CAPTURE(c.network.name);
        CAPTURE(c.layer);
        const Layout layout{.tp = c.tp, .pp = 1, .dp = 1};
        const double one_gpu = flops(layer_operators(c.network, c.shape, layout, PassKind::forward, c.layer));
        const double expected = layer_flops(c.network, c.layer, c.shape);
        CHECK(static_cast<double>(c.tp) * one_gpu == doctest::Approx(expected).epsilon(1e-12));
    }
    // And those of the counts, by hand: 384 positions, 128 x 128 + 256 x 256 pairs; context 256, 128 x 64 + 256 x 192.
    const double h = 1024;
    CHECK(layer_flops(cross_dit(), 0, {{128, 256}, {64, 192}}) ==
          2 * 384 * (4 * h * h + 2 * h * h + 8 * h * h) + 4 * h * 81'920 + 2 * 256 * 2 * h * 512 + 4 * h * 57'344);
    // Both streams: 512 positions, 320 x 320 + 192 x 192 pairs; two samples' vectors of 6 h for each stream.
    CHECK(layer_flops(mmdit(), 0, {{256, 128}, {64, 64}}) ==
          2 * 512 * 12 * h * h + 4 * h * 139'264 + 2 * 2 * 12 * h * h);
}

TEST_CASE("windowed blocks attend inside windows, the others to all") {
    const auto& vit = workloads::architecture("qwen2.5-vl-vit");  // windows of 64, blocks 7, 15, 23, 31 full
    const PassShape shape{{150, 64}, {}};
    const auto windowed = queries<PackedAttention>(layer_operators(vit, shape, tp4, PassKind::forward, 6));
    const auto full = queries<PackedAttention>(layer_operators(vit, shape, tp4, PassKind::forward, 7));
    REQUIRE(windowed.size() == 1);
    CHECK(windowed[0].lengths == std::vector<std::int64_t>{64, 64, 22, 64});
    REQUIRE(full.size() == 1);
    CHECK(full[0].lengths == std::vector<std::int64_t>{150, 64});
}

TEST_CASE("a double-stream block has matrices for each stream, a single-stream block one pair for both") {
    const PassShape shape{{256}, {100}};  // the text is padded to 128
    const auto both = queries<costdb::Gemm>(layer_operators(mmdit(), shape, tp4, PassKind::forward, 0));
    REQUIRE(both.size() == 10);
    CHECK(is(both[0], 1, 6 * 1024 / 4, 1024));
    CHECK(is(both[1], 256, 3 * 1024 / 4, 1024));
    CHECK(is(both[2], 1, 6 * 1024 / 4, 1024));
    CHECK(is(both[3], 128, 3 * 1024 / 4, 1024));
    CHECK(is(both[9], 128, 1024, 4096 / 4));
    const auto one = queries<costdb::Gemm>(layer_operators(mmdit(), shape, tp4, PassKind::forward, 3));
    REQUIRE(one.size() == 3);
    CHECK(is(one[0], 1, 3 * 1024 / 4, 1024));
    CHECK(is(one[1], 384, (3 * 1024 + 4096) / 4, 1024));
    CHECK(is(one[2], 384, 1024, (1024 + 4096) / 4));
    CHECK(queries<PackedAttention>(layer_operators(mmdit(), shape, tp4, PassKind::forward, 3))[0].lengths ==
          std::vector<std::int64_t>{356});
}

TEST_CASE("a modulation of a block's own is a product over the samples, in one stream or two") {
    const PassShape two{{256, 128}, {100, 100}};
    auto cosmos = cross_dit();
    const double without = layer_flops(cosmos, 0, two);
    cosmos.modulation = 3 * 256 * 4 * 1024;
    CHECK(layer_flops(cosmos, 0, two) - without == 2. * 2 * 3 * 256 * 4 * 1024);
    CHECK(is(queries<costdb::Gemm>(layer_operators(cosmos, two, tp4, PassKind::forward, 0))[0], 2, 3 * 256 * 4 / 4,
             1024));
    CHECK(4 * flops(layer_operators(cosmos, two, tp4, PassKind::forward, 0)) -
              4 * flops(layer_operators(cross_dit(), two, tp4, PassKind::forward, 0)) ==
          2. * 2 * 3 * 256 * 4 * 1024);
    auto shared = mmdit();
    shared.modulation = 12 * 512 * 1024;
    const auto both = queries<costdb::Gemm>(layer_operators(shared, two, tp4, PassKind::forward, 0));
    CHECK((is(both[0], 2, 6 * 512 / 4, 1024) && is(both[2], 2, 6 * 512 / 4, 1024)));
    CHECK(is(queries<costdb::Gemm>(layer_operators(shared, two, tp4, PassKind::forward, 3))[0], 2, 12 * 512 / 4, 1024));
}

TEST_CASE("cross attention is priced with its keys, extrapolated at best") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const costdb::Attention shape{.q_heads = 12, .kv_heads = 12, .head_dim = 128, .causal = false};
    const std::vector<std::int64_t> lengths{8192}, keys{512};

    const auto cost = price({{{"cross attention", PackedAttention{shape, lengths, keys}}}}, costs, {});

    CHECK(cost.total() == costs.packed_attention(shape, {lengths, keys}).duration);
    const auto& shares = cost.shares[static_cast<std::size_t>(OperatorClass::attention)];
    CHECK(shares[static_cast<std::size_t>(costdb::Basis::exact)].time == Duration{0});
    CHECK(shares[static_cast<std::size_t>(costdb::Basis::interpolated)].time == Duration{0});
}

TEST_CASE("a diffusion transformer keeps what is modulated and gated, queries and the context's keys as well") {
    const auto dit = cross_dit();
    const std::int64_t h = 1024, f = 4096, m = 384, context = 128, tp = 4;
    const std::int64_t plain = 8 * h + 6 * h + 2 * h + 4 * f, gates = 4 * h + 4 * h, cross = 4 * h + 4 * h;

    CHECK(workloads::layer_activations(dit, 0, m, context, tp) ==
          Bytes{(m * (plain + gates + cross) + context * 4 * h) / tp});
    CHECK(workloads::context_input(dit, context, tp) == Bytes{2 * context * 512 / tp});
    CHECK(workloads::layer_activations(mmdit(), 0, m, 0, tp) == Bytes{m * (plain + gates) / tp});
    CHECK(workloads::layer_activations(mmdit(), 3, m, 0, tp) == Bytes{m * (plain + gates - 8 * h) / tp});
}

TEST_CASE("norms of queries and keys keep their inputs") {
    auto with = cross_dit();
    with.attention.qk_norm = true;
    const auto kept = [](const workloads::Architecture& network, std::int64_t m, std::int64_t context) {
        return workloads::layer_activations(network, 0, m, context, 1);
    };
    const std::int64_t h = 1024, m = 384, context = 128;  // 2 m h each: queries, keys, queries of the cross attention

    CHECK(kept(with, m, context) - kept(cross_dit(), m, context) == Bytes{m * 6 * h + context * 2 * h});
}

TEST_CASE("what selective recomputation leaves out are norms, before and after their modulation, and activations") {
    const std::int64_t h = 1024, f = 4096, m = 384;

    CHECK(workloads::recomputable_activations(cross_dit(), 0, m, 1) == Bytes{m * (10 * h + 2 * f)});
    CHECK(workloads::recomputable_activations(mmdit(), 0, m, 1) == Bytes{m * (8 * h + 2 * f)});
    CHECK(workloads::recomputable_activations(mmdit(), 3, m, 1) == Bytes{m * (4 * h + 2 * f)});
}

TEST_CASE("layers of a range are the sum of its blocks, each of its kind and context") {
    testing::SmallWorkload small(tp4);
    small.model.modules[0].architecture = workloads::architecture("qwen2.5-vl-vit");
    LayerCosts known(small);
    const PassShape shape{{4096}, {}};
    const auto windowed = known.layer(0, 6, shape, PassKind::forward).total();
    const auto full = known.layer(0, 7, shape, PassKind::forward).total();
    CHECK(windowed < full);
    CHECK(known.layer(0, 0, shape, PassKind::forward).total() == windowed);
    CHECK(known.layers({0, 0, 32}, shape, PassKind::forward).total() == 28 * windowed + 4 * full);

    small.model.modules[0].architecture = workloads::architecture("dip-dit-5b");
    LayerCosts reading(small);
    CHECK(reading.layer(0, 0, {{4096}, {512}}, PassKind::forward).total() >
          reading.layer(0, 0, {{4096}, {0}}, PassKind::forward).total());
}
