#include "emit/targets/deepspeed.hpp"

#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using launch::Launch;

namespace {

// What the recipe of the target counts: two buckets of 16-bit gradients, since one is filled while the other is on its
// way, and with stage 3 as many gathered weights as DeepSpeed keeps unless told otherwise. One group of parameters has
// all, as stages 1 and 2 have it.
constexpr std::int64_t bucket_values = 200'000'000, live_values = 1'000'000'000, group_values = 1'000'000'000'000;

std::string deepspeed_json(const Launch& of) {
    nlohmann::ordered_json zero{{"stage", of.degrees.zero},
                                {"overlap_comm", true},
                                {"contiguous_gradients", true},
                                {"reduce_bucket_size", bucket_values}};
    if (of.degrees.zero == 3) {
        zero["sub_group_size"] = group_values;
        zero["stage3_prefetch_bucket_size"] = "auto";
        zero["stage3_param_persistence_threshold"] = "auto";
        zero["stage3_max_live_parameters"] = live_values;
        zero["stage3_max_reuse_distance"] = live_values;
        zero["stage3_gather_16bit_weights_on_model_save"] = true;
    } else {
        zero["allgather_bucket_size"] = bucket_values;
    }
    const nlohmann::ordered_json json{{"train_batch_size", "auto"},
                                      {"train_micro_batch_size_per_gpu", "auto"},
                                      {"gradient_accumulation_steps", "auto"},
                                      {"gradient_clipping", "auto"},
                                      {"zero_allow_untested_optimizer", true},
                                      {"bf16", {{"enabled", "auto"}}},
                                      {"zero_optimization", zero}};
    return json.dump(1) + "\n";
}

bool has_checkpoints(const Launch& of) { return emulator::recompute_named(of.recompute) == emulator::Recompute::full; }

std::string head_of_factory(const Launch& of) {
    return launch_head(of, "Settings of LLaMA-Factory") +
           comment("Model, template, data and output_dir are yours: beside these, or behind the file as NAME=VALUE,") +
           comment("as is deepspeed=deepspeed.json.");
}

std::string head_of_swift(const Launch& of) {
    return launch_head(of, "Flags of ms-swift") + "#\n" + comment("  source swift.sh") +
           comment(
               "  NPROC_PER_NODE=... swift sft --model ... --dataset ... --deepspeed deepspeed.json "
               "\"${PIPEWEAVER_FLAGS[@]}\"") +
           "\n";
}

}  // namespace

std::optional<std::string> why_no_deepspeed(const Launch& of) {
    auto why = why_not_sharded(of);
    if (!why && of.degrees.zero < 1) why = "it shares out the optimizer's states at least, which zero 0 does not";
    return why ? std::optional("deepspeed: " + *why) : std::nullopt;
}

std::vector<FileToWrite> deepspeed_files(const Launch& of, const fs::path& out) {
    return {{out / "deepspeed.json", deepspeed_json(of)},
            {out / "swift.sh", swift_flags(of, head_of_swift(of), has_checkpoints(of))}};
}

std::optional<std::string> why_no_llama_factory(const Launch& of) {
    const auto why = why_not_apart(of);
    return why ? std::optional("llama-factory: " + *why) : std::nullopt;
}

std::vector<FileToWrite> llama_factory_files(const Launch& of, const fs::path& out) {
    return {{out / "llama_factory.yaml", llama_factory_yaml(of, head_of_factory(of), has_checkpoints(of))}};
}

}  // namespace pipeweaver::emit
