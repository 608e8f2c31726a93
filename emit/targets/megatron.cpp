#include "emit/targets/megatron.hpp"

#include "emit/targets/launch_script.hpp"
#include "emit/targets/megatron_entry.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using launch::Flag;
using launch::Launch;
using launch::LaunchSetting;
using launch::Spelled;
using launch::SplitSpelling;

namespace {

std::string words(const std::vector<std::string>& flag) {
    std::vector<std::string> quoted;
    quoted.reserve(flag.size());
    for (const std::string& word : flag) quoted.push_back(quoted_for_shell(word));
    return fmt::format("{}", fmt::join(quoted, " "));
}

// "--name value --name value" of a spelling.
std::string words(const std::vector<Flag>& flags) {
    std::vector<std::string> all;
    for (const Flag& one : flags) {
        all.push_back(one.name);
        if (!one.value.empty()) all.push_back(one.value);
    }
    return words(all);
}

std::string flag_array(const Launch& of) {
    std::string text = "PIPEWEAVER_FLAGS=(\n";
    for (const LaunchSetting& one : launch::megatron_settings(of)) {
        if (!one.why.empty()) text += "  " + comment(one.why);
        if (one.flag.empty())
            text += "  " + comment(fmt::format("({}: {})", one.key, one.value));
        else
            text += "  " + words(one.flag) + "\n";
    }
    return text + ")\n";
}

std::string split_array(const SplitSpelling& one) {
    if (!one.spelled.says()) return comment(fmt::format("{}: cannot say it: {}", one.of, one.spelled.why_not));
    const bool is_even = one.spelled.flags.empty();
    return comment(one.of + (is_even ? "; nothing has to be said" : "")) +
           fmt::format("PIPEWEAVER_{}=({})\n", one.name, words(one.spelled.flags));
}

std::string split_arrays(const Launch& of) {
    if (of.split.ranks == 1) return comment("One pipeline rank has all layers.") + "PIPEWEAVER_SPLIT=()\n";
    std::string text = comment("The split among stages, in the words of each framework; take one.");
    for (const SplitSpelling& one : launch::split_spellings(of)) text += split_array(one);
    return text;
}

// What the script says as keys, with those of the split.
std::vector<LaunchSetting> keyed(const Launch& of) {
    std::vector<LaunchSetting> all = launch::megatron_settings(of);
    if (of.split.ranks == 1) return all;
    const Spelled layout = launch::spell_pipeline_layout(of.split);
    const auto chunks = std::to_string(of.split.chunks());
    for (const Flag& one : layout.flags)
        all.push_back(
            {{}, "model.pipeline_model_parallel_layout", nlohmann::json(one.value).dump(), "layers of every stage"});
    if (of.split.chunks() > 1) all.push_back({{}, "model.virtual_pipeline_model_parallel_size", chunks, ""});
    return all;
}

// Megatron-Bridge's KEY=VALUE, which are the keys of the configuration.
std::string overrides(const Launch& of) {
    std::string text = comment("Megatron-Bridge: the same and the split as overrides of a recipe (run_recipe.py)") +
                       "PIPEWEAVER_BRIDGE=(\n";
    for (const LaunchSetting& one : keyed(of))
        if (!one.key.empty()) text += "  " + quoted_for_shell(fmt::format("{}={}", one.key, one.value)) + "\n";
    return text + ")\n";
}

std::string mimo(const Launch& of) {
    const Spelled grids = launch::spell_mimo(of);
    if (!grids.says()) return comment("MegatronMIMO's grids: none: " + grids.why_not);
    std::string text = comment("MegatronMIMO's grids: images have a copy on each GPU, beside the language model");
    for (const Flag& one : grids.flags) text += fmt::format("export {}={}\n", one.name, one.value);
    return text;
}

// The line that checks our memory.
std::string fake_group(const Launch& of) {
    const std::size_t fullest = of.fullest();
    std::vector<std::string> peaks;
    peaks.reserve(of.peak.size());
    for (const Bytes peak : of.peak) peaks.push_back(human(peak));
    std::string text =
        comment("Our memory, checked on one GPU: Megatron-LM's fake process group plays the fullest.") +
        comment(fmt::format("It should allocate about {} (pipeline ranks: {}).", human(of.peak[fullest]),
                            fmt::join(peaks, ", "))) +
        comment(fmt::format("Its sequences are as long as the largest microbatch, padded to what the GPUs of a "
                            "sequence divide: --seq-length {}.",
                            launch::padded_tokens(of))) +
        comment(
            "  env \"${PIPEWEAVER_FULLEST[@]}\" python \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" "
            "\"${PIPEWEAVER_SPLIT[@]}\" --fake-process-group ...");
    if (of.has_experts() && of.degrees.dispatches_by_node)
        text += comment("It does not go with --moe-token-dispatcher-type flex: take alltoall for it.");
    return text + fmt::format(
                      "PIPEWEAVER_FULLEST=(WORLD_SIZE={} RANK={} LOCAL_RANK=0 MASTER_ADDR=localhost "
                      "MASTER_PORT=29500 CUDA_DEVICE_MAX_CONNECTIONS=1)\n",
                      of.degrees.gpus(), launch::first_gpu(of.degrees, fullest));
}

std::string script(const Launch& of) {
    std::string text =
        launch_head(of, "Flags of Megatron-LM") + "#\n" + comment("  source megatron.sh") +
        comment("  export CUDA_DEVICE_MAX_CONNECTIONS=1    # before Blackwell, with tensor or context parallelism") +
        comment("  torchrun ... \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" \"${PIPEWEAVER_SPLIT[@]}\" ...") +
        "\n" + megatron_entry(of) + "\n" + flag_array(of) + "\n";
    if (of.shapes > 1)
        text +=
            comment(fmt::format("Microbatches have {} shapes: without this an allocator may take a quarter of a GPU "
                                "above what is allocated.",
                                of.shapes)) +
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n\n";
    for (const std::string& note : launch::recompute_words(of).notes) text += comment("Recomputation: " + note);
    if (!of.frozen.empty()) text += comment(fmt::format("Not trained: {}", fmt::join(of.frozen, ", ")));
    return text + split_arrays(of) + overrides(of) + "\n" + mimo(of) + "\n" + fake_group(of);
}

std::string first_last(const Launch& of) {
    const auto said = launch::first_last_of(of.split);
    if (!said.why_not.empty())
        return "  " + comment("layers of the first and the last rank cannot say the split: " + said.why_not);
    std::string text = "  " + comment("in place of pipeline_model_parallel_layout:");
    if (said.counts.first)
        text += "  " + comment(fmt::format("num_layers_in_first_pipeline_stage: {}", *said.counts.first));
    if (said.counts.last)
        text += "  " + comment(fmt::format("num_layers_in_last_pipeline_stage: {}", *said.counts.last));
    if (!said.counts.first && !said.counts.last) text += "  " + comment("nothing: the split is even");
    return text;
}

std::string configuration(const Launch& of) {
    std::string text = launch_head(of, "Configuration of Megatron-Bridge");
    const auto all = keyed(of);
    for (const std::string section : {"model", "train", "ddp"}) {
        const std::string prefix = section + ".";
        std::string lines;
        for (const LaunchSetting& one : all) {
            if (!one.key.starts_with(prefix)) continue;
            if (!one.why.empty()) lines += "  " + comment(one.why);
            lines += fmt::format("  {}: {}\n", one.key.substr(prefix.size()), one.value);
        }
        if (section == "model" && of.split.ranks > 1) lines += first_last(of);
        if (!lines.empty()) text += fmt::format("{}:\n{}", section, lines);
    }
    return text;
}

}  // namespace

std::optional<std::string> why_no_megatron(const Launch& launch) {
    const auto why = launch::why_no_megatron(launch);
    return why ? std::optional("megatron: " + *why) : std::nullopt;
}

std::vector<FileToWrite> megatron_files(const Launch& launch, const fs::path& out) {
    return {{out / "megatron.sh", script(launch)}, {out / "megatron.yaml", configuration(launch)}};
}

std::vector<std::string> how_to_run_megatron(const WrittenFiles& written) {
    return {fmt::format("{} in your launch script; then",
                        "source " + quoted_for_shell((written.folder / "megatron.sh").string())),
            "  torchrun ... \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" \"${PIPEWEAVER_SPLIT[@]}\" ...",
            "  (megatron.sh says which script PIPEWEAVER_ENTRY is, or that it has to be yours)",
            fmt::format("{} has the same for Megatron-Bridge", (written.folder / "megatron.yaml").string())};
}

}  // namespace pipeweaver::emit
