// Encoders in front of a language model that is trained by reinforcement learning, by hand.
#include "pipeweaver/rl/encoders.hpp"

#include "pipeweaver/rl/costs.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_model.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::rl;

namespace {

workloads::Sample prompt_with(int images) {
    workloads::Sample sample;
    sample.text_tokens = 100;
    for (int i = 0; i < images; ++i) sample.items.push_back({workloads::Modality::image, 64, 256});
    return sample;
}

// 6 layers of 12 x 1024 x 1024 parameters, 256 positions that all attend to each other; 64 tokens through 1024 x 2048.
constexpr double vit = 6. * (2. * 256 * 12 * 1024 * 1024 + 4. * 1024 * 256 * 256), projector = 2. * 64 * 1024 * 2048;
constexpr std::int64_t projector_bytes = std::int64_t{2} * 1024 * 2048;

TEST_CASE("every image passes the encoder and its projector, in training three times") {
    const auto model = testing::small_model();
    const Encoders one = encoders_of(model, prompt_with(1)), two = encoders_of(model, prompt_with(2));
    CHECK(one.forward_flops == doctest::Approx(vit + projector));
    CHECK(two.forward_flops == doctest::Approx(2 * (vit + projector)));
    CHECK(one.training_flops == doctest::Approx(3 * (vit + projector)));
    CHECK(one.weights.count == 2 * workloads::all_parameters(model.modules[0].architecture) + projector_bytes);
    CHECK(one.trained == one.weights);
    CHECK(encoders_of(model, prompt_with(0)).forward_flops == 0);
}

TEST_CASE("a frozen encoder has no backward, its trained projector that of its weights") {
    auto model = testing::small_model();
    model.modules[0].trainable = false;
    model.edges[0].projector_trainable = true;
    const Encoders encoders = encoders_of(model, prompt_with(1));
    CHECK(encoders.training_flops == doctest::Approx(vit + 2 * projector));
    CHECK(encoders.trained.count == projector_bytes);
}

TEST_CASE("targets and clips are no images that an image encoder reads") {
    auto prompt = prompt_with(2);
    prompt.items[0].target = true;
    prompt.items[1].modality = workloads::Modality::video;
    CHECK(encoders_of(testing::small_model(), prompt).forward_flops == 0);
}

TEST_CASE("encoding comes before a prompt is read, in inference and in training") {
    const auto& network = workloads::architecture("qwen2.5-7b");
    const auto& device = workloads::device("h100_sxm");
    Generator generator{.network = network, .device = device, .gpus = 2, .share = 0.5, .prompt_tokens = 100};
    const auto alone = decoding_of(generator);
    generator.encoder_flops = 1e12;
    generator.encoder_weights = Bytes{130'000'000'000};
    const auto encoding = decoding_of(generator);
    REQUIRE(alone.has_value());
    REQUIRE(encoding.has_value());
    const double more = static_cast<double>((encoding->prompt - alone->prompt).count()) * 1e-9;
    CHECK(more == doctest::Approx(1e12 / (0.5 * 2 * device.bf16_flops)));
    CHECK(encoding->token.size() < alone->token.size());  // its weights take memory
    const std::vector<std::int64_t> answers{1'000};
    const auto one = forward_times(network, device, 0.1, 2, answers, 100);
    const auto two = forward_times(network, device, 0.1, 2, answers, 100, 2e12);
    CHECK(static_cast<double>((two[0] - one[0]).count()) * 1e-9 == doctest::Approx(2e12 / (0.1 * device.bf16_flops)));
}

}  // namespace
