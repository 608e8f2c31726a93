// What a row's source and note say of how it was trained.
#include "validation/stacks.hpp"

#include "tests/validation/published_rows.hpp"
#include "validation/parts.hpp"
#include "validation/run_network.hpp"
#include "validation/training_run.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::validation;
using namespace pipeweaver::validation::testing;

namespace {

PublishedRun of(std::string source, std::string note = "") {
    PublishedRun row = llama_70b_cut();
    row.gpu = "H100";
    row.source = std::move(source);
    row.note = std::move(note);
    return row;
}

RunRecipe recipe_on_h100(const PublishedRun& row) { return recipe_of(row, "h100_sxm", {}); }

std::string name_of_recipe(const std::string& source, const std::string& note = "") {
    return recipe_on_h100(of(source, note)).recipe.name;
}

}  // namespace

TEST_CASE("a row's source says its recipe") {
    CHECK(name_of_recipe("NVIDIA/dgxc-benchmarking llama3.1/README_8b.md v25.01") == "megatron-core-overlap");
    CHECK(name_of_recipe("NVIDIA/dgxc-benchmarking maxtext/README_70b.md v25.01") == "maxtext");
    CHECK(name_of_recipe("HF nanotron ultrascale playbook") == "nanotron");
    CHECK(name_of_recipe("mosaicml/llm-foundry scripts/train") == "torch-fsdp1");
    CHECK(name_of_recipe("pytorch/torchtitan branches", "eager, SDPA") == "torch-fsdp2-eager");
    CHECK(name_of_recipe("pytorch/torchtitan branches", "torch.compile per block") == "torch-fsdp2");
    CHECK(name_of_recipe("pytorch/torchtitan nvfp4.md", "eager + torch.compile, FSDP2") == "torch-fsdp2");
    CHECK(name_of_recipe("NVIDIA-NeMo/Megatron-Bridge examples/cards", "SP on, no overlap") == "megatron-core-plain");
    auto tuning = of("NVIDIA-NeMo/Megatron-Bridge examples/cards");
    CHECK(recipe_on_h100(tuning).recipe.name == "megatron-core-overlap");
    tuning.model = "qwen3-30b-a3b SFT";
    CHECK(recipe_on_h100(tuning).recipe.name == "megatron-core-plain");
}

TEST_CASE("a loss in chunks keeps no logits in 32 bits, one of eager PyTorch does") {
    const auto logit = [](const std::string& note) {
        return recipe_on_h100(of("pytorch/torchtitan branches", note)).recipe.kept.logit;
    };
    CHECK(logit("eager, SDPA") == 16);
    CHECK(logit("eager, SDPA, driver 580, PyTorch 2.13") == 2);
}

TEST_CASE("prime-rl keeps the logits of one of its losses, and loops over experts where products are not grouped") {
    const std::string prime = "PrimeIntellect-ai/prime-rl (FSDP2, torchtitan-like)";
    const auto with = [&](const std::string& note) { return recipe_on_h100(of(prime, note)).recipe; };
    CHECK(with("SFT loss").kept.logit == 16);  // 14.6 to 14.7 bytes were measured beside all else
    CHECK(with("RL loss").kept.logit == 0);
    CHECK(with("RL loss").name == "prime-rl");
    const auto loops = with("RL loss. TRAP: FlashAttention-2 on Blackwell and a stack not tuned for it");
    CHECK(loops.name == "prime-rl-loops");
    CHECK(loops.expert_layer > with("RL loss").expert_layer);
    CHECK(loops.kernels.memory_bound == with("RL loss").kernels.memory_bound);
}

TEST_CASE("states of sixteen bits are updated with less traffic") {
    const auto recipe = recipe_on_h100(of("whitecircle/halo throughput-benchmarks.md")).recipe;
    // Weights and moments are read and written, 2 (2 + 4), gradients read twice.
    CHECK(recipe.state.optimizer == 4);
    const auto state = [](const std::string& note) {
        return recipe_on_h100(of("whitecircle/halo gemma4-sft-2026-09", note)).recipe.state;
    };
    CHECK(state("axolotl: FSDP2 without reshard") == recipe.state);
    CHECK(state("axolotl: FSDP2 without reshard").apart == 2);  // shares lie beside the whole weights
    CHECK(state("unsloth: DDP").optimizer == 4);
    CHECK(state("unsloth: DDP").whole == 2);
    CHECK(recipe.update == emulator::UpdateTraffic{.updated = 16, .held = 4});
    CHECK(recipe_on_h100(of("pytorch/torchtitan", "torch.compile")).recipe.update == emulator::UpdateTraffic{});
}

TEST_CASE("a source says which memory it prints") {
    CHECK(stack_of(of("NVIDIA/sports-intelligence-playbooks docs/latest/AVLM_clean.csv")).memory ==
          emulator::MemoryKind::on_device);
    CHECK(stack_of(of("PrimeIntellect-ai/prime-rl (torchtitan-like)")).memory == emulator::MemoryKind::reserved);
    CHECK(stack_of(of("mine")).memory == emulator::MemoryKind::allocated);
}

TEST_CASE("weights that nodes share out have no memory that is counted") {
    auto row = of("foundation-model-stack/fms-fsdp README", "HSDP, no AC; torch.compile");
    row.recompute = "none";
    const auto prediction = predicted(row);
    REQUIRE(prediction.step_time_s);
    CHECK_FALSE(prediction.memory_gib);
    CHECK(prediction.reason.find("no memory: what the GPUs of a node share out is not counted") != std::string::npos);
}

TEST_CASE("a source that no entry names has the recipe that its device's runs were fitted with") {
    CHECK(name_of_recipe("mine") == "megatron-core-overlap");
    CHECK(stack_of(of("mine")).known_kinds);
    CHECK(recipe_of(of("mine"), "a100_sxm", {}).recipe.name == "megatron-2022");
    const auto b200 = recipe_of(of("mine"), "b200", {});
    CHECK(b200.recipe.execution.tensor_overlap == emulator::TensorOverlap::none);
    CHECK_FALSE(b200.ring);
}

TEST_CASE("a recipe that is given takes the place of the shipped one of its name") {
    auto own = emulator::find_recipe("nanotron");
    own.kernels.products = 2;
    const auto row = of("HF nanotron ultrascale playbook");
    CHECK(recipe_of(row, "h100_sxm", std::span(&own, 1)).recipe.kernels.products == 2);
    CHECK(recipe_on_h100(row).recipe.kernels.products != 2);
}

TEST_CASE("a note says what the run did otherwise") {
    const std::string llm_foundry = "mosaicml/llm-foundry scripts/train";
    CHECK(recipe_on_h100(of(llm_foundry, "FSDP1 SHARD_GRAD_OP (ZeRO-2), amp")).recipe.zero == 2);
    CHECK(recipe_on_h100(of(llm_foundry, "FULL_SHARD (ZeRO-3), bf16 PURE")).recipe.state.weight == 2);
    CHECK(recipe_on_h100(of("NVIDIA/dgxc-benchmarking nemotron", "SP on, TP comm overlap OFF"))
              .recipe.execution.tensor_overlap == emulator::TensorOverlap::launch_order);
    CHECK_FALSE(recipe_on_h100(of("vuiseng9/megatron-tutorials", "TP without sequence parallelism"))
                    .recipe.execution.sequence_parallel);
    CHECK_FALSE(recipe_on_h100(of("InternLM/InternEvo doc", "CP a2a")).ring);
    const auto is_fused = [&](const std::string& note) {
        return recipe_on_h100(of("gemma4-sft", note)).recipe.execution.fused_attention;
    };
    CHECK_FALSE(is_fused("automodel: 26.08, EP2 + FSDP2, eager attention"));
    CHECK(is_fused("automodel: 26.08, EP2 + FSDP2"));
}

TEST_CASE("a note's label says the virtual stages of a pipeline whose column is empty") {
    const auto stages = [](const std::string& note, PublishedRun::Count vpp) {
        auto row = of("NVIDIA/Megatron-LM PR #5289", note);
        row.layers = 94;
        row.pp = 4;
        row.gpus.reset();
        row.vpp = vpp;
        const auto resolved = resolve(row);
        REQUIRE_MESSAGE(resolved.run, resolved.refusal);
        return resolved.run->virtual_stages;
    };
    CHECK(stages("W&B label VPP12 with 2 layers a virtual stage", {}) == 12);
    CHECK(stages("W&B label VPP12 with 2 layers a virtual stage", 6) == 6);
    CHECK(stages("interleaved", {}) == 1);
}

TEST_CASE("a note says how experts' tokens are sent") {
    const auto experts = [](const std::string& note, const std::string& model = "qwen3-30b-a3b") {
        auto row = of("NVIDIA-NeMo/Megatron-Bridge examples/cards", note);
        row.model = model;
        return recipe_on_h100(row).recipe.execution.experts;
    };
    using emulator::Dispatcher;
    CHECK(experts("HybridEP 32 SMs inside the node").dispatcher == Dispatcher::once_a_node);
    CHECK(experts("torch alltoall over 2 nodes, no overlap").dispatcher == Dispatcher::all_to_all);
    CHECK(experts("EP overlap on").exposed < 1);
    CHECK(experts("EP overlap off").exposed == 1);
    CHECK(experts("", "deepseek-v3").most_nodes == 4);
    CHECK(experts("").most_nodes == 0);
    CHECK(experts("alltoall dispatcher, expert TP = TP 4, SP on").tensor_parallel == 4);
    CHECK(experts("sequence; expert TP 2 (launch.sh)").tensor_parallel == 2);
    CHECK(experts("TP8, ETP1, forced balance").tensor_parallel == 1);
    CHECK(experts("forced balance").tensor_parallel == 1);
}

TEST_CASE("experts that a note says are split need as many GPUs and columns that go") {
    auto row = of("NVIDIA/dgxc-benchmarking", "expert TP 4");
    row.model = "qwen3-30b-a3b";
    row.tp = 4;
    row.pp = row.cp = 1;
    row.dp = 2;
    row.gpus = row.ep = 8;
    CHECK(resolve(row).refusal.find("must be divisible by ep 8 * expert tp 4") != std::string::npos);
    row.ep = 2;
    const auto split = resolve(row);
    REQUIRE(split.run);
    CHECK(split.run->how.recipe.execution.experts.tensor_parallel == 4);
}

TEST_CASE("a note's rates are those of a node's links together") {
    const auto network = [](const std::string& note) {
        return recipe_on_h100(of("InternLM/InternEvo doc", note)).network.bytes_per_second;
    };
    CHECK(network("4 x 100 Gbit/s RoCE per node") == 50'000'000'000);
    CHECK(network("IB 8x400 Gbit/s") == 400'000'000'000);
    CHECK(network("RoCE 1600 Gbit/s per node") == 200'000'000'000);
    CHECK(network("EFA 3.2 Tbit/s") == 400'000'000'000);
    CHECK(network("InfiniBand") == 0);
}

TEST_CASE("the nanotron runs' fabric is slower the more nodes meet") {
    auto row = of("HF nanotron ultrascale playbook");
    const auto at = [&](std::int64_t gpus) {
        row.gpus = gpus;
        return recipe_on_h100(row).network.bytes_per_second;
    };
    CHECK(at(8) == 400'000'000'000);
    CHECK(at(64) < at(32));
    CHECK(at(512) < at(64) / 2);
}

TEST_CASE("a chip in another package is its device with what differs, and is told apart in tables") {
    REQUIRE(part_named("A800-80GB-SXM"));
    CHECK(part_named("A800-80GB-SXM")->device == "a100_sxm");
    CHECK_FALSE(part_named("H100"));
    auto row = of("modelscope/ms-swift docs");
    row.gpu = "H800-80GB-SXM";
    const auto prediction = predicted(row);
    REQUIRE(prediction.step_time_s);
    CHECK(prediction.device == "h800_sxm");
    CHECK(prediction.reason.find("as H100 with NVLink of 400 GB/s") != std::string::npos);
    row.gpu = "H100";
    CHECK(*predicted(row).step_time_s < *prediction.step_time_s);
    // Sources that were fitted by device know no such parts.
    row.source = "mine";
    row.gpu = "B300";
    CHECK(predicted(row).reason == "no published run was fitted on b300");
}

TEST_CASE("a note's experts and latent attention are what no column holds") {
    auto row = of("mine",
                  "27 layers (first dense, ffn 11264), 64 experts top-6 moe ffn 1408 + 2 shared, MLA kv_lora 512 "
                  "without q_lora, qk 128+64, v 128");
    row.model = "sunlight-16b-a3b";
    row.layers = 27;
    const auto found = network_of(row);
    REQUIRE(found.network);
    REQUIRE(found.network->moe);
    const auto& moe = *found.network->moe;
    CHECK((moe.experts == 64 && moe.top_k == 6 && moe.expert_ffn == 1408 && moe.shared_ffn == 2816));
    CHECK((moe.first_layer == 1 && moe.moe_layers == 26));
    const auto& attention = found.network->attention;
    CHECK(attention.kind == workloads::AttentionKind::latent);
    CHECK_FALSE(attention.q_lora_rank);
    CHECK((attention.kv_lora_rank == 512 && attention.qk_rope_head_dim == 64 && attention.v_head_dim == 128));

    // A name that says the size, too: its attention is no column.
    row.model = "deepseek-v3-671b";
    CHECK(network_of(row).network->attention.q_lora_rank == 1536);
    row.model = "sunlight-16b-a3b";

    row.note = "MoE on every second layer: 128 experts top-1 (8192) + shared 8192";
    const auto second = network_of(row).network->moe;
    CHECK((second->every == 2 && second->expert_ffn == 8192 && second->shared_ffn == 8192));
    row.note = "first 3 layers dense; 256 experts top-8 moe ffn 2048 + 1 shared";
    CHECK(network_of(row).network->moe->first_layer == 3);
    row.note = "128 experts";
    CHECK_FALSE(network_of(row).network->moe);
}

TEST_CASE("a hybrid whose layers are not known is no stack of attention") {
    auto row = of("NVIDIA/dgxc-benchmarking nemotron-h/README.md", "mean, std 7 ms; hybrid Mamba-2");
    row.model = "nemotron-h-56b";
    CHECK(predicted(row).reason == "'nemotron-h-56b' has layers of Mamba that no column holds");
    row.model = "nemotron-h-8b";
    CHECK(network_of(row).network->linear);
}

TEST_CASE("llamas have a gate however wide they are, and a note says whether embeddings are tied") {
    auto row = of("mine", "tied embeddings");
    row.model = "llama-1B";
    row.hidden = 2048;
    row.ffn = 8192;
    CHECK(network_of(row).network->gated);
    CHECK(network_of(row).network->tied_embeddings);
    row.model = "other-1B";
    row.note = "untied embeddings";
    CHECK_FALSE(network_of(row).network->gated);
    CHECK_FALSE(network_of(row).network->tied_embeddings);
}

TEST_CASE("a stack's rows are answered in kinds that the default is not asked for") {
    auto row = of("pytorch/torchtitan benchmarks", "torch.compile");
    row.recompute = "full";
    const auto full = predicted(row);
    REQUIRE(full.step_time_s);
    CHECK(full.recipe == "torch-fsdp2");
    row.recompute = "none";
    CHECK(*predicted(row).step_time_s < *full.step_time_s);
    const auto none = predicted(row);
    row.recompute = "";
    const auto unsaid = predicted(row);
    CHECK(unsaid.reason.find("second-products recomputation, its stack's default") != std::string::npos);
    CHECK(*unsaid.memory_gib < *none.memory_gib);
    row.source = "mine";
    row.recompute = "full";
    CHECK(predicted(row).reason == "recompute 'full': no run of h100_sxm that recomputes was fitted");
}

TEST_CASE("a note says that checkpointing is by operators, and that weights stay gathered") {
    auto row = of("pytorch/torchtitan branches", "torch.compile");
    row.recompute = "selective";
    const auto selective = predicted(row);
    row.note = "torch.compile, per-op SAC";
    const auto by_operators = predicted(row);
    CHECK(*by_operators.memory_gib < *selective.memory_gib);
    CHECK(*by_operators.step_time_s > *selective.step_time_s);
    CHECK(recipe_on_h100(row).recipe.zero == 3);
    row.note = "no reshard, torch.compile, per-op SAC";
    CHECK(recipe_on_h100(row).recipe.zero == 2);
    CHECK(*predicted(row).memory_gib > *by_operators.memory_gib);
}

TEST_CASE("activations that are moved to the host are a recomputation of their own") {
    auto row = of("pytorch/torchtitan benchmarks", "flash attention 3");
    row.recompute = "offload";
    const auto moved = predicted(row);
    REQUIRE(moved.step_time_s);
    CHECK(moved.command.find("--recompute offload") != std::string::npos);
    // prime-rl's ac_offloading turns recomputation on: the inputs of layers are moved.
    row.source = "PrimeIntellect-ai/prime-rl benchmarks (FSDP2, torchtitan-like)";
    const auto inputs = predicted(row);
    CHECK(inputs.command.find("--recompute full") != std::string::npos);
    CHECK(inputs.reason.find("whose inputs on the host are counted on the GPU") != std::string::npos);
    row.source = "mine";
    CHECK(predicted(row).refused());
}

TEST_CASE("a row that says which FlashAttention it ran is not taken for one a generation behind") {
    const auto attention = [](const std::string& note) {
        return recipe_on_h100(of("PrimeIntellect-ai/prime-rl (torchtitan-like)", note)).recipe.kernels;
    };
    CHECK(attention("torch.compile").attention_after_ampere > 1);
    CHECK(attention("flash attention 3, torch.compile").attention_after_ampere == 1);
    CHECK(attention("flash attention 3, torch.compile").after_ampere(false) == 1);
    const auto once = attention("torch.compile"), twice = attention("TRAP: FlashAttention-2 on Blackwell");
    CHECK(twice.attention == once.attention);
    for (const bool causal : {true, false})
        CHECK(twice.after_ampere(causal) == once.after_ampere(causal) * once.after_ampere(causal));
    // By two phrases of one note no more than by one.
    CHECK(attention("driver 580, PyTorch 2.13; FlashAttention-2 on Blackwell").after_ampere(true) ==
          twice.after_ampere(true));
}

TEST_CASE("products in fp8 are answered on H100 and Blackwell, and refused where none are measured") {
    auto row = of("NVIDIA/Megatron-LM examples/moe_recipes/README.md (dev)");
    row.dtype = "fp8 (mxfp8)";
    for (const char* gpu : {"H100", "B200", "B300", "GB200", "GB300"}) {
        CAPTURE(gpu);
        row.gpu = gpu;
        const auto eight_bit = predicted(row);
        REQUIRE(eight_bit.step_time_s);
        CHECK(eight_bit.products == "fp8");
        auto wide = row;
        wide.dtype = "bf16";
        CHECK(*eight_bit.step_time_s < *predicted(wide).step_time_s);
    }
    row.gpu = "A100-SXM";
    CHECK(predicted(row).reason == "no fp8 products are measured on a100_sxm");
}

TEST_CASE("a multimodal model's row of text alone is answered by its language model, by name where sizes are missing") {
    auto row = of("whitecircle/halo gemma4-sft-2026-09", "axolotl: 0.19.0");
    row.model = "gemma-4-26b-a4b (multimodal model, text only)";
    row.layers.reset();
    row.hidden.reset();
    row.ffn.reset();
    row.heads.reset();
    row.kv_heads.reset();
    row.vocab.reset();
    row.ep = 1;
    const auto network = network_of(row).network;
    REQUIRE(network);
    CHECK(network->layers == 30);
    REQUIRE(network->moe);
    CHECK(network->moe->experts == 128);
    CHECK(predicted(row).recipe == "torch-fsdp2-eager");
    row.model = "gemma-4-26b-a4b (multimodal)";
    CHECK(predicted(row).reason == "a multimodal run: the columns hold one of its networks");
    row.model = "no-such-model (multimodal model, text only)";
    CHECK(predicted(row).reason.find("unknown: layers") != std::string::npos);
    CHECK(network_named("qwen3.5-35b-a3b text (40 layers, GDN hybrid)")->linear);
}

TEST_CASE("ranks of latent attention are no adapters") {
    auto row = of("NVIDIA-NeMo/Megatron-Bridge examples/cards", "MLA q_lora 1536 kv_lora 512, no overlap");
    CHECK(predicted(row).reason.find("adapters") == std::string::npos);
    row.note += ", LoRA r16";
    CHECK(predicted(row).reason == "adapters (LoRA) of latent attention are not modelled");
}

TEST_CASE("adapters are of the rank and on the projections that a row says, else those of its stack") {
    auto row = of("NVIDIA-NeMo/Automodel docs/performance-summary.mdx (LoRA)", "LoRA r8 on all *_proj, base frozen");
    auto run = *resolve(row).run;
    CHECK(run.adapters == workloads::Adapters{.rank = 8});
    row = of("NVIDIA/dgxc-benchmarking llama3/finetuning", "LoRA on packed SQuAD");
    run = *resolve(row).run;
    CHECK(run.adapters == workloads::Adapters{16, true, false, false, false});
    CHECK(predicted(row).step_time_s < predicted(of("NVIDIA/dgxc-benchmarking llama3/finetuning")).step_time_s);
    CHECK(predicted(row).command.find(R"("trainable":false,"adapters":{"rank":16,"on":["qkv"]})") != std::string::npos);
}

TEST_CASE("packs of documents attend inside each") {
    auto row = of("NVIDIA/dgxc-benchmarking llama3/finetuning", "SQuAD packed (documents of a few hundred tokens)");
    row.seq = 4096;
    CHECK(resolve(row).run->document == 380);
    // Eleven documents of 372 tokens fill a sequence of 4096.
    CHECK(predicted(row).command.find("--dataset constant-372 ") != std::string::npos);
    const auto whole = predicted([&] {
        auto other = row;
        other.note = "real packed data (document lengths not stated)";
        return other;
    }());
    CHECK(whole.command.find("--dataset constant-4096 ") != std::string::npos);
    CHECK(predicted(row).step_time_s < whole.step_time_s);
    row.note = "offline packing, about 512 tokens per document";
    CHECK(resolve(row).run->document == 512);
}

TEST_CASE("a stack's layers are cut as equally as they go, and it is said") {
    auto row = of("vuiseng9/megatron-tutorials");
    row.layers = 13;
    const auto uneven = predicted(row);
    REQUIRE(uneven.step_time_s);
    CHECK(uneven.reason.find("stages as equal as the layers can be cut") != std::string::npos);
    row.source = "mine";
    CHECK(predicted(row).refused());
}

TEST_CASE("experts that rows name without their numbers are known by the model's name") {
    auto row = of("mine");
    row.model = "qwen3-30b-a3b SFT";
    row.ep = 8;
    const auto moe = network_of(row).network->moe;
    REQUIRE(moe);
    CHECK((moe->experts == 128 && moe->top_k == 8 && moe->expert_ffn == 768 && moe->moe_layers == row.layers));
    CHECK(network_of(row).network->head_dim == 128);
}

TEST_CASE("nanotron cuts its stages by what blocks and head take") {
    CHECK(recipe_on_h100(of("HF nanotron ultrascale playbook")).partition == "balanced");
    CHECK(recipe_on_h100(of("pytorch/torchtitan")).partition == "uniform");
    auto row = of("HF nanotron ultrascale playbook");
    row.vocab = 400'000;
    const auto balanced = predicted(row);
    CHECK(balanced.command.find("--partition balanced") != std::string::npos);
}

TEST_CASE("a generator is told by its name") {
    auto row = of("NVIDIA-NeMo/DFM docs");
    CHECK_FALSE(is_multimodal(row));
    row.model = "wan2.1-14b";
    CHECK(is_multimodal(row));
}

TEST_CASE("a note may say which part a GPU is") {
    CHECK(part_named("H100-80GB-SXM", "Meta 96 GB/500 W parts are likely")->name == "h100_sxm_500w");
    CHECK_FALSE(part_named("H100-80GB-SXM", "700 W"));
}

TEST_CASE("a ring of many GPUs is launched step by step") {
    auto row = of("vuiseng9/megatron-tutorials", "CP p2p");
    row.pp = row.dp = 1;
    row.tp = 1;
    row.cp = row.gpus = 8;
    row.seq = 8192;
    row.micro_batch = row.global_batch = 1;
    const auto ring = predicted(row);
    row.note = "CP a2a";
    const auto exchange = predicted(row);
    REQUIRE(ring.step_time_s);
    REQUIRE(exchange.step_time_s);
    CHECK(*ring.step_time_s > *exchange.step_time_s);
}

TEST_CASE("a note's first ZeRO stage is the run's, others are of runs that it is compared with") {
    const auto zero = [](const std::string& note) {
        return recipe_on_h100(of("HF nanotron ultrascale playbook", note)).recipe.zero;
    };
    CHECK(zero("ZeRO-0; GA 4; twin with ZeRO-1: 6238 tokens/s/GPU") == 0);
    CHECK(zero("ZeRO-1; GA 4") == 1);
    CHECK(zero("no reshard after forward (ZeRO-2 like)") == 2);
    CHECK(zero("GA 4") == 1);
}

TEST_CASE("a source says which peak it prints, and a note in which bytes its states are") {
    CHECK(stack_of(of("HF nanotron ultrascale playbook")).memory == emulator::MemoryKind::reserved);
    CHECK(stack_of(of("vuiseng9/megatron-tutorials 02")).memory == emulator::MemoryKind::on_device);
    CHECK(stack_of(of("KempnerForge benchmarks")).memory == emulator::MemoryKind::allocated);
    CHECK(recipe_on_h100(of("NVIDIA/dgxc-benchmarking llama3.1", "grad sync bf16")).recipe.state.gradient == 2);
    const auto accumulated = recipe_on_h100(of("KempnerForge benchmarks", "bf16 params + fp32 reduce")).recipe;
    CHECK(accumulated.state.whole == 4);
    CHECK_FALSE(accumulated.kept.split_logits);
    CHECK(recipe_on_h100(of("vuiseng9/megatron-tutorials 02", "CP p2p")).recipe.zero == 0);
    CHECK(recipe_on_h100(of("vuiseng9/megatron-tutorials 01", "distributed optimizer, overlap")).recipe.zero == 1);
}
