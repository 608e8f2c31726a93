// Which layouts divide a model, and what is said of those that do not.
#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/support/small_model.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

workloads::Model with_experts(std::int64_t experts) {
    auto model = testing::small_model();
    model.modules[1].architecture.moe =
        workloads::MixtureOfExperts{.moe_layers = 8, .experts = experts, .top_k = 2, .expert_ffn = 1024};
    return model;
}

std::string message(const Layout& layout, const workloads::Model& model) {
    const auto found = conflict(layout, model);
    return found ? found->message : "";
}

}  // namespace

TEST_CASE("degrees that most layouts do without are named only where they are above one") {
    CHECK(name_of(Layout{.tp = 8, .pp = 4, .dp = 2}) == "tp 8 x pp 4 x dp 2");
    CHECK(name_of(Layout{.tp = 8, .pp = 4, .dp = 2, .cp = 2, .ep = 16}) == "tp 8 x cp 2 x pp 4 x dp 2, ep 16");
    CHECK(product_of(Layout{.tp = 8, .pp = 4, .dp = 2}) == "--tp 8 * --pp 4 * --dp 2 = 64");
    CHECK(product_of(Layout{.tp = 8, .pp = 4, .dp = 2, .cp = 2}) == "--tp 8 * --cp 2 * --pp 4 * --dp 2 = 128");
}

TEST_CASE("a layout uses the cluster's GPUs, context parallel ones included") {
    const auto model = testing::small_model();
    CHECK_NOTHROW(check(Layout{.tp = 2, .pp = 2, .cp = 2}, testing::small_cluster(8), model));
    CHECK_THROWS_WITH_AS(check(Layout{.tp = 2, .pp = 2, .cp = 2}, testing::small_cluster(4), model),
                         "--tp 2 * --cp 2 * --pp 2 * --dp 1 = 8 GPUs, the cluster 'h100-sxm' has 4", Error);
}

TEST_CASE("all-to-alls need heads for every GPU of a rank, rings do not") {
    const auto model = testing::small_model();  // 8 heads and 16
    CHECK(message({.tp = 4, .cp = 2}, model).empty());
    CHECK(message({.tp = 4, .cp = 4}, model) ==
          "--cp: tp 4 * cp 4 = 16 does not divide the 8 attention heads of module 'vit'; the next smaller that does "
          "those of every module is --cp 2, and --context ring takes any");
    CHECK(message({.tp = 4, .cp = 3, .context = ContextParallel::ring}, model).empty());
    CHECK(message({.tp = 1, .cp = 3}, model).find("is --cp 2, and") != std::string::npos);
}

TEST_CASE("experts are shared out whole, among the GPUs of a pipeline rank") {
    const auto model = with_experts(12);
    CHECK(message({.tp = 2, .dp = 2, .ep = 4}, model).empty());
    CHECK(message({.tp = 2, .dp = 4, .ep = 8}, model) ==
          "--ep: 8 does not divide the 12 experts of module 'llm'; the next smaller that divides those of every module "
          "and the 8 GPUs of a pipeline rank is 4");
    CHECK(message({.tp = 2, .dp = 2, .ep = 3}, model) ==
          "--ep: 3 does not divide the tp 2 * cp 1 * dp 2 = 4 GPUs of a pipeline rank; the next smaller that divides "
          "them and the experts of every module is 2");
    CHECK(message({.tp = 2, .dp = 2, .ep = 2}, testing::small_model()) ==
          "--ep: 2 GPUs have nothing to share out: the model 'small' has no experts; allowed is 1");
}

TEST_CASE("groups of GPUs that an expert is split over share out experts") {
    const auto model = with_experts(12);
    const auto found = [&](const Layout& layout, std::int64_t gpus_of_expert) {
        const auto conflicting = conflict(layout, model, gpus_of_expert);
        return conflicting ? conflicting->message : std::string();
    };
    CHECK(found({.tp = 2, .dp = 4, .ep = 4}, 2).empty());
    CHECK(found({.tp = 2, .dp = 2, .ep = 4}, 2) ==
          "--ep: 4 times the 2 GPUs of an expert does not divide the tp 2 * cp 1 * dp 2 = 4 GPUs of a pipeline rank; "
          "the next smaller that divides them and the experts of every module is 2");
    CHECK(found({.tp = 2, .dp = 2}, 3)
              .find("experts.tensor_parallel: 3 does not divide the tp 2 * cp 1 * dp 2 = 4 "
                    "GPUs") != std::string::npos);
    CHECK(found({.dp = 2048}, 2048).find("divide the 1024 columns of an expert of module 'llm'") != std::string::npos);
    CHECK_FALSE(conflict({.tp = 2, .dp = 2}, testing::small_model(), 3));
    CHECK(default_ep({.tp = 8}, model, 2) == 4);
    CHECK(default_ep({.tp = 8}, model, 8) == 1);
    CHECK(default_ep({.tp = 2}, model, 4) == 1);
}

TEST_CASE("by default as many GPUs of a rank share out experts as divide them") {
    CHECK(default_ep({.tp = 8}, testing::small_model()) == 1);
    CHECK(default_ep({.tp = 8}, with_experts(12)) == 4);
    CHECK(default_ep({.tp = 2, .dp = 16, .cp = 3}, with_experts(12)) == 6);
    auto two = with_experts(12);
    two.modules[0].architecture.moe = workloads::MixtureOfExperts{.moe_layers = 6, .experts = 8};
    CHECK(default_ep({.tp = 8}, two) == 4);
}
