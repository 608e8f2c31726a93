// What an outcome rests on: settings that are said and not followed, and those that something else sets.
#include "launch/read/defaults.hpp"
#include "launch/read/words.hpp"
#include "pipeweaver/launch/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;

std::string as_written(Dialect dialect, const std::string& name) {
    const bool is_key = dialect == Dialect::bridge_overrides || name.starts_with("deepspeed.") ||
                        name.starts_with("fsdp_config.") || name.starts_with("accelerate.") ||
                        (dialect == Dialect::megatron_arguments && name.starts_with("model."));
    return is_key ? name : "--" + name;
}

// What a recipe or configuration may set of memory, a row each; more of the model is on a GPU where it is not said.
struct SetElsewhere {
    Dialect dialect;
    std::string_view setting;
    Effect effect;
    std::string_view written{};  ///< as users write it, where it is not the setting's name
    bool of_step = false;        ///< see Open
};
constexpr std::array set_by_others{
    SetElsewhere{Dialect::bridge_overrides, "model.recompute_granularity", Effect::less, {}, true},
    SetElsewhere{Dialect::bridge_overrides, "model.tensor_model_parallel_size", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "model.pipeline_model_parallel_size", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "model.context_parallel_size", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "model.expert_model_parallel_size", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "peft", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "optimizer.use_precision_aware_optimizer", Effect::less},
    SetElsewhere{Dialect::bridge_overrides, "model.cross_entropy_fusion_impl", Effect::less, {}, true},
    SetElsewhere{Dialect::titan_settings, "activation_checkpoint", Effect::either, "activation-checkpoint:KIND", true},
    SetElsewhere{Dialect::titan_settings, "training.seq_len", Effect::either, {}, true},
    SetElsewhere{Dialect::titan_settings, "training.local_batch_size", Effect::either, {}, true},
    SetElsewhere{Dialect::titan_settings, "parallelism.tensor_parallel_degree", Effect::less},
    SetElsewhere{Dialect::titan_settings, "parallelism.pipeline_parallel_degree", Effect::less},
    SetElsewhere{Dialect::titan_settings, "parallelism.context_parallel_degree", Effect::less},
    SetElsewhere{
        Dialect::titan_settings, "compile.enable", Effect::more, {}, true},  // counted as on: eager losses hold 32 bits
    SetElsewhere{Dialect::titan_settings, "loss", Effect::less, "--loss.*", true},
    SetElsewhere{Dialect::sharded_settings, "gradient_checkpointing", Effect::either, {}, true},
    SetElsewhere{Dialect::sharded_settings, "use_peft", Effect::less},
};

// "${TP:-}" is TP; empty: it is no variable.
std::string variable_in(const std::string& variable) {
    const std::size_t begin = variable.find_first_not_of("${");
    if (begin == std::string::npos || variable[begin] == '(') return {};
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return variable.substr(begin, variable.find_first_not_of(letters, begin) - begin);
}

// Whether a name, or a setting that is not passed over, has a variable's value.
bool is_told_of(const SaidLaunch& said, const std::vector<std::string>& passed_over, const std::string& value) {
    if (value.empty()) return false;
    if (said.named.find("'" + value + "'") != std::string::npos || said.named_model == value) return true;
    return std::any_of(said.settings.begin(), said.settings.end(), [&](const Setting& one) {
        const bool is_passed = std::find(passed_over.begin(), passed_over.end(), one.name) != passed_over.end();
        return !is_passed && std::find(one.values.begin(), one.values.end(), value) != one.values.end();
    });
}

}  // namespace

std::vector<Open> not_modelled(const SaidLaunch& said, const frameworks::NamedModel& model) {
    std::vector<Setting> settings, all = with_defaults(said);
    for (const Setting& one : all)
        if (!is_known(said.dialect, one.name)) settings.push_back(one);
    all.insert(all.end(), said.settings.begin(), said.settings.end());  // by the names that the launch has, too
    return not_modelled(said.dialect, settings, all, model);
}

std::vector<Open> not_modelled(Dialect dialect, const std::vector<Setting>& settings, const std::vector<Setting>& all,
                               const frameworks::NamedModel& model) {
    const auto is = [&](std::string_view name, std::string_view value) {
        return std::any_of(all.begin(), all.end(), [&](const Setting& one) {
            return one.name == name && !one.values.empty() && one.values.front() == value;
        });
    };
    std::vector<Open> open;
    for (const Setting& one : settings) {
        const auto* const row = frameworks::memory_setting(dialect, one.name, one.values, model);
        if (row == nullptr || (!row->beside.empty() && !is(row->beside, row->beside_is))) continue;
        if (row->unless.empty() || !is(row->unless, row->unless_is))
            open.push_back({as_written(dialect, one.name),
                            std::string(row->what),
                            {},
                            row->effect,
                            false,
                            frameworks::is_of_step(*row, one.values),
                            {},
                            row->of_loss});
    }
    return open;
}

std::vector<Open> open_of(const std::vector<Doubt>& doubts) {
    std::vector<Open> open;
    for (const Doubt& one : doubts)
        if (!one.setting.empty())
            open.push_back({one.setting, one.phrase, {}, one.effect, false, one.of_step, one.most});
    return open;
}

std::vector<Open> open_of(const std::vector<Unset>& unset) {
    std::vector<Open> open;
    for (const Unset& one : unset) {
        const std::string name = variable_in(one.variable);
        open.push_back({one.setting,
                        fmt::format("{} has '{}', which it sets to no plain text", one.where, one.variable),
                        fmt::format("say it with --set {}=VALUE", name.empty() ? "NAME" : name)});
    }
    return open;
}

std::vector<Open> open_of_branches(const SaidLaunch& said, const std::vector<std::string>& passed_over) {
    std::vector<Open> open;
    for (const auto& [variable, value] : said.chosen)
        if (is_told_of(said, passed_over, value))
            open.push_back({variable, "a branch of the script sets it that may not be taken",
                            fmt::format("say it with --set {}=VALUE, or what the branch asks for", variable),
                            Effect::either, true});
    return open;
}

Open set_elsewhere(const SaidLaunch& said, const std::string& setting, Effect effect) {
    return {as_written(said.dialect, setting), fmt::format("{} may set it", said.named),
            fmt::format("say it {}", said.entry->say), effect};
}

std::vector<Open> memory_set_elsewhere(const SaidLaunch& said) {
    std::vector<Open> open;
    for (const SetElsewhere& one : set_by_others) {
        if (one.dialect != said.dialect) continue;
        const bool is_said = std::any_of(said.settings.begin(), said.settings.end(),
                                         [&](const Setting& of) { return of.name == one.setting; });
        if (is_said) continue;
        open.push_back(set_elsewhere(said, std::string(one.setting), one.effect));
        open.back().of_step = one.of_step;
        if (!one.written.empty()) open.back().setting = one.written;
    }
    return open;
}

}  // namespace pipeweaver::launch
