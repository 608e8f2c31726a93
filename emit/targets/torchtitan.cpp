// torchtitan: how a rung is launched, as a fragment of a launch script (torchtitan.sh: an array of flags) for
// torchtitan 0.3.0.
#include "emit/targets/launch_script.hpp"
#include "emit/targets/module_names.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/launch/titan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using emulator::Recompute;
using launch::Launch;
using launch::TitanLaunch;

namespace {

// What torchtitan calls a policy with one chunk a rank, and with more; empty: it has none.
struct PolicyName {
    std::string_view policy, one_chunk, chunks;
};
constexpr std::array<PolicyName, 3> policy_names{{{search::one_f_one_b_policy, "1F1B", ""},
                                                  {search::interleaved_policy, "", "Interleaved1F1B"},
                                                  {search::gpipe_policy, "GPipe", "LoopedBFS"}}};

// FSDP's meshes: of replicas that share nothing out, or share out all states.
std::optional<std::string> unsaid_shares(const Launch& of) {
    const auto& degrees = of.degrees;
    if (degrees.zero == 1) return "FSDP shares out gradients with states: it has no ZeRO 1";
    if (degrees.zero > 0) return std::nullopt;
    if (degrees.dp == 1) return "ZeRO 0 is of replicas that share nothing out, and there is one";
    if (degrees.cp > 1) return fmt::format("states are shared out over the {} GPUs that share samples", degrees.cp);
    if (degrees.tp % degrees.ep == 0) return std::nullopt;
    return fmt::format("with ZeRO 0 experts are shared out inside a replica: over {} GPUs, not {}", degrees.tp,
                       degrees.ep);
}

std::string_view policy_name(const Launch& of) {
    for (const PolicyName& one : policy_names)
        if (one.policy == of.policy) return of.split.chunks() > 1 ? one.chunks : one.one_chunk;
    return "";
}

std::int64_t most_microbatches(const Launch& of) {
    return *std::max_element(of.microbatches.begin(), of.microbatches.end());
}

// The launch's stages as a schedule problem has them; a stage between others may have no layers.
std::vector<schedule::Stage> stages_of(const Launch& of) {
    std::vector<partition::ModuleLayers> modules = of.split.encoders;
    modules.push_back({of.language, of.split.layers});
    std::vector<schedule::Stage> stages;
    std::vector<std::int64_t> next(modules.size());
    stages.reserve(of.split.layers.size());
    for (std::size_t s = 0; s < of.split.layers.size(); ++s) {
        schedule::Stage& stage = stages.emplace_back();
        stage.stage = static_cast<std::int64_t>(s);
        for (std::size_t m = 0; m < modules.size(); ++m) {
            const std::int64_t count = modules[m].layers[s];
            if (count > 0 || m + 1 == modules.size()) stage.parts.push_back({modules[m].module, next[m], count});
            next[m] += count;
        }
    }
    return stages;
}

std::optional<std::string> unsaid_modules(const Launch& of) {
    if (!of.dealt.empty())
        return fmt::format("'{}' is dealt over all GPUs: its models have an encoder on the first stage",
                           of.dealt.front());
    for (const auto& one : of.split.generators)
        return fmt::format("'{}' comes behind the decoder, where its pipelines end", one.module);
    return std::nullopt;
}

// Modules of diffusion transformers are one's own program's to freeze.
std::optional<std::string> unsaid_training(const Launch& of) {
    if (!of.adapters.empty())
        return fmt::format("adapters of '{}' are a converter of its configurations, which no flag says",
                           of.adapters.begin()->first);
    if (of.state_on_host > 0) return "states lie on the host with weights alone (training.enable_cpu_offload)";
    const bool is_language_model = kind_of(of, of.language, "llm") == "llm";
    if (!of.frozen.empty() && is_language_model)
        return fmt::format("'{}' is frozen, for which it has no setting", of.frozen.front());
    return std::nullopt;
}

std::optional<std::string> unsaid_order(const Launch& of) {
    if (policy_name(of).empty())
        return fmt::format("it has no schedule for {} with {} chunks a rank", of.policy, of.split.chunks());
    const std::int64_t count = most_microbatches(of);
    if (of.policy == search::interleaved_policy && count % of.degrees.pp != 0)
        return fmt::format(
            "{} microbatches are no multiple of {} pipeline ranks: Interleaved1F1B would take them in other rounds "
            "than the emulated order",
            count, of.degrees.pp);
    return std::nullopt;
}

// What activation-checkpoint calls the recomputation; none: it has no word for it.
std::optional<std::string> checkpoint_word(const Launch& of) {
    const auto recompute = emulator::recompute_named(of.recompute);
    if (recompute == planner::target("torchtitan").launch.selective) return name_of(Recompute::selective);
    if (recompute == Recompute::none || recompute == Recompute::full) return of.recompute;
    return std::nullopt;
}

// Of launches that were planned before its word was counted as what it does, too.
std::optional<std::string> unsaid_recompute(const Launch& of) {
    if (checkpoint_word(of)) return std::nullopt;
    const std::string own = name_of(planner::target("torchtitan").launch.selective);
    if (of.recompute == name_of(Recompute::selective))
        return fmt::format(
            "the launch was planned with selective as norms and activation functions alone, but torchtitan's selective "
            "is {}: plan again",
            own);
    return fmt::format("activation checkpoints are none, selective ({}) or full for every block alike, not {}", own,
                       of.recompute);
}

// A line of flags, with what it is for.
struct Line {
    std::string words;
    std::string about{};
};

Line flag_line(const launch::TitanMember& member, const std::string& value, std::string about = "") {
    return {fmt::format("--{} {}", launch::titan_name(member), value), std::move(about)};
}

Line switch_line(bool TitanLaunch::*member, bool value, std::string about) {
    return {fmt::format("--{}", launch::titan_name(member, value)), std::move(about)};
}

std::vector<Line> pipeline_lines(const Launch& of) {
    std::vector<Line> all{flag_line(&TitanLaunch::pp, std::to_string(of.degrees.pp))};
    if (!of.has_pipeline) return all;
    all.push_back(flag_line(&TitanLaunch::schedule, std::string(policy_name(of))));
    const auto names = joined(named_stages(torchtitan_names(), stages_of(of)).stages, " ",
                              [](const auto& stage) { return fmt::format("{}", fmt::join(stage, ",")); });
    all.push_back(flag_line(&TitanLaunch::modules, names, "the modules of each stage"));
    all.push_back(switch_line(&TitanLaunch::cuda_graphs, false, "pipelines are not captured"));
    return all;
}

std::vector<Line> degree_lines(const Launch& of) {
    const auto& degrees = of.degrees;
    const bool shards = degrees.zero > 0;
    std::vector<Line> all{flag_line(&TitanLaunch::tp, std::to_string(degrees.tp)),
                          flag_line(&TitanLaunch::cp, std::to_string(degrees.cp)),
                          flag_line(&TitanLaunch::replicate, std::to_string(shards ? 1 : degrees.dp)),
                          flag_line(&TitanLaunch::shard, std::to_string(shards ? degrees.dp : 1))};
    // Of what is not shared out FSDP gathers copies in 16 bits all the same, of a layer at a time.
    all.push_back(
        flag_line(&TitanLaunch::reshard, degrees.zero == 2 ? "never" : "always", fmt::format("zero {}", degrees.zero)));
    if (of.has_experts()) all.push_back(flag_line(&TitanLaunch::ep, std::to_string(degrees.ep)));
    return all;
}

std::vector<Line> batch_lines(const Launch& of) {
    const std::int64_t most = most_microbatches(of);
    const bool even = most * static_cast<std::int64_t>(of.microbatches.size()) == of.all_microbatches();
    const std::string about = fmt::format("{} microbatches, fixed for the job{}", most,
                                          even ? "" : "; a replica with fewer feeds one again, for no loss");
    std::vector<Line> all{flag_line(&TitanLaunch::seq_len, std::to_string(launch::padded_tokens(of)),
                                    "tokens of the largest microbatch, padded to what the GPUs of a sequence divide")};
    if (of.has_pipeline) {
        all.push_back(flag_line(&TitanLaunch::local_batch, std::to_string(most), about));
        all.push_back(flag_line(&TitanLaunch::microbatch, "1"));
    } else {
        all.push_back(flag_line(&TitanLaunch::local_batch, "1"));
        all.push_back(flag_line(&TitanLaunch::global_batch, std::to_string(most * of.degrees.dp), about));
    }
    return all;
}

// Whose module it is, where torchtitan need not have one.
std::string module_note(const Launch& of) {
    if (kind_of(of, of.language, "llm") != "dit") return "";
    return comment(
               "Of diffusion transformers torchtitan 0.3.0 has FLUX alone (--module flux); for any other, --module") +
           comment("is your own, which builds and shards the model as these flags say.");
}

std::string titan_script(const Launch& of) {
    std::string text =
        launch_head(of, "Flags of torchtitan 0.3.0") + "#\n" + comment("  source torchtitan.sh") +
        comment("  torchrun ... -m torchtitan.train --module ... --config ... \"${PIPEWEAVER_FLAGS[@]}\"") +
        module_note(of) + "\nPIPEWEAVER_FLAGS=(\n";
    const std::vector<Line> compiled{switch_line(&TitanLaunch::compiled, true, "as it is priced")};
    for (const auto& lines : {pipeline_lines(of), degree_lines(of), batch_lines(of), compiled})
        for (const Line& one : lines) {
            if (!one.about.empty()) text += "  " + comment(one.about);
            text += fmt::format("  {}\n", one.words);
        }
    text += "  " + comment("recomputation; torchtitan wants this one last") +
            fmt::format("  activation-checkpoint:{}\n)\n", *checkpoint_word(of));
    return of.shapes > 1 ? text + "\n" + expanding_segments(of) : text;
}

}  // namespace

std::optional<std::string> why_no_torchtitan(const Launch& of) {
    if (auto why = unsaid_modules(of)) return why;
    if (auto why = unsaid_training(of)) return why;
    if (auto why = unsaid_recompute(of)) return why;
    if (auto why = unsaid_shares(of)) return why;
    if (of.degrees.expert_tp > 1)
        return fmt::format("experts are not cut by tensor parallelism, here each is over {} GPUs",
                           of.degrees.expert_tp);
    if (!of.has_pipeline) return std::nullopt;
    if (auto why = unsaid_order(of)) return why;
    const auto named = named_stages(torchtitan_names(), stages_of(of));
    return named.why_not.empty() ? std::nullopt : std::optional(named.why_not);
}

std::vector<FileToWrite> torchtitan_files(const Launch& launch, const fs::path& out) {
    return {{out / "torchtitan.sh", titan_script(launch)}};
}

}  // namespace pipeweaver::emit
