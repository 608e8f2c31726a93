// Layers of multimodal models as others measured them.
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

Setup vlm_m_on_h800(std::int64_t tp) {
    const Layout layout{.tp = tp, .pp = 4, .dp = 1};
    auto cluster = workloads::find_cluster("h800-sxm:" + std::to_string(layout.gpus()));
    auto costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded(cluster.device));
    return {workloads::model("dip-vlm-m"), std::move(cluster), layout, std::move(costs)};
}

// Forward and backward of a module's layer, in milliseconds.
double layer_ms(const std::vector<LayerTime>& layers, std::string_view module) {
    const auto found =
        std::find_if(layers.begin(), layers.end(), [&](const auto& one) { return one.module == module; });
    REQUIRE(found != layers.end());
    return 1e-6 * static_cast<double>((found->forward + found->backward).count());
}

}  // namespace

// DIP (arXiv 2504.14145), motivation: 8 images of 2704 patches and 8192 tokens of text on H800; a layer of ViT 5B takes
// 6.75 ms, one of Qwen2 32B 10.5 ms. TP is not stated (8 is what fits), nor whether the images' 8 * 169 tokens come on
// top of the text's 8192.
TEST_CASE("a layer of DIP's ViT and one of its language model take what was published, and keep their ratio") {
    const auto setup = vlm_m_on_h800(8);
    const std::vector<std::int64_t> images(8, 2704);
    for (const std::int64_t tokens : {8192, 9544}) {
        CAPTURE(tokens);
        const auto layers = layer_times(setup, {{{images}, {{tokens}}}});
        const double vit = layer_ms(layers, "vit"), llm = layer_ms(layers, "llm");
        CHECK(vit == doctest::Approx(6.75).epsilon(0.15));
        CHECK(llm == doctest::Approx(10.5).epsilon(0.15));
        CHECK(vit / llm == doctest::Approx(6.75 / 10.5).epsilon(0.12));
    }
}
