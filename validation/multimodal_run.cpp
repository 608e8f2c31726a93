#include "validation/multimodal_run.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::validation {

namespace {

// Of a row without tensor parallelism and global batch there is none.
std::optional<std::int64_t> samples_of_microbatch(const PublishedRun& row) {
    if (row.micro_batch) return row.micro_batch;
    const auto replicas = row.gpus ? *row.gpus / (row.tp.value_or(1) * row.pp.value_or(1) * row.cp.value_or(1)) : 0;
    if (replicas == 0 || !row.global_batch || *row.global_batch % replicas != 0) return std::nullopt;
    return *row.global_batch / replicas;
}

// MLPerf Training 5.1's flux1: images of 256 x 256 pixels are 256 positions, the text is 256 (custom_flux.py); mxfp8
// from 4 images a GPU on (config_DGXB200_*.sh), gradients added by kernels of their own (conf/model/schnell.yaml).
MultimodalRow flux(const PublishedRun& row) {
    const auto samples = samples_of_microbatch(row);
    if (!samples) return {std::nullopt, "unknown: micro_batch"};
    MultimodalRun run;
    run.model = workloads::find_model("flux.1-dev");
    auto& network = run.model.modules.front().architecture;
    network.text_tokens = 256;
    run.model.microbatch_tokens = 256 * *samples;
    run.dataset = "constant-0+1x256px";
    run.recipe = emulator::find_recipe("megatron-core-overlap");
    run.recipe.execution.products = costdb::Dtype::fp8;
    run.recipe.fused_accumulation = false;
    run.samples = *samples;
    run.assumed = {"text of 256 tokens and products in fp8, as the submission's files say"};
    if (!row.micro_batch)
        run.assumed.push_back(fmt::format("no tensor parallelism, {} images a GPU at once", *samples));
    return {std::move(run), ""};
}

// Megatron-LM's examples/mimo: the projector alone is trained; up to four samples of an image (576 tokens) and a
// caption are packed. Without --bf16 (tests/functional_tests/.../mimo_vlm_pretrain_convergence_tp1_pp1_cp1_*) weights
// and activations are in fp32.
MultimodalRow llava(const PublishedRun& row) {
    constexpr std::int64_t packed = 4, caption = 40;
    MultimodalRun run;
    workloads::Model& model = run.model;
    model.name = "llava-1.5-7b";
    workloads::Module vit{"vit",
                          workloads::architecture("clip-vit-l-14-336"),
                          workloads::PassUnit::items,
                          {workloads::Modality::image},
                          false};
    workloads::Module llm{"llm",
                          workloads::architecture("llama2-7b"),
                          workloads::PassUnit::microbatch,
                          {workloads::Modality::text},
                          false};
    llm.architecture.vocab = 32256;
    llm.architecture.tied_embeddings = true;
    model.edges = {{.from = 0,
                    .to = 1,
                    .projector_in = vit.architecture.hidden,
                    .projector_out = llm.architecture.hidden,
                    .projector_hidden = llm.architecture.hidden,
                    .projector_trainable = true}};
    model.modules = {std::move(vit), std::move(llm)};
    model.image = {.patch = 14, .merge = 1, .fixed_pixels = 336};
    model.microbatch_tokens = row.seq.value_or(4096);
    model.most_items = packed;
    run.dataset = fmt::format("constant-{}+1x336px", caption);
    run.recipe = emulator::find_recipe("megatron-core");
    if (contains(row.source, "tp1_pp1_cp1")) {
        run.recipe.execution.products = costdb::Dtype::fp32;
        run.recipe.state = {.weight = 4, .gradient = 4, .optimizer = 8};
        run.assumed = {"fp32 weights and activations: the test's configuration has no --bf16"};
    }
    run.samples = packed;
    run.lines = packed;
    run.assumed.push_back(fmt::format("{} samples of an image and {} tokens of text packed into one", packed, caption));
    return {std::move(run), ""};
}

// Megatron-Bridge's examples/models/wan: clips of 832 x 480 pixels, 1560 positions a latent frame.
MultimodalRow wan(const PublishedRun& row) {
    constexpr std::int64_t positions_of_frame = 1560;
    if (!row.seq || *row.seq % positions_of_frame != 0) return {std::nullopt, "unknown: seq"};
    const std::int64_t latent = *row.seq / positions_of_frame;
    const std::int64_t samples = row.micro_batch.value_or(1);
    MultimodalRun run;
    run.model = workloads::find_model("wan2.1-t2v-14b");
    run.model.video.width = 832;
    run.model.video.height = 480;
    run.model.microbatch_tokens = *row.seq * samples;
    const std::int64_t frames = 1 + (latent - 1) * run.model.video.frames_in;
    run.dataset = fmt::format("constant-0+{}s", static_cast<double>(frames) / run.model.video.fps);
    run.recipe = emulator::find_recipe("megatron-core-overlap");
    run.samples = samples;
    run.assumed = {fmt::format("clips of {} frames of 832 x 480 pixels", frames)};
    if (!row.micro_batch) run.assumed.emplace_back("micro_batch 1");
    if (row.dtype.empty()) run.assumed.emplace_back("bf16");
    return {std::move(run), ""};
}

struct Known {
    std::string_view in_name;
    MultimodalRow (*run)(const PublishedRun&);
};
constexpr std::array<Known, 4> known_runs{
    {{"flux.1", flux}, {"llava-1.5-7b", llava}, {"wan 2.1 14b", wan}, {"wan2.1-14b", wan}}};

// Also where no word of the row says that it is no language model.
bool is_a_generator(std::string_view model) { return contains(in_lower_case(model), "wan2.1"); }

}  // namespace

bool is_multimodal(const PublishedRun& row) {
    return is_a_generator(row.model) ||
           contains(in_lower_case(row.source + ' ' + row.model + ' ' + row.note), "multimodal");
}

MultimodalRow multimodal_run(const PublishedRun& row) {
    const auto name = in_lower_case(row.model);
    for (const Known& one : known_runs)
        if (contains(name, one.in_name)) return one.run(row);
    if (contains(name, "unet")) return {std::nullopt, "a U-Net, which is no stack of equal blocks"};
    return {std::nullopt, "a multimodal run: the columns hold one of its networks"};
}

}  // namespace pipeweaver::validation
