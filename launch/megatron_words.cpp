// A launch as settings of Megatron-LM and Megatron-Bridge, and the rules under which they run it.
#include "pipeweaver/launch/megatron_words.hpp"

#include "launch/written_setting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::launch {

namespace {

bool is_interleaved(const Launch& launch) { return launch.has_pipeline && launch.split.chunks() > 1; }

std::optional<std::string> why_no_order(const Launch& launch) {
    if (!launch.has_pipeline) return std::nullopt;
    if (launch.policy != "1f1b" && launch.policy != "interleaved")
        return fmt::format("policy {}: Megatron has 1f1b and interleaved", launch.policy);
    if (is_interleaved(launch) != (launch.policy == "interleaved"))
        return fmt::format("policy {} with {} chunks a rank: Megatron interleaves where there are two and more",
                           launch.policy, launch.split.chunks());
    return std::nullopt;
}

// Groups of one microbatch for each rank, as the schedule was emulated.
std::optional<std::string> why_no_groups(const Launch& launch) {
    const auto& counts = launch.microbatches;
    if (std::any_of(counts.begin(), counts.end(), [&](std::int64_t one) { return one != counts.front(); }))
        return fmt::format(
            "replicas have {} microbatches; Megatron gives all equally many: --equal-microbatches or --packing "
            "balanced does, where each replica has samples enough",
            fmt::join(counts, ", "));
    if (!is_interleaved(launch)) return std::nullopt;
    const std::int64_t all = counts.front(), group = launch.degrees.pp;
    if (all < group)
        return fmt::format(
            "{} microbatches are fewer than {} pipeline ranks, which Megatron's interleaved schedule needs", all,
            group);
    if (all % group != 0)
        return fmt::format("{} microbatches in groups of {} leave {}; Megatron's last group is whole", all, group,
                           all % group);
    return std::nullopt;
}

std::optional<std::string> why_not_dealt(const Launch& launch) {
    if (launch.dealt.empty()) return std::nullopt;
    const Spelled grids = spell_mimo(launch);
    if (grids.says()) return std::nullopt;
    return grids.why_not;
}

using L = MegatronLaunch;

LaunchSetting number(const MegatronRow::Member& member, std::int64_t value, std::string why = {}) {
    return setting_of(member, std::to_string(value), std::move(why));
}

// A setting of a recipe alone, where a launch of flags has the framework's default: the recipe may have another.
LaunchSetting in_recipe(const MegatronRow::Member& member, std::string value, std::string why = {}) {
    return {{}, std::string(row_that_sets(member).field), std::move(value), std::move(why)};
}

LaunchSetting on(const MegatronRow::Member& member, std::string why = {}) {
    const MegatronRow& row = row_that_sets(member);
    return {{flag_of(member)}, std::string(row.field), "true", std::move(why)};
}

LaunchSetting on_or_off(bool is_on, const MegatronRow::Member& member, std::string why) {
    return is_on ? on(member, std::move(why)) : in_recipe(member, "false");
}

void add_context(std::vector<LaunchSetting>& all, const Launch& launch) {
    const Degrees& of = launch.degrees;
    if (of.cp == 1) {
        all.push_back(in_recipe(&L::cp, "1"));
        return;
    }
    all.push_back(number(&L::cp, of.cp, "GPUs that share out every sequence"));
    all.push_back(setting_of(&L::cp_comm, of.ring ? "p2p" : "a2a",
                             of.ring ? "keys and values go round" : "parts of the sequence become parts of the heads"));
    if (const std::size_t end = launch.deals.find('='); end != std::string::npos)
        all.push_back({{},
                       launch.deals.substr(0, end),
                       launch.deals.substr(end + 1),
                       "each context parallel group encodes some of the images, not all"});
}

void add_degrees(std::vector<LaunchSetting>& all, const Launch& launch) {
    const Degrees& of = launch.degrees;
    all.push_back(number(&L::tp, of.tp, "GPUs of one pipeline rank, each with a part of every layer"));
    all.push_back(on_or_off(of.tp > 1 && of.sequence_parallel, &L::sequence_parallel,
                            "what tensor parallelism does not split is split by tokens"));
    all.push_back(
        number(&L::pp, of.pp, fmt::format("pipeline ranks; of {} GPUs the replicas are then {}", of.gpus(), of.dp)));
    add_context(all, launch);
    if (!launch.has_experts()) return;
    all.push_back(number(&L::ep, of.ep, "GPUs that share out the experts of a layer"));
    all.push_back(
        number(&L::etp, of.expert_tp, "GPUs that share out each expert; unset it would be that of the other layers"));
    all.push_back(on(&L::grouped_gemm, "a GPU's experts are one product"));
}

// With varying lengths Megatron Core refuses its default, allgather, also of models without experts.
void add_dispatcher(std::vector<LaunchSetting>& all, const Launch& launch) {
    if (!launch.has_experts() && !launch.has_pipeline) return;
    const bool by_node = launch.has_experts() && launch.degrees.dispatches_by_node;
    std::string why = "varying lengths do not go with allgather, the default, without experts either";
    if (launch.has_experts())
        why = by_node ? "a token travels once to each node with its experts (DeepEP, HybridEP)"
                      : "a token travels to each of its experts";
    all.push_back(setting_of(&L::dispatcher, by_node ? "flex" : "alltoall", std::move(why)));
}

void add_numbers(std::vector<LaunchSetting>& all, const Launch& launch) {
    if (launch.bf16) all.push_back(on(&L::bf16, "values of 16 bits, as they are priced"));
    all.push_back(setting_of(&L::hidden_dropout, "0", "no masks of dropout are kept; the default is 0.1"));
    if (launch.fused_loss) {
        all.push_back(on(&L::fused_loss, "logits are kept in 16 bits"));
        all.push_back(setting_of(&L::fused_loss_by, "te",
                                 "Transformer Engine's kernel; the default, native, keeps more of each logit"));
    }
    all.push_back(
        on(&L::loss_per_token, "every token that has a loss counts alike, as the assignment's loss_weight has it"));
    all.push_back(in_recipe(&L::averages_gradients, "false", "goes with it"));
}

void add_batch(std::vector<LaunchSetting>& all, const Launch& launch) {
    all.push_back(number(&L::micro_batch, 1, "a microbatch of the plan is one packed sequence (assignment.json)"));
    all.push_back(number(
        &L::global_batch, launch.all_microbatches(),
        fmt::format("microbatches of a replica: {}; replicas: {}", launch.microbatches.front(), launch.degrees.dp)));
    if (is_interleaved(launch))
        all.push_back(
            number(&L::group_size, launch.degrees.pp, "microbatches that a chunk runs before the next chunk's turn"));
    if (launch.has_pipeline)
        all.push_back(in_recipe(&L::variable_lengths, "true",
                                "microbatches keep their lengths; no flag says it: set it in the model's "
                                "configuration"));
}

void add_replicas(std::vector<LaunchSetting>& all, const Launch& launch) {
    const Degrees& of = launch.degrees;
    all.push_back(
        on_or_off(of.zero == 1, &L::distributed_optimizer, "replicas share out the optimizer's state (ZeRO-1)"));
    if (of.overlaps_gradients) all.push_back(on(&L::overlap_grads, "gradients are reduced beside backwards"));
    if (of.overlaps_gradients && of.gathers_ahead && of.zero == 1)
        all.push_back(on(&L::overlap_params, "updated weights are gathered beside the next step's forwards"));
}

// The part of the state on the host, so that Megatron Core's rounding leaves what the plan has on the GPU.
std::string offloaded_part(const Launch& launch) {
    constexpr std::int64_t parts = 10'000;
    const std::int64_t all = launch.state_on_gpu + launch.state_on_host;
    const std::int64_t part = (launch.state_on_host * parts + all - 1) / all;
    return fmt::format("{:g}", static_cast<double>(part) / static_cast<double>(parts));
}

void add_states_on_host(std::vector<LaunchSetting>& all, const Launch& launch) {
    if (launch.state_on_host == 0) return;
    all.push_back(on(&L::precision_aware, "states on the host go with it"));
    all.push_back(on(&L::offload_optimizer, "states of the optimizer lie on the host"));
    all.push_back(setting_of(&L::offload_fraction, offloaded_part(launch), "this part of them"));
}

// Names of Megatron Core's layers, by what of a layer they are.
std::vector<std::string> adapted_layers(const workloads::Adapters& adapters) {
    std::vector<std::string> names;
    if (adapters.qkv) names.emplace_back("linear_qkv");
    if (adapters.output) names.emplace_back("linear_proj");
    if (adapters.up) names.emplace_back("linear_fc1");
    if (adapters.down) names.emplace_back("linear_fc2");
    return names;
}

bool adapts_feed_forward(const workloads::Adapters& adapters) { return adapters.up || adapters.down; }

// Megatron-Bridge has one pair for all experts of a GPU, ms-swift a pair for each.
bool is_bridges(const Launch& launch, const workloads::Adapters& adapters) {
    return !launch.has_experts() || !adapts_feed_forward(adapters) ||
           adapters.experts == workloads::ExpertAdapters::together;
}

bool is_swifts(const Launch& launch, const workloads::Adapters& adapters) {
    return !launch.has_experts() || !adapts_feed_forward(adapters) ||
           adapters.experts == workloads::ExpertAdapters::each;
}

std::optional<std::string> why_not_adapted(const Launch& launch) {
    const Tuned tuned = tuned_of(launch);
    if (!tuned.adapters) return std::nullopt;  // a program of one's own may freeze modules
    if (!tuned.why_not.empty()) return tuned.why_not;
    if (tuned.adapters->apart)
        return "what is projected together has one pair of adapters in Megatron-Bridge and ms-swift, not a pair for "
               "each part (--lora-apart)";
    if (!is_bridges(launch, *tuned.adapters) && !is_swifts(launch, *tuned.adapters))
        return "routed experts have adapters in Megatron-Bridge (--lora-experts together) and ms-swift (each), here "
               "none";
    return std::nullopt;
}

std::string frozen_word(bool is_frozen) { return is_frozen ? "true" : "false"; }

// Of a recipe: Megatron-LM's own scripts have flags for some of it alone.
void add_tuned(std::vector<LaunchSetting>& all, const Launch& launch) {
    const Tuned tuned = tuned_of(launch);
    if (tuned.is_usual() || !tuned.why_not.empty()) return;
    const bool has_encoders = !launch.split.encoders.empty() || !launch.dealt.empty();
    if (has_encoders) {  // keys of models with encoders alone
        all.push_back(in_recipe(&L::freeze_llm, frozen_word(tuned.freezes_language), "what is trained"));
        all.push_back(in_recipe(&L::freeze_vit, frozen_word(tuned.freezes_encoders)));
        all.push_back(in_recipe(&L::freeze_aligner, frozen_word(tuned.freezes_projectors)));
    }
    if (!tuned.adapters || !is_bridges(launch, *tuned.adapters)) return;
    all.push_back(in_recipe(&L::lora_rank, std::to_string(tuned.adapters->rank),
                            "adapters, of a recipe with LoRA; Megatron-LM's own scripts have none"));
    all.push_back(in_recipe(&L::lora_targets, fmt::format("[{}]", fmt::join(adapted_layers(*tuned.adapters), ","))));
}

}  // namespace

// modelscope/ms-swift 3602360a swift/megatron/utils/utils.py get_target_modules: what is frozen is left out of
// all-linear alone, and names of layers are those of encoders, too, where these have such.
std::vector<Flag> swift_tuning(const Launch& launch) {
    const Tuned tuned = tuned_of(launch);
    if (!tuned.why_not.empty() || (tuned.adapters && !is_swifts(launch, *tuned.adapters))) return {};
    const bool has_encoders = !launch.split.encoders.empty() || !launch.dealt.empty();
    if (tuned.is_usual() && !has_encoders) return {};
    std::vector<Flag> all{{"--tuner_type", tuned.adapters ? "lora" : "full"}};
    if (tuned.adapters) {
        if (has_encoders && !tuned.adapters->on_all()) return {};
        all.push_back({"--lora_rank", std::to_string(tuned.adapters->rank)});
        all.push_back({"--target_modules", {}});
        if (tuned.adapters->on_all())
            all.push_back({"all-linear", {}});
        else
            for (const std::string& layer : adapted_layers(*tuned.adapters)) all.push_back({layer, {}});
    }
    all.push_back({"--freeze_llm", frozen_word(tuned.freezes_language)});
    if (!has_encoders) return all;
    all.push_back({"--freeze_vit", frozen_word(tuned.freezes_encoders)});
    all.push_back({"--freeze_aligner", frozen_word(tuned.freezes_projectors)});
    return all;
}

std::optional<std::string> why_no_megatron(const Launch& launch) {
    if (auto why = why_not_adapted(launch)) return why;
    if (launch.state_on_host > 0 && launch.degrees.zero != 1)
        return "states on the host go with the distributed optimizer (zero 1)";
    if (auto why = why_not_dealt(launch)) return why;
    if (launch.degrees.zero > 1)
        return fmt::format("zero {}: Megatron's distributed optimizer shares out the optimizer's state alone (zero 1)",
                           launch.degrees.zero);
    if (auto why = why_not_usual(launch.split)) return why;
    if (auto why = why_no_order(launch)) return why;
    if (auto why = why_no_groups(launch)) return why;
    const RecomputeWords words = recompute_words(launch);
    return words.why_not.empty() ? std::nullopt : std::optional(words.why_not);
}

LaunchSetting setting_of(const MegatronRow::Member& member, const std::string& value, std::string why) {
    return {{flag_of(member), value}, std::string(row_that_sets(member).field), value, std::move(why)};
}

std::vector<LaunchSetting> megatron_settings(const Launch& launch) {
    std::vector<LaunchSetting> all;
    add_degrees(all, launch);
    add_numbers(all, launch);
    add_batch(all, launch);
    add_dispatcher(all, launch);
    std::vector<LaunchSetting> again = recompute_words(launch).settings;
    if (again.empty()) again.push_back(in_recipe(&L::recompute, "null"));
    for (LaunchSetting& one : again) all.push_back(std::move(one));
    add_replicas(all, launch);
    add_states_on_host(all, launch);
    add_tuned(all, launch);
    return all;
}

std::vector<LaunchSetting> recipe_settings(const Launch& launch) {
    std::vector<LaunchSetting> all = megatron_settings(launch);
    const Spelled layout = launch.split.ranks > 1 ? spell_pipeline_layout(launch.split) : Spelled{};
    std::string text = "null", chunks = "null";
    for (const Flag& one : layout.flags) text = nlohmann::json(one.value).dump();
    if (launch.split.chunks() > 1) chunks = std::to_string(launch.split.chunks());
    all.push_back(in_recipe(&L::layout, std::move(text), "layers of every stage"));
    all.push_back(in_recipe(&L::vpp, std::move(chunks)));
    return all;
}

std::vector<SplitSpelling> split_spellings(const Launch& launch) {
    const Split& split = launch.split;
    const Spelled no_letters{{}, "HybridModel has no letter for some of the layers"};
    return {
        {"SPLIT", "Megatron-LM: layers of every stage", spell_pipeline_layout(split)},
        {"SPLIT_FIRST_LAST", "Megatron-LM: layers of the first and the last rank", spell_first_last(split)},
        {"SPLIT_HYBRID", "Megatron-LM's HybridModel, of August 2026: letters of every stage; '*-' is two of its layers",
         launch.letters.empty() ? no_letters : spell_hybrid_pattern(split, launch.letters)},
        {"SPLIT_SWIFT", "ms-swift: layers of the first and the last rank", spell_first_last_swift(split)},
        {"SPLIT_LOONGFORGE", "LoongForge: layers of every rank, or stage", spell_custom_layers(split)},
        {"RECOMPUTE_LOONGFORGE", "LoongForge: layers of every rank that run again", spell_custom_recompute(launch)}};
}

std::int64_t first_gpu(const Degrees& degrees, std::size_t rank) {
    return static_cast<std::int64_t>(rank) * degrees.tp * degrees.cp * degrees.dp;
}

}  // namespace pipeweaver::launch
