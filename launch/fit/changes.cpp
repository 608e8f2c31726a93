// What would make a launch fit, one kind of change after the other.
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace pipeweaver::launch {

namespace {

// Emulates what constructs; nothing where it does not.
template <class Launch>
class Trials {
public:
    // Of changes of `launch`: an assignment is of its replicas.
    Trials(const Launch& launch, const FitAsked& asked, const std::string& framework, const Executor& execute)
        : asked_(asked),
          unassigned_(asked),
          dp_(launch.dp(asked.gpus)),
          framework_(framework_called(framework)),
          execute_(execute) {
        unassigned_.assigned.clear();
    }

    std::optional<Fit> fit(const Launch& launch) const {
        if (!broken_rules(launch, asked_.gpus, framework_).empty()) return std::nullopt;
        const FitAsked& asked = launch.dp(asked_.gpus) == dp_ ? asked_ : unassigned_;
        const Launch run = as_run(launch);
        if (why_not_emulated(run, asked.model)) return std::nullopt;
        // None, too, of a layout that our emulation has no cut or order for.
        return try_fit(run_of(run, asked), asked.seed, execute_).fit;
    }

    // Adds the change if the launch with it constructs and fits.
    bool add(std::vector<Change>& changes, const std::string& say, const Launch& launch) const {
        auto found = fit(launch);
        if (!found || !found->fits()) return false;
        changes.push_back({say, std::move(*found)});
        return true;
    }

private:
    static MegatronLaunch as_run(const MegatronLaunch& launch) { return settled(launch); }
    static TitanLaunch as_run(const TitanLaunch& launch) { return launch; }
    static ShardedLaunch as_run(const ShardedLaunch& launch) { return launch; }

    const FitAsked& asked_;
    FitAsked unassigned_;
    std::int64_t dp_;
    const Framework& framework_;
    const Executor& execute_;
};

// "--flag value" or "model.flag=value".
std::string say(const MegatronLaunch& l, const char* flag, const std::string& value) {
    const std::string name = written(l.dialect, flag);
    return l.dialect == Dialect::bridge_overrides ? name + "=" + value : value == "true" ? name : name + " " + value;
}

MegatronLaunch without_recompute(MegatronLaunch l) {
    l.recompute.clear();
    l.recompute_activations = l.recompute_moe_layer = false;
    l.recompute_method.clear();
    l.recompute_layers.reset();
    l.recompute_modules.clear();
    return l;
}

MegatronLaunch with_recompute(const MegatronLaunch& launch, const char* method, std::int64_t layers) {
    MegatronLaunch l = without_recompute(launch);
    l.recompute = "full";
    l.recompute_method = method;
    l.recompute_layers = layers;
    return l;
}

std::string say_recompute(const MegatronLaunch& l, const char* method, std::int64_t layers) {
    return say(l, "recompute-granularity", "full") + " " + say(l, "recompute-method", method) + " " +
           say(l, "recompute-num-layers", std::to_string(layers));
}

// The fewest layers of each stage, by halving; or all.
void add_recompute(const Trials<MegatronLaunch>& trials, const MegatronLaunch& l, std::int64_t most,
                   std::vector<Change>& changes) {
    if (l.recompute == "full" || l.overlap_experts) return;
    const auto fits = [&](std::int64_t layers) {
        const auto found = trials.fit(with_recompute(l, "block", layers));
        return found && found->fits();
    };
    if (fits(most)) {
        std::int64_t low = 1, high = most;
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            (fits(middle) ? high : low) = fits(middle) ? middle : middle + 1;
        }
        trials.add(changes, say_recompute(l, "block", low), with_recompute(l, "block", low));
    }
}

// Layers of ranks as a layout, or nothing where the launch has chunks or the spelling cannot say it.
std::optional<std::string> layout_of(const std::vector<std::int64_t>& layers, std::int64_t mtp) {
    const auto spelled = spell_pipeline_layout({.ranks = static_cast<std::int64_t>(layers.size()), .layers = layers});
    if (!spelled.says() || spelled.flags.empty() || mtp > 0) return std::nullopt;
    return spelled.flags.front().value;
}

// One layer after the other from the fullest rank to the emptiest.
void add_moved(const Trials<MegatronLaunch>& trials, const MegatronLaunch& l, const Fit& fit,
               std::vector<Change>& changes) {
    constexpr int most_moved = 8;
    if (l.pp == 1 || settled(l).vpp) return;
    std::vector<std::int64_t> layers;
    layers.reserve(fit.ranks.size());
    for (const RankUse& rank : fit.ranks) layers.push_back(rank.layers);
    Fit now = fit;
    for (int moved = 0; moved < most_moved; ++moved) {
        const auto emptiest = std::min_element(now.ranks.begin(), now.ranks.end(),
                                               [](const RankUse& a, const RankUse& b) { return a.peak < b.peak; });
        const auto to = static_cast<std::size_t>(emptiest - now.ranks.begin());
        if (layers[now.fullest] < 2 || to == now.fullest) return;
        --layers[now.fullest];
        ++layers[to];
        const auto layout = layout_of(layers, l.mtp_layers.value_or(0));
        if (!layout) return;
        MegatronLaunch changed = l;
        changed.first.reset();
        changed.last.reset();
        changed.account_for_embedding = changed.account_for_loss = false;
        changed.custom_layers.clear();
        changed.layout = *layout;
        auto found = trials.fit(changed);
        if (!found) return;
        if (found->fits()) {
            const std::string quoted = l.dialect == Dialect::bridge_overrides ? *layout : "\"" + *layout + "\"";
            changes.push_back({say(l, "pipeline-model-parallel-layout", quoted), std::move(*found)});
            return;
        }
        now = std::move(*found);
    }
}

// Of attention that keeps its scores the kernel that does not.
void add_fused_attention(const Trials<MegatronLaunch>& trials, const MegatronLaunch& l, std::vector<Change>& changes) {
    if (!keeps_scores(l)) return;
    MegatronLaunch changed = l;
    changed.attention = l.dialect == Dialect::bridge_overrides ? "AttnBackend.flash" : "flash";
    changed.attention_variables = {};
    const bool are_set = changed.attention_variables != l.attention_variables;
    trials.add(changes,
               say(l, "attention-backend", changed.attention) + (are_set ? ", without NVTE_*_ATTN variables" : ""),
               changed);
}

template <class Launch>
void add_doubled(const Trials<Launch>& trials, const Launch& l, std::int64_t Launch::*degree,
                 const std::function<std::string(std::int64_t)>& say, std::vector<Change>& changes) {
    constexpr std::int64_t most_times = 8;
    for (std::int64_t times = 2; times <= most_times; times *= 2) {
        Launch changed = l;
        changed.*degree *= times;
        if (trials.add(changes, say(changed.*degree), changed)) return;
    }
}

// The flag that works the loss out in pieces, where the trainer has a plain one.
std::string loss_flag(const ShardedLaunch& l) {
    const std::string flag = written(l, &frameworks::ShardedLaunch::fused_loss);
    if (!flag.starts_with("--")) return {};
    const auto* const row = frameworks::sharded_row(*l.trainer, flag.substr(2));
    return row->words.empty() ? flag : std::string();
}

// The flag for attention that does not keep its scores, where it is eager and the trainer has a word for it.
std::string flash_flag(const ShardedLaunch& l) {
    constexpr std::string_view flash = "flash";
    const std::string flag = written(l, &frameworks::ShardedLaunch::attention);
    if (l.attention != "eager" || !flag.starts_with("--")) return {};
    const auto* const row = frameworks::sharded_row(*l.trainer, flag.substr(2));
    const std::string word = frameworks::word_of(*row, flash);
    return word == flash ? std::string() : flag + " " + word;
}

// States on the host, under stage 3 where these alone are not enough; of FSDP weights, too. DeepSpeed's weights on the
// host are not offered: they are counted on the GPU. `with` adds a change that fits.
template <class With>
void add_offload(const ShardedLaunch& l, const With& with) {
    const auto is_left = [](const std::string& device) { return device.empty() || device == "none"; };
    if (l.is_deepspeed() && l.zero_stage() > 0 && is_left(l.offload_optimizer)) {
        const auto states = [](ShardedLaunch& one) { one.offload_optimizer = "cpu"; };
        const bool fits = with("offload_optimizer to cpu in DeepSpeed's zero_optimization", states);
        if (!fits && l.zero_stage() < 3)
            with("stage 3 with offload_optimizer to cpu in DeepSpeed's zero_optimization", [](ShardedLaunch& one) {
                one.zero = 3;
                one.offload_optimizer = "cpu";
            });
    }
    const std::string_view setting =
        frameworks::setting_of(*l.trainer, &frameworks::ShardedLaunch::offload_weights, "accelerate.");
    if (l.is_fsdp() && !l.accelerate.empty() && !setting.empty() && is_left(l.offload_weights))
        with(fmt::format("{}: true in {}", setting.substr(setting.find('.') + 1), l.accelerate),
             [](ShardedLaunch& one) { one.offload_weights = "cpu"; });
}

}  // namespace

std::vector<Change> fitting_changes(const MegatronLaunch& l, const FitAsked& asked, const Fit& fit,
                                    const std::string& framework, const Executor& execute) {
    const Trials<MegatronLaunch> trials(l, asked, framework, execute);
    std::vector<Change> changes;
    std::int64_t most = 1;
    for (const std::int64_t layers : built_layers(settled(l)).layers) most = std::max(most, layers);
    add_recompute(trials, l, most, changes);
    if (!l.distributed_optimizer && !l.megatron_fsdp && !l.torch_fsdp2) {
        MegatronLaunch changed = l;
        changed.distributed_optimizer = true;
        trials.add(changes, say(l, "use-distributed-optimizer", "true"), changed);
    }
    add_fused_attention(trials, l, changes);
    add_moved(trials, l, fit, changes);
    using Degree = std::pair<std::int64_t MegatronLaunch::*, const char*>;
    for (const auto& [degree, flag] : {Degree{&MegatronLaunch::tp, "tensor-model-parallel-size"},
                                       Degree{&MegatronLaunch::pp, "pipeline-model-parallel-size"},
                                       Degree{&MegatronLaunch::cp, "context-parallel-size"}}) {
        const char* const name = flag;
        add_doubled<MegatronLaunch>(
            trials, l, degree, [&](std::int64_t to) { return say(l, name, std::to_string(to)); }, changes);
    }
    if (l.micro_batch.value_or(1) > 1) {
        MegatronLaunch changed = l;
        changed.micro_batch = 1;
        trials.add(changes, say(l, "micro-batch-size", "1"), changed);
    }
    return changes;
}

std::vector<Change> fitting_changes(const TitanLaunch& l, const FitAsked& asked, const Fit&,
                                    const std::string& framework, const Executor& execute) {
    const Trials<TitanLaunch> trials(l, asked, framework, execute);
    std::vector<Change> changes;
    if (l.checkpoint != "full") {
        TitanLaunch changed = l;
        changed.checkpoint = "full";
        trials.add(changes, "activation-checkpoint:full", changed);
    }
    using Degree = std::pair<std::int64_t TitanLaunch::*, const char*>;
    TitanLaunch left = l;
    left.shard = -1;
    for (const auto& [degree, name] : {Degree{&TitanLaunch::tp, "tensor"}, Degree{&TitanLaunch::pp, "pipeline"},
                                       Degree{&TitanLaunch::cp, "context"}}) {
        const char* const kind = name;
        add_doubled<TitanLaunch>(
            trials, left, degree,
            [&](std::int64_t to) { return fmt::format("--parallelism.{}_parallel_degree {}", kind, to); }, changes);
    }
    return changes;
}

std::vector<Change> fitting_changes(const ShardedLaunch& l, const FitAsked& asked, const Fit&,
                                    const std::string& framework, const Executor& execute) {
    using Said = frameworks::ShardedLaunch;
    const Trials<ShardedLaunch> trials(l, asked, framework, execute);
    std::vector<Change> changes;
    const auto with = [&](const std::string& say, const auto& change) {
        ShardedLaunch changed = l;
        change(changed);
        return trials.add(changes, say, changed);
    };
    const std::string recompute = written(l, &Said::recompute), batch = written(l, &Said::micro_batch);
    if (!l.recompute.value_or(false) && !recompute.empty()) {
        const auto* const row = frameworks::sharded_row(*l.trainer, recompute.substr(2));
        with(fmt::format("{} {}", recompute, row->value), [](ShardedLaunch& one) { one.recompute = true; });
    }
    if (const std::string loss = loss_flag(l); !l.fused_loss && !loss.empty())
        with(loss + " true", [](ShardedLaunch& one) { one.fused_loss = true; });
    if (const std::string attention = flash_flag(l); !attention.empty())
        with(attention, [](ShardedLaunch& one) { one.attention = "flash"; });
    if (l.is_deepspeed() && l.zero_stage() < 3)
        with("stage 3 in DeepSpeed's zero_optimization", [](ShardedLaunch& one) { one.zero = 3; });
    if (l.pp > 1 && l.samples() > 1)
        with(written(l, &Said::pipeline_batch) + " 1", [](ShardedLaunch& one) { one.pipeline_batch = 1; });
    else if (l.pp == 1 && l.micro_batch > 1)
        with(batch + " 1", [](ShardedLaunch& one) { one.micro_batch = 1; });
    add_offload(l, with);
    return changes;
}

}  // namespace pipeweaver::launch
