#include "pipeweaver/costdb/database.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "tests/costdb/fixtures.hpp"
#include "tests/costdb/leave_out.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

// Roofline of H100 in bf16 at m = n = k = 1024: 2 us + 2 * 2^30 / 989e6 us = 4.1714 us; the traffic, 6 MiB, takes 1.88.
constexpr double base_1024_us = 2 + 2 * 1073741824. / 989e6;

// Rows of one (n,k) line at 2 and 3 times the base.
Measurements one_line() {
    Measurements points;
    points.device = "h100_sxm";
    points.gemm = {{Dtype::bf16, Pass::forward, 1024, 1024, 1024, 8343},
                   {Dtype::bf16, Pass::forward, 4096, 1024, 1024, 32055}};
    return points;
}

bool same(const Cost& a, const Cost& b) {
    return a.duration == b.duration && a.basis == b.basis && a.error_percent == b.error_percent;
}

template <class Point>
void check_exact(const CostDatabase& database, const std::vector<Point>& points) {
    std::size_t wrong = 0;
    for (const auto& point : points) {
        const auto answer = database.cost(query_of(point));
        wrong += answer.basis != Basis::exact || answer.duration.count() != point.latency_ns ? 1 : 0;
    }
    CHECK(points.size() > 0);
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a measured shape costs what was measured") {
    for (const auto* database : {&a100(), &h100(), &h200()}) {
        check_exact(*database, database->measurements().gemm);
        check_exact(*database, database->measurements().attention);
    }
    check_exact(h100(), h100().measurements().moe);
    const auto b200 = CostDatabase::embedded("B200");
    check_exact(b200, b200.measurements().gemm);
    check_exact(b200, b200.measurements().attention);
}

TEST_CASE("threads that are the first to ask for a table, all at once, are told what one is told") {
    const auto device = CostDatabase::embedded("a100_sxm");
    std::vector<char> alike(64);
    const auto ask = [&](std::size_t i, const auto& query) {
        alike[i] = same(device.cost(query), a100().cost(query)) ? 1 : 0;
    };
    run_jobs(on_own_threads(8), alike.size(), [&](std::size_t i) {
        const auto size = static_cast<std::int64_t>(200 * (1 + i / 2));
        if (i % 2 == 0)
            ask(i, Gemm{.m = size, .n = 4096, .k = 4096});
        else
            ask(i, Attention{.seq_len = size, .q_heads = 32, .kv_heads = 8, .head_dim = 128});
    });
    CHECK(std::count(alike.begin(), alike.end(), 1) == 64);
}

TEST_CASE("a known row of the H100 table is answered to the nanosecond") {
    const auto cost = h100().cost(Gemm{.m = 32768, .n = 65536, .k = 12288});

    CHECK(cost.duration == Duration{60'324'042});
    CHECK(cost.basis == Basis::exact);
}

TEST_CASE("between two m the ratio to the roofline is interpolated in the logarithm") {
    const auto database = CostDatabase::from(one_line());

    const auto middle = database.cost(Gemm{.m = 2048, .n = 1024, .k = 1024});

    // Ratios 2.0000 at 1024 and 3.0000 at 4096 (base 10.6851 us); their geometric mean, sqrt 6, at 2048, where the base
    // is 2 + 4.3427 us: 15.537 us.
    CHECK(base_1024_us == doctest::Approx(4.1714).epsilon(1e-4));
    CHECK(static_cast<double>(middle.duration.count()) == doctest::Approx(15'537).epsilon(1e-3));
    CHECK(middle.basis == Basis::interpolated);
    CHECK(middle.error_percent > 5);
}

TEST_CASE("above the largest m the time grows with m, and says that it is extrapolated") {
    const auto database = CostDatabase::from(one_line());

    const auto cost = database.cost(Gemm{.m = 8192, .n = 1024, .k = 1024});

    CHECK(static_cast<double>(cost.duration.count()) == doctest::Approx(2 * 32'055));
    CHECK(cost.basis == Basis::extrapolated);
}

TEST_CASE("an m that is not a multiple of 16 does not lean on those that are") {
    auto points = one_line();
    points.gemm.push_back({Dtype::bf16, Pass::forward, 1025, 1024, 1024, 16'686});  // twice as slow
    const auto database = CostDatabase::from(points);

    const auto odd = database.cost(Gemm{.m = 1031, .n = 1024, .k = 1024});
    const auto even = database.cost(Gemm{.m = 1040, .n = 1024, .k = 1024});

    CHECK(odd.duration.count() > 16'000);
    CHECK(even.duration.count() < 9'000);
}

TEST_CASE("the backward passes of a GEMM are the forward times the measured ratios, and never exact") {
    const Gemm forward{.m = 8192, .n = 4096, .k = 4096};
    const auto pass = [&](const CostDatabase& database, Pass which) {
        auto query = forward;
        query.pass = which;
        return database.cost(query);
    };
    for (const auto& [database, ratio] :
         {std::pair{&a100(), 2.04}, std::pair{&h100(), 2.05}, std::pair{&h200(), 2.05}}) {
        const auto there = static_cast<double>(database->cost(forward).duration.count());
        const auto back = pass(*database, Pass::backward);
        CHECK(static_cast<double>(back.duration.count()) == doctest::Approx(ratio * there).epsilon(1e-5));
        CHECK(back.basis == Basis::interpolated);
        CHECK(pass(*database, Pass::backward_weight).duration > database->cost(forward).duration);
    }
    CHECK(pass(h100(), Pass::backward_input).duration == h100().cost(forward).duration);
}

TEST_CASE("attention backward costs 2.86 forwards on A100 and 2.7 on Hopper") {
    Attention query{.batch = 1, .seq_len = 8192, .q_heads = 32, .kv_heads = 8, .head_dim = 128};
    for (const auto& [database, ratio] : {std::pair{&a100(), 2.86}, std::pair{&h100(), 2.7}}) {
        query.pass = Pass::forward;
        const auto there = static_cast<double>(database->cost(query).duration.count());
        query.pass = Pass::backward;
        const auto back = database->cost(query);
        CHECK(static_cast<double>(back.duration.count()) == doctest::Approx(ratio * there).epsilon(1e-5));
        CHECK(back.basis != Basis::exact);
    }
}

TEST_CASE("few heads cost the backward pass of attention less than many, in forward passes") {
    const auto ratio = [](std::int64_t heads) {
        Attention query{.batch = 1, .seq_len = 2048, .q_heads = heads, .kv_heads = heads, .head_dim = 128};
        const auto there = static_cast<double>(a100().cost(query).duration.count());
        query.pass = Pass::backward;
        return static_cast<double>(a100().cost(query).duration.count()) / there;
    };
    // 8 heads of 16 blocks: 128 blocks for 108 multiprocessors.
    CHECK(ratio(8) == doctest::Approx(2.86 * std::pow(128. / 108 / 3, 0.43)).epsilon(1e-3));
    CHECK(ratio(64) == doctest::Approx(2.86).epsilon(1e-3));
}

TEST_CASE("a head size between the tables runs as the next size up") {
    Attention query{.batch = 2, .seq_len = 4096, .q_heads = 16, .kv_heads = 16, .head_dim = 112};
    const auto padded = h100().cost(query);
    query.head_dim = 128;

    CHECK(padded.duration == h100().cost(query).duration);
    CHECK(padded.basis == Basis::interpolated);
}

TEST_CASE("encoder attention where only causal is measured takes twice the causal time, extrapolated") {
    Attention query{.batch = 2, .seq_len = 4096, .q_heads = 16, .kv_heads = 16, .head_dim = 128, .causal = false};
    const auto encoder = a100().cost(query);
    query.causal = true;

    CHECK(encoder.duration == 2 * a100().cost(query).duration);
    CHECK(encoder.basis == Basis::extrapolated);
}

TEST_CASE("encoder heads wider than the encoder tables grow as those of causal attention do") {
    const auto ask = [](std::int64_t seq_len, std::int64_t head_dim, bool causal) {
        return h100().cost(Attention{
            .batch = 2, .seq_len = seq_len, .q_heads = 16, .kv_heads = 16, .head_dim = head_dim, .causal = causal});
    };
    const auto ns = [&](auto... query) { return static_cast<double>(ask(query...).duration.count()); };
    // Causal heads of 80 lie between those of 64 and 128 by the logarithm of the size.
    const double t = std::log(80. / 64) / std::log(2.);
    const double causal_80 = std::pow(ns(4096, 64, true), 1 - t) * std::pow(ns(4096, 128, true), t);

    CHECK(ask(4096, 128, false).basis == Basis::extrapolated);
    CHECK(ns(4096, 128, false) == doctest::Approx(ns(4096, 80, false) * ns(4096, 128, true) / causal_80).epsilon(1e-3));
    CHECK(ns(16, 128, false) < 1.2 * ns(16, 80, false));  // a launch is not doubled
    CHECK(ns(16, 128, false) >= ns(16, 80, false));
}

TEST_CASE("a head far narrower than any measured costs less than the measured one, and more than its share") {
    Attention query{.batch = 2, .seq_len = 4096, .q_heads = 32, .kv_heads = 32, .head_dim = 128};
    const auto wide = a100().cost(query).duration;
    query.head_dim = 64;
    const auto narrow = a100().cost(query);

    CHECK(narrow.duration < 0.75 * wide);
    CHECK(narrow.duration > 0.5 * wide);
    CHECK(narrow.basis == Basis::extrapolated);
}

TEST_CASE("wide heads that were measured with few key heads cost no more than their products with many") {
    // One head alone was measured with keys of its own, and 64 on 4 key heads: 642 us of 192 on H100, 592 of 128.
    // Products are 1.5 times as many, and twice where 192 run as 256.
    const auto of = [](const CostDatabase& database, std::int64_t heads, std::int64_t head_dim) {
        const Attention query{.seq_len = 4096, .q_heads = heads, .kv_heads = heads, .head_dim = head_dim};
        return static_cast<double>(database.cost(query).duration.count());
    };
    const auto gb200 = CostDatabase::embedded("gb200");
    for (const std::int64_t heads : {4, 16, 64, 128}) {
        CAPTURE(heads);
        CHECK(of(h100(), heads, 192) > of(h100(), heads, 128));
        CHECK(of(h100(), heads, 192) < 1.55 * of(h100(), heads, 128));
        CHECK(of(gb200, heads, 192) < 2.1 * of(gb200, heads, 128));
    }
    CHECK(of(h100(), 1, 256) == doctest::Approx(51'440).epsilon(1e-3));
}

TEST_CASE("a number of key heads that was not measured lies between those that were") {
    Attention query{.batch = 1, .seq_len = 4096, .q_heads = 64, .kv_heads = 16, .head_dim = 128};
    const auto sixteen = h100().cost(query);
    query.kv_heads = 8;
    const auto eight = h100().cost(query);
    query.kv_heads = 64;
    const auto all = h100().cost(query);

    CHECK(sixteen.basis == Basis::interpolated);
    CHECK(sixteen.duration >= std::min(eight.duration, all.duration));
    CHECK(sixteen.duration <= std::max(eight.duration, all.duration));
}

TEST_CASE("an exact answer is as wrong as its repetitions were apart, and no less than 4 percent") {
    auto points = one_line();
    points.gemm[0].spread_permille = 73;
    points.gemm[1].spread_permille = 4;
    const auto database = CostDatabase::from(points);

    CHECK(database.cost(Gemm{.m = 1024, .n = 1024, .k = 1024}).error_percent == doctest::Approx(7.3));
    CHECK(database.cost(Gemm{.m = 4096, .n = 1024, .k = 1024}).error_percent == doctest::Approx(4));
}

TEST_CASE("packed sequences of equal length cost exactly what the padded batch does") {
    const Attention shape{.q_heads = 32, .kv_heads = 8, .head_dim = 128};
    for (const auto& [count, length] : {std::pair{4, 2048}, std::pair{7, 1000}, std::pair{1, 8192}}) {
        auto padded = shape;
        padded.batch = count;
        padded.seq_len = length;
        const std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), length);
        CHECK(same(h100().packed_attention(shape, {lengths}), h100().cost(padded)));
    }
}

namespace {

using Lengths = std::vector<std::int64_t>;

double packed_ns(const Attention& shape, const Lengths& lengths, const Lengths& keys = {},
                 std::optional<std::int64_t> window = {}) {
    return static_cast<double>(h100().packed_attention(shape, {lengths, keys, window}).duration.count());
}

std::string packed_refusal(const Attention& shape, const Lengths& lengths, const Lengths& keys = {},
                           std::optional<std::int64_t> window = {}) {
    try {
        static_cast<void>(h100().packed_attention(shape, {lengths, keys, window}));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("packed sequences cost less than one long sequence and more than the longest alone") {
    const Attention shape{.q_heads = 32, .kv_heads = 8, .head_dim = 128};
    const Lengths lengths{6000, 1500, 692};

    CHECK(packed_ns(shape, lengths) < packed_ns(shape, {8192}));
    CHECK(packed_ns(shape, lengths) > packed_ns(shape, {6000}));
    CHECK(h100().packed_attention(shape, {lengths}).basis == Basis::interpolated);
}

TEST_CASE("attention to other keys costs what equal sequences with as many scores and positions do") {
    const Attention shape{.q_heads = 16, .kv_heads = 16, .head_dim = 128, .causal = false};
    // 3072 positions on 1024 keys: (3072 + 1024) / 2 = 2048 positions, 3145728 scores: sequences of 1536, 1.33 of them.
    auto equal = shape;
    equal.seq_len = 1536;
    equal.batch = 1;
    const auto answer = h100().packed_attention(shape, {Lengths{3072}, Lengths{1024}});

    const double scale = 3072. * 1024. / (1536. * 1536.);
    CHECK(static_cast<double>(answer.duration.count()) ==
          doctest::Approx(scale * static_cast<double>(h100().cost(equal).duration.count())).epsilon(1e-5));
    CHECK(answer.basis == Basis::extrapolated);
    CHECK(answer.error_percent >= 32);
    CHECK(packed_ns(shape, {3072}, {3072}) == packed_ns(shape, {3072}));  // its own keys, said the long way
}

TEST_CASE("attention of few queries to many keys costs what that of many to few does") {
    const Attention shape{.q_heads = 16, .kv_heads = 16, .head_dim = 128, .causal = false};
    CHECK(packed_ns(shape, {1024}, {3072}) == packed_ns(shape, {3072}, {1024}));
    CHECK(packed_ns(shape, {100}, {6000}) == packed_ns(shape, {6000}, {100}));

    // 100 x 6000 scores, (100 + 6000) / 2 = 3050 positions: sequences of 600000 / 3050 = 197, of which 15 have 2955.
    auto equal = shape;
    equal.seq_len = 197;
    equal.batch = 15;
    const double scale = 100. * 6000. / (15. * 197. * 197.);
    CHECK(packed_ns(shape, {100}, {6000}) ==
          doctest::Approx(scale * static_cast<double>(h100().cost(equal).duration.count())).epsilon(1e-4));
}

TEST_CASE("a window that holds all keys changes nothing, and a smaller one costs less") {
    for (const bool causal : {true, false}) {
        const Attention shape{.q_heads = 32, .kv_heads = 8, .head_dim = 128, .causal = causal};
        const Lengths lengths{8192, 4096};
        const double whole = packed_ns(shape, lengths);
        CHECK(packed_ns(shape, lengths, {}, 8192) == whole);
        double last = whole;
        for (const std::int64_t window : {4096, 2048, 512}) {
            const double cost = packed_ns(shape, lengths, {}, window);
            CHECK(cost < last);
            last = cost;
        }
        CHECK(last < whole / 3);
    }
}

TEST_CASE("the last positions of a causal sequence cost what the whole one does more than the first") {
    // Half of the positions see all keys of the first half: 3/4 of the scores.
    const Attention shape{.q_heads = 32, .kv_heads = 32, .head_dim = 128};
    const double share = packed_ns(shape, {8192}, {16384}) / packed_ns(shape, {16384});

    CHECK(share == doctest::Approx(0.75).epsilon(0.1));
}

TEST_CASE("sequences that cannot be are refused by name") {
    const Attention shape{.q_heads = 8, .kv_heads = 8, .head_dim = 128};

    CHECK(packed_refusal(shape, {}) == "lengths: are none, at least one is needed");
    CHECK(packed_refusal(shape, {5, 0}) == "length: is 0, must be a whole number from 1 to 4294967296");
    CHECK(packed_refusal(shape, {5, 6}, {5}) == "keys: are 1, as many as lengths are needed, 2");
    CHECK(packed_refusal(shape, {5}, {4}) == "keys: are 4, causal attention of 5 positions needs as many at least");
    CHECK(packed_refusal(shape, {5}, {}, 0).starts_with("window: is 0"));
}

TEST_CASE("more work costs more: GEMM over m, n, k doublings and collectives over the message") {
    for (const auto* database : {&a100(), &h100(), &h200()}) {
        auto last = Duration{0};
        for (std::int64_t m = 512; m <= 65'536; m *= 2) {
            const auto cost = database->cost(Gemm{.m = m, .n = 5000, .k = 3000}).duration;
            CHECK(cost > last);
            last = cost;
        }
        last = Duration{0};
        for (std::int64_t bytes = 1 << 20; bytes <= std::int64_t{1} << 32; bytes *= 2) {
            const auto cost = database->cost(Collective{.gpus = 8, .message = Bytes{bytes}}).duration;
            CHECK(cost > last);
            last = cost;
        }
    }
}

TEST_CASE("collectives say where their times come from") {
    const auto ask = [](std::int64_t gpus, std::int64_t gpus_per_node, std::int64_t bytes) {
        return a100().cost(Collective{.gpus = gpus, .gpus_per_node = gpus_per_node, .message = Bytes{bytes}});
    };
    CHECK(ask(8, 8, 1 << 20).duration == Duration{38'850});
    CHECK(ask(8, 8, 1 << 20).basis == Basis::exact);
    CHECK(ask(8, 8, 1'500'000).basis == Basis::interpolated);
    CHECK(ask(8, 8, std::int64_t{1} << 34).basis == Basis::extrapolated);
    CHECK(ask(16, 8, 10'000'000).basis == Basis::interpolated);  // measured across two nodes
    CHECK(ask(64, 8, 10'000'000).basis == Basis::modelled);
    CHECK(ask(64, 8, 1 << 26).duration > ask(8, 8, 1 << 26).duration);
}

TEST_CASE("across nodes pieces cross the network while others move inside the nodes, but on Ampere") {
    const auto ms = [](const CostDatabase& costs, CollectiveKind kind, std::int64_t gpus) {
        const Collective query{.kind = kind, .gpus = gpus, .message = 4_GiB, .network = Bandwidth{200'000'000'000}};
        return 1e-6 * static_cast<double>(costs.cost(query).duration.count());
    };
    const double crossing = 1e3 * 7 / 8 * 4 * 1.073741824 / 200;  // of eight nodes, at nominal speed
    CHECK(ms(h100(), CollectiveKind::all_gather, 64) == doctest::Approx(crossing / 0.9).epsilon(0.02));
    CHECK(ms(h100(), CollectiveKind::reduce_scatter, 64) == doctest::Approx(crossing / 0.9).epsilon(0.02));
    // Each of a node's eight GPUs has a message of its own.
    CHECK(ms(h100(), CollectiveKind::all_to_all, 64) == doctest::Approx(8 * crossing / 0.72).epsilon(0.02));
    const double inside = ms(a100(), CollectiveKind::all_gather, 8);
    CHECK(ms(a100(), CollectiveKind::all_gather, 64) == doctest::Approx(inside + crossing / 0.76).epsilon(0.02));
}

TEST_CASE("a faster network between nodes makes what crosses it faster, and nothing else") {
    const auto ask = [](std::int64_t gpus, std::int64_t bytes_per_s) {
        return h100().cost(Collective{.gpus = gpus, .message = 1_GiB, .network = Bandwidth{bytes_per_s}}).duration;
    };
    CHECK(ask(64, 400'000'000'000) < ask(64, 50'000'000'000));
    CHECK(ask(8, 400'000'000'000) == ask(8, 50'000'000'000));
    // H100's transfers were measured with 50 GB/s a GPU; half of that is 1 / 0.8 / 25 - 1 / 0.8 / 50 more.
    const auto transfer = [](std::int64_t bytes_per_s) {
        return h100().cost(PointToPoint{.message = Bytes{1'000'000'000}, .network = Bandwidth{bytes_per_s}}).duration;
    };
    CHECK(transfer(50'000'000'000) == transfer(0));
    CHECK((transfer(25'000'000'000) - transfer(0)).count() == 25'000'000);
    CHECK(transfer(100'000'000'000) < transfer(0));
}

TEST_CASE("a link of another speed moves the bytes of each GPU at that speed, and leaves the start-up") {
    const auto gather = [](const CostDatabase& costs, std::int64_t bytes, std::int64_t link) {
        return costs
            .cost(Collective{
                .kind = CollectiveKind::all_gather, .gpus = 8, .message = Bytes{bytes}, .node_link = Bandwidth{link}})
            .duration;
    };
    const std::int64_t own = 450'000'000'000, bytes = 64'000'000;
    CHECK(gather(h100(), bytes, own) == gather(h100(), bytes, 0));
    // 7/8 of the message leaves each GPU, at 0.8 of the link.
    const auto half = gather(h100(), bytes, own / 2) - gather(h100(), bytes, 0);
    CHECK(half.count() == doctest::Approx(56e6 / 0.8 / 450).epsilon(0.001));
    CHECK(gather(h100(), 1000, own / 2) - gather(h100(), 1000, 0) < Duration{3});
    // H800 is H100 with links of 200 GB/s: nothing else was measured of it.
    const auto h800 = CostDatabase::embedded("h800_sxm");
    CHECK(gather(h800, bytes, 0) == gather(h100(), bytes, 200'000'000'000));
    CHECK(h800.measurements().collectives_of == "h100_sxm");
}

TEST_CASE("H200 has no transfer table and says that it extrapolates from H100's") {
    const PointToPoint query{.gpus_per_node = 2, .message = Bytes{10'000'000}};

    CHECK(h200().cost(query).duration == h100().cost(query).duration);
    CHECK(h200().cost(query).basis == Basis::extrapolated);
    CHECK(h200().measurements().links_of == "h100_sxm");
}

TEST_CASE("one wild point of a transfer sweep is not believed") {
    Measurements points;
    points.device = "h100_sxm";
    for (std::int64_t i = 1; i <= 20; ++i) points.point_to_point.push_back({1, 1000 * i, 100 * i});
    points.point_to_point[9].latency_ns = 5000;
    const auto database = CostDatabase::from(points);

    const auto cost = database.cost(PointToPoint{.message = Bytes{10'000}});

    CHECK(cost.duration.count() == doctest::Approx(1000).epsilon(0.01));
    CHECK(cost.basis == Basis::interpolated);
}

TEST_CASE("what no table holds is modelled") {
    const auto h20 = CostDatabase::embedded("H20");
    CHECK(h20.measurements().gemm.empty());
    CHECK(h20.cost(Gemm{.m = 4096, .n = 4096, .k = 4096}).basis == Basis::modelled);
    CHECK(h20.cost(Gemm{.m = 4096, .n = 4096, .k = 4096}).duration >
          h100().cost(Gemm{.m = 4096, .n = 4096, .k = 4096}).duration);
    CHECK(h100().cost(Elementwise{Bytes{2'680'000'000}}).duration == Duration{1'000'000});  // 0.8 * 3.35 TB/s
    CHECK(
        a100().cost(MixtureOfExperts{.tokens = 4096, .hidden = 4096, .ffn = 1536, .top_k = 8, .experts = 128}).basis ==
        Basis::modelled);
}

TEST_CASE("devices answer to their aliases, and an unknown one is named with the nearest") {
    CHECK(CostDatabase::embedded("A100-80GB-SXM").device() == "a100_sxm");
    CHECK(CostDatabase::embedded("H100").device() == "h100_sxm");
    CHECK_THROWS_WITH_AS(static_cast<void>(CostDatabase::embedded("h100-sxn")),
                         "unknown device 'h100-sxn'; did you mean 'h100_sxm'?", Error);
}

TEST_CASE("impossible queries are refused, each by name") {
    CHECK_THROWS_WITH_AS(static_cast<void>(h100().cost(Gemm{.m = 0, .n = 1, .k = 1})),
                         "m: is 0, must be a whole number from 1 to 4294967296", Error);
    CHECK_THROWS_AS(static_cast<void>(h100().cost(Gemm{.m = 1, .n = -4, .k = 1})), Error);
    CHECK_THROWS_AS(static_cast<void>(h100().cost(Gemm{.m = 1LL << 32, .n = 1LL << 32, .k = 1LL << 32})), Error);
    CHECK_THROWS_AS(static_cast<void>(h100().cost(Gemm{.m = 1LL << 30, .n = 1, .k = 1, .batch = 1LL << 30})), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(a100().cost(Gemm{.dtype = Dtype::fp8, .m = 1, .n = 1, .k = 1})),
                         "dtype: fp8 is not supported by a100_sxm, allowed is bf16", Error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(h100().cost(Attention{.seq_len = 1, .q_heads = 8, .kv_heads = 3, .head_dim = 64})),
        "kv_heads: is 3, must be a divisor of q_heads, which is 8", Error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(h100().cost(
            Attention{.seq_len = 1, .q_heads = 8, .kv_heads = 8, .head_dim = 64, .pass = Pass::backward_weight})),
        "pass: attention has no backward_weight, allowed are forward and backward", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(h100().cost(Collective{.gpus = 1, .message = Bytes{1}})),
                         "gpus: is 1, a collective needs at least 2", Error);
    CHECK_THROWS_AS(static_cast<void>(h100().cost(PointToPoint{.message = Bytes{0}})), Error);
    CHECK_THROWS_AS(static_cast<void>(h100().cost(Elementwise{Bytes{0}})), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(h100().cost(MixtureOfExperts{
                             .tokens = 1, .hidden = 1, .ffn = 1, .top_k = 1, .experts = 8, .routing = "balancd"})),
                         "unknown routing 'balancd'; did you mean 'balanced'?", Error);
}

// SimuMax measured B200's attention with one sequence alone, of 4,096 positions and more. How far a kernel is from its
// base follows from its blocks: 8 sequences of 4 heads are as 32 heads, 8 of 2,048 positions and 8 heads as 32 of
// 4,096.
TEST_CASE("where one batch size was measured, a batch is as many more heads") {
    Measurements few_shapes = CostDatabase::embedded("b200").measurements();
    std::erase_if(few_shapes.attention, [&](const AttentionPoint& p) {
        return few_shapes.origins[static_cast<std::size_t>(p.origin)].origin != "MooreThreads/SimuMax system files";
    });
    const auto b200 = CostDatabase::from(std::move(few_shapes));
    const auto of = [&](std::int64_t batch, std::int64_t seq_len, std::int64_t heads) {
        return b200
            .cost(
                Attention{.batch = batch, .seq_len = seq_len, .q_heads = heads, .kv_heads = heads / 4, .head_dim = 128})
            .duration.count();
    };
    const std::int64_t few = of(1, 4096, 4), many = of(1, 4096, 32);
    CHECK(many < 2 * few);  // as measured: few blocks leave most of the device idle
    CHECK(of(8, 4096, 4) == many);
    // A quarter of the work of 64 heads of 4,096 positions with as many blocks as 32 of them.
    CHECK(of(8, 2048, 8) > many / 3);
    CHECK(of(8, 2048, 8) < many);
    // No longer than on the device before it.
    const auto encoder = [](const CostDatabase& device) {
        return device
            .cost(Attention{.batch = 8, .seq_len = 2704, .q_heads = 4, .kv_heads = 4, .head_dim = 128, .causal = false})
            .duration;
    };
    CHECK(encoder(b200) < encoder(h100()));
}

// 67,108,864 bytes among 8, 7/8 of them at 900 * 0.55 GB/s = 118.63 us, 8 us and 7 times 1.5 us. All-to-alls are
// SimuMax's.
TEST_CASE("collectives of B200 without a sweep follow constants of sweeps, all-to-alls those that SimuMax measured") {
    Measurements none;
    none.device = "b200";
    const auto b200 = CostDatabase::from(std::move(none));
    const auto ns = [&](CollectiveKind kind, std::int64_t gpus, std::int64_t bytes) {
        return b200.cost(Collective{.kind = kind, .gpus = gpus, .message = Bytes{bytes}}).duration.count();
    };
    CHECK(ns(CollectiveKind::all_gather, 8, 67108864) == doctest::Approx(137125).epsilon(1e-4));
    CHECK(ns(CollectiveKind::all_to_all, 2, 1) == doctest::Approx(51057.8 + 7303.9));
}

// Four GB200 gather 65,536 bytes in 13.26 us. As a ring 64 of them take 8 + 63 * 1.5 + 0.13 us, four 8 + 3 * 1.5 + 0.1.
TEST_CASE("a gather among more GPUs than were measured is as much longer as the rings of Blackwell's sweeps") {
    const auto gb200 = CostDatabase::embedded("gb200");
    const Collective gather{
        .kind = CollectiveKind::all_gather, .gpus = 64, .gpus_per_node = 72, .message = Bytes{65536}};
    CHECK(static_cast<double>(gb200.cost(gather).duration.count()) ==
          doctest::Approx(13260 * 102.63 / 12.60).epsilon(0.005));
}
