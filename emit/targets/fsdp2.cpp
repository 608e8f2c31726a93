#include "emit/targets/fsdp2.hpp"

#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using launch::Launch;

namespace {

bool fsdp_reshards(const Launch& of) { return of.degrees.zero == 3; }

bool fsdp_recomputes(const Launch& of) { return emulator::recompute_named(of.recompute) == emulator::Recompute::full; }

std::string on_or_off(bool on) { return on ? "true" : "false"; }

std::string accelerate_yaml(const Launch& of) {
    return launch_head(of, "Configuration of accelerate") +
           comment("On several nodes say --num_machines, --machine_rank and --main_process_ip beside it.") +
           "compute_environment: LOCAL_MACHINE\n"
           "distributed_type: FSDP\n"
           "mixed_precision: bf16\n" +
           fmt::format("num_processes: {}\n", of.degrees.gpus()) +
           "fsdp_config:\n"
           "  fsdp_version: 2\n" +
           "  " + comment(fmt::format("zero {}", of.degrees.zero)) +
           fmt::format("  fsdp_reshard_after_forward: {}\n", on_or_off(fsdp_reshards(of))) +
           fmt::format("  fsdp_activation_checkpointing: {}\n", on_or_off(fsdp_recomputes(of))) +
           "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
           "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
           "  fsdp_cpu_ram_efficient_loading: true\n"
           "  fsdp_offload_params: false\n";
}

std::string fsdp_json(const Launch& of) {
    const nlohmann::ordered_json json{{"fsdp", fsdp_reshards(of) ? "full_shard auto_wrap" : "shard_grad_op auto_wrap"},
                                      {"fsdp_config",
                                       {{"fsdp_version", 2},
                                        {"reshard_after_forward", fsdp_reshards(of)},
                                        {"auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
                                        {"cpu_ram_efficient_loading", true},
                                        {"state_dict_type", "SHARDED_STATE_DICT"},
                                        {"activation_checkpointing", fsdp_recomputes(of)}}}};
    return json.dump(1) + "\n";
}

std::string factory_head(const Launch& of) {
    return launch_head(of, "Settings of LLaMA-Factory") +
           comment("Model, template, data and output_dir are yours: beside these, or behind the file as NAME=VALUE.") +
           comment("Checkpoints are accelerate.yaml's.");
}

std::string swift_head(const Launch& of) {
    return launch_head(of, "Flags of ms-swift") + "#\n" + comment("  source swift.sh") +
           comment(
               "  NPROC_PER_NODE=... swift sft --model ... --dataset ... --fsdp fsdp.json "
               "\"${PIPEWEAVER_FLAGS[@]}\"") +
           "\n";
}

}  // namespace

std::optional<std::string> why_no_fsdp2(const Launch& of) {
    auto why = why_not_apart(of);
    if (!why && of.degrees.zero < 2)
        why = fmt::format("gradients are shared out at least, which zero {} does not", of.degrees.zero);
    return why ? std::optional("fsdp2: " + *why) : std::nullopt;
}

std::vector<FileToWrite> fsdp2_files(const Launch& of, const fs::path& out) {
    return {{out / "accelerate.yaml", accelerate_yaml(of)},
            {out / "llama_factory.yaml", llama_factory_yaml(of, factory_head(of), false)},
            {out / "fsdp.json", fsdp_json(of)},
            {out / "swift.sh", swift_flags(of, swift_head(of), false)}};
}

}  // namespace pipeweaver::emit
