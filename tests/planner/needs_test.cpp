#include "pipeweaver/planner/needs.hpp"

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using namespace pipeweaver::testing;

namespace {

/// Two ranks of one GPU each; the text of every microbatch is one sequence, and items of equal length.
Request alone() {
    auto request = small_request(1, {2, 2, 2, 2});
    change_setup(request, [](emulator::Setup& setup) {
        setup.cluster = small_cluster(2);
        setup.layout = {.tp = 1, .pp = 2, .dp = 1};
    });
    return request;
}

/// A database that holds each need, in microseconds that differ from one to the next.
costdb::CostDatabase measured(const std::vector<Need>& needs) {
    costdb::Measurements points;
    points.device = "h100_sxm";
    std::int64_t ns = 100'000;
    for (const Need& need : needs) {
        ns += 1'000;
        if (const auto* gemm = std::get_if<costdb::Gemm>(&need.question))
            points.gemm.push_back({gemm->dtype, gemm->pass, gemm->m, gemm->n, gemm->k, ns, 0, 0});
        if (const auto* a = std::get_if<costdb::Attention>(&need.question))
            points.attention.push_back(
                {a->dtype, a->pass, a->batch, a->seq_len, a->q_heads, a->kv_heads, a->head_dim, a->causal, ns, 0, 0});
        if (const auto* e = std::get_if<costdb::Elementwise>(&need.question))
            points.elementwise.push_back({e->kind, e->pass, e->traffic.count, ns, 0, 0});
    }
    return costdb::CostDatabase::from(std::move(points));
}

const Need* find(const std::vector<Need>& needs, const costdb::Gemm& gemm) {
    for (const Need& need : needs)
        if (const auto* one = std::get_if<costdb::Gemm>(&need.question))
            if (one->m == gemm.m && one->n == gemm.n && one->k == gemm.k && one->pass == gemm.pass) return &need;
    return nullptr;
}

}  // namespace

TEST_CASE("a step asks for each operator once, as often as it runs") {
    auto request = alone();
    request.job.partition = "megatron";

    const auto all = needs(request.job, request.batch);

    // 4 microbatches of 1024 + 2 * 64 tokens pass 8 layers; two images of 256 patches pass 6.
    const costdb::Gemm down{.m = 1152, .n = 2048, .k = 8192};
    REQUIRE(find(all, down));
    CHECK(find(all, down)->times == 4 * 8);
    auto weight = down;
    weight.pass = costdb::Pass::backward_weight;
    REQUIRE(find(all, weight));
    CHECK(find(all, weight)->times == 4 * 8);
    auto both = down;
    both.pass = costdb::Pass::backward;
    CHECK(find(all, both) == nullptr);
    const costdb::Gemm vision{.m = 512, .n = 4096, .k = 1024};
    REQUIRE(find(all, vision));
    CHECK(find(all, vision)->times == 4 * 6);
    const costdb::Gemm head{.m = 1152, .n = 32000, .k = 2048};
    REQUIRE(find(all, head));
    CHECK(find(all, head)->times == 4);
    double sum = 0;
    for (const Need& need : all) sum += need.share;
    CHECK(sum == doctest::Approx(1));
    CHECK(std::is_sorted(all.begin(), all.end(), [](const Need& a, const Need& b) { return a.share > b.share; }));
}

TEST_CASE("an encoder dealt over all GPUs is asked for, too, an item at a time") {
    auto request = alone();
    request.job.partition = "three-phase";

    const auto all = needs(request.job, request.batch);

    costdb::Gemm vision{.m = 256, .n = 4096, .k = 1024};
    REQUIRE(find(all, vision));
    CHECK(find(all, vision)->times == 4 * 2 * 6);
    vision.pass = costdb::Pass::backward_weight;
    REQUIRE(find(all, vision));
    CHECK(find(all, vision)->times == 4 * 2 * 6);
}

TEST_CASE("a plan whose needs were all measured rests on measurements alone") {
    auto request = alone();
    request.job.partition = "megatron";  // cut by parameters: the costs do not move it
    const auto costs = std::make_shared<const costdb::CostDatabase>(measured(needs(request.job, request.batch)));
    change_setup(request, [&](emulator::Setup& setup) { setup.costs = costs; });

    const auto plan = planned(request);

    for (const Need& need : needs(request.job, request.batch))
        CHECK((need.question.index() == 3 || need.cost.basis == costdb::Basis::exact));
    CHECK(plan.shares.of(costdb::Basis::exact) == doctest::Approx(1));
}

TEST_CASE("needs are tables that an import takes once the latency is filled in") {
    auto request = alone();
    change_setup(request, [](emulator::Setup& setup) { setup.layout = {.tp = 2, .pp = 1, .dp = 1}; });

    const auto files = emit::needs_files(needs(request.job, request.batch), "n");

    std::map<std::string, std::string> tables;
    for (const auto& file : files) tables[file.path.filename().string()] = file.content;
    CHECK(tables.at("gemm.csv").starts_with("dtype,m,n,k,pass,times,share_percent,estimate_us,basis\nbf16,"));
    CHECK(tables.at("attention.csv").find("\nbf16,2,256,4,4,128,0,backward,") != std::string::npos);
    CHECK(tables.at("elementwise.csv").find("\ncross_entropy,forward,") != std::string::npos);
    CHECK(tables.at("collectives.csv").find("\nall_gather,bf16,2,2,") != std::string::npos);
}
