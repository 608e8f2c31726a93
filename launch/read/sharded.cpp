#include "pipeweaver/launch/sharded.hpp"

#include "launch/read/defaults.hpp"
#include "launch/read/sharded_files.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace pipeweaver::launch {

namespace {

using frameworks::ShardedRow;
using Member = frameworks::ShardedLaunch;

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// As if it were not said.
bool is_left_out(const std::string& text) {
    static constexpr std::array<std::string_view, 5> none{"auto", "null", "none", "", "[]"};
    return std::find(none.begin(), none.end(), lower(text)) != none.end();
}

// "5e8" and "500000000.0" of DeepSpeed's files are whole numbers, too.
std::int64_t sharded_number(const Setting& setting, const std::string& text) {
    constexpr double largest = 1e15;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || std::abs(number) > largest)
        fail(ErrorKind::input, "{}: {}: is '{}', allowed is a number", setting.where, setting.name, text);
    return static_cast<std::int64_t>(std::llround(number));
}

bool sharded_flag(const Setting& setting, const std::string& text) {
    static constexpr std::array<std::string_view, 5> on{"true", "1", "yes", "on", "y"},
        off{"false", "0", "no", "off", "n"};
    const std::string word = lower(text);
    if (std::find(on.begin(), on.end(), word) != on.end()) return true;
    if (std::find(off.begin(), off.end(), word) != off.end()) return false;
    fail(ErrorKind::input, "{}: {}: is '{}', allowed are true and false", setting.where, setting.name, text);
}

// What a row calls a value; "*" stands for any that it does not name.
std::string translated(const ShardedRow& row, const std::string& text) {
    std::string_view words = row.words;
    while (!words.empty()) {
        const std::string_view one = words.substr(0, words.find('|'));
        const std::size_t equals = one.rfind('=');
        const std::string_view from = one.substr(0, equals);
        if (from == text || from == "*") return std::string(one.substr(equals + 1));
        words.remove_prefix(std::min(words.size(), one.size() + 1));
    }
    return text;
}

class ShardedSetter {
public:
    ShardedSetter(ShardedLaunch& launch, const ShardedRow& row, const Setting& setting)
        : launch_(launch), row_(row), setting_(setting) {
        text_ = translated(row, fmt::format("{}", fmt::join(setting.values, " ")));
        is_switch_ = setting.values.empty() && text_.empty();
    }

    void operator()(std::int64_t Member::*member) const {
        if (is_left_out(text_)) return;
        if (const std::int64_t number = sharded_number(setting_, text_); number > 0) launch_.*member = number;
    }
    void operator()(Member::Number Member::*member) const {
        (launch_.*member).reset();
        if (is_left_out(text_)) return;
        if (const std::int64_t number = sharded_number(setting_, text_); number >= 0) launch_.*member = number;
    }
    void operator()(bool Member::*member) const { put_flag(launch_.*member); }
    void operator()(Member::Flag Member::*member) const { put_flag(launch_.*member); }
    void operator()(std::string Member::*member) const {
        const bool is_none = lower(text_) == "null" || lower(text_) == "none";
        launch_.*member = is_none ? std::string() : text_;
    }
    // "[a, b]", "a,b" and several values.
    void operator()(Member::Texts Member::*member) const {
        auto& texts = launch_.*member;
        texts.clear();
        std::string name;
        for (const char c : text_ + ",") {
            if (c != ',' && c != ' ' && c != '[' && c != ']' && c != '\'' && c != '"') {
                name += c;
            } else if (!name.empty()) {
                texts.push_back(std::exchange(name, {}));
            }
        }
    }

private:
    void put_flag(auto& flag) const {
        if (is_switch_)
            flag = row_.value;
        else if (!is_left_out(text_))
            flag = sharded_flag(setting_, text_) == row_.value;
    }

    ShardedLaunch& launch_;
    const ShardedRow& row_;
    const Setting& setting_;
    std::string text_;
    bool is_switch_ = false;
};

void apply(const ShardedRow& row, const Setting& setting, ShardedLaunch& launch) {
    std::visit(ShardedSetter(launch, row, setting), row.member);
}

class ShardedReading {
public:
    explicit ShardedReading(const SaidLaunch& said) : said_(said) {
        PIPEWEAVER_ASSERT(said.entry != nullptr);
        launch_.trainer = frameworks::sharded_trainer(said.entry->name);
        PIPEWEAVER_ASSERT(launch_.trainer != nullptr);
    }

    ShardedLaunch read() {
        put_defaults();
        put_launchers_file();
        for (const Setting& one : with_defaults(said_)) take(one);
        for (const std::string& file : said_.missing) launch_.missing.push_back({"the configuration", file});
        take_fsdp();
        if (launch_.deepspeed.empty() && says_deepspeed()) launch_.deepspeed = "{}";
        take_file("--deepspeed", launch_.deepspeed, "deepspeed.");
        if (!launch_.fsdp_config.empty()) take_file("--fsdp_config", launch_.fsdp_config, "fsdp_config.");
        settle();
        return std::move(launch_);
    }

private:
    // Of several tables the first counts.
    void put_defaults() {
        const auto& tables = launch_.trainer->tables;
        for (auto table = tables.rbegin(); table != tables.rend(); ++table)
            for (const ShardedRow& row : table->rows)
                if (!row.otherwise.empty())
                    apply(row, {std::string(row.setting), {std::string(row.otherwise)}, said_.from}, launch_);
    }

    void take(const Setting& setting) {
        const ShardedRow* const row = frameworks::sharded_row(*launch_.trainer, setting.name);
        if (row != nullptr)
            apply(*row, setting, launch_);
        else
            launch_.not_read.push_back(setting);
    }

    // Of `accelerate launch`, whose own flags count more.
    void put_launchers_file() {
        for (const Setting& one : said_.settings)
            if (one.name == "accelerate.config_file" && !one.values.empty())
                take_file("--config_file", one.values.front(), "accelerate.");
    }

    // "full_shard offload", ms-swift's "fsdp2", or a file of its own.
    void take_fsdp() {
        std::string& fsdp = launch_.fsdp;
        if (lower(fsdp) == "false") fsdp.clear();
        const bool is_file = fsdp.ends_with(".json") || fsdp.starts_with('{') ||
                             frameworks::known_file(fsdp, said_.entry->name) != nullptr;
        if (is_file) take_file("--fsdp", std::string(fsdp), "");
        const auto has = [&](std::string_view word) { return fsdp.find(word) != std::string::npos; };
        if (has("shard_grad_op")) launch_.reshards = false;
        if (has("offload")) launch_.offload_weights = "cpu";
    }

    // A YAML file may have all that DeepSpeed's has in place of its name.
    bool says_deepspeed() const {
        return std::any_of(said_.settings.begin(), said_.settings.end(),
                           [](const Setting& one) { return one.name.starts_with("deepspeed."); });
    }

    // A file, a name that is known, or JSON itself. What a known file is called says what is in it.
    void take_file(const std::string& setting, const std::string& named, const std::string& prefix) {
        if (named.empty()) return;
        if (named.starts_with('{')) {
            const auto document = JsonDocument::given(setting, named);
            for (const Setting& one : flattened(document.root(), prefix, setting)) take_of_file(one, prefix);
            return;
        }
        if (const auto document = document_named(named, said_)) {
            for (const Setting& one : flattened(document->root(), prefix, document->name())) take_of_file(one, prefix);
            return;
        }
        const auto* const known = frameworks::known_file(named, said_.entry->name);
        if (known == nullptr) {
            launch_.missing.push_back({setting, named});
            return;
        }
        if (known->entry.empty())
            launch_.notes.push_back(fmt::format("'{}' is not at hand: it is taken as {} has it", named,
                                                known->source.substr(0, known->source.find(' '))));
        for (const auto& [name, value] : known->settings)
            take({std::string(name), {std::string(value)}, std::string(known->source)});
    }

    // Sections of accelerate's file are no part of its names.
    void take_of_file(Setting setting, const std::string& prefix) {
        if (prefix == "accelerate.") setting.name = prefix + setting.name.substr(setting.name.rfind('.') + 1);
        take(setting);
    }

    bool is_said_by(const frameworks::ShardedMember& member) const {
        return !frameworks::setting_of(*launch_.trainer, member).empty();
    }

    void settle() {
        ShardedLaunch& l = launch_;
        const std::string launcher = lower(l.launcher);
        if (launcher == "fsdp" && l.fsdp.empty()) l.fsdp = "full_shard";
        if (launcher == "deepspeed" && l.deepspeed.empty()) l.deepspeed = "accelerate";
        if (l.strategy.find("fsdp") != std::string::npos) l.fsdp = l.strategy;
        if (is_said_by(&Member::layers_reshard))
            l.reshards = l.layers_reshard.value_or(l.ep > 1 ? l.experts_reshard.value_or(false) : l.pp == 1);
        if (!is_said_by(&Member::tuner))
            l.tuner = l.lora_rank.value_or(0) + l.tower_lora_rank.value_or(0) > 0 ? "lora" : "full";
        if (l.tuner == "adalora" && l.rated_rank) {
            l.tuner = "lora";
            l.lora_rank = l.rated_rank;
            l.rates = true;
        }
        if (l.lora_leaves_others && !l.tower_lora_rank) l.tower_lora_rank = l.lora_rank;
        if (!l.unfused_model.empty() && l.model.find(l.unfused_model) != std::string::npos) l.fused_loss = false;
        if (!l.packs || l.apart) l.packs = l.apart || l.stage == "pt";
        settle_length();
        const frameworks::TrainingStage* const kind = frameworks::training_stage(l.stage);
        if (kind != nullptr && kind->generates) settle_answers();
        // transformers 5.0 training_args.py __post_init__: the trainer's own flags override accelerate's precision.
        if (l.launched_bf16.value_or(false) && !l.fp16) l.bf16 = true;
        settle_dtype();
        if (lower(l.dtype) == "auto") l.dtype = "bfloat16";
        if (l.mixes_as_loaded && !l.bf16 && !l.fp16) (l.dtype == "bfloat16" ? l.bf16 : l.fp16) = true;
        if (l.is_fsdp() && (l.bf16 || l.fp16)) l.masters = true;
        if (l.recompute_by_fsdp) l.recompute = true;
        if (!l.recompute_kind.empty()) {
            l.recompute_selective = l.recompute_kind == "selective";
            l.recompute = l.recompute_selective || l.recompute_kind == "full" || lower(l.recompute_kind) == "true";
        }
    }

    // With DeepSpeed LLaMA-Factory's v1 has the precision of its file, bf16 where that leaves it open
    // (plugins/model_plugins/deepspeed_utils.py infer_deepspeed_mixed_precision).
    void settle_dtype() {
        ShardedLaunch& l = launch_;
        if (l.dtype == "mixed") l.dtype = l.bf16 ? "bfloat16" : l.fp16 ? "float16" : "float32";
        if (!l.casts_whole) return;
        if (l.is_deepspeed()) l.bf16 = l.said_fp16.value_or(true);
        if (l.tuner == "full" || (l.is_fsdp() && !l.bf16)) l.dtype = "float32";
    }

    // A length that samples are not cut to says nothing of them.
    void settle_length() {
        ShardedLaunch& l = launch_;
        if (l.padded_length.value_or(0) <= 0) l.padded_length.reset();
        if (l.packed_length.value_or(0) > 0) {
            l.packs = true;
            l.length = l.packed_length;
            l.padded_length = l.pads_packs ? l.packed_length : std::nullopt;
        } else if (l.padded_length) {
            l.length = l.padded_length;
        } else if (l.may_be_longer.value_or(false) && !l.cuts.value_or(false)) {
            l.uncut = std::exchange(l.length, std::nullopt).has_value();
        } else if (l.padding == "max_length" || l.may_be_longer == false) {
            l.padded_length = l.length;
        }
    }

    // A prompt and its answer together, which an engine may hold to less.
    void settle_answers() {
        ShardedLaunch& l = launch_;
        if (l.length) *l.length += l.answer_length.value_or(0);
        const bool is_here = l.by_engine && l.engine != "server";  // a server has a length of its own
        if (is_here && l.engine_length && *l.engine_length > 0)
            l.length = std::min(l.length.value_or(*l.engine_length), *l.engine_length);
    }

    const SaidLaunch& said_;
    ShardedLaunch launch_;
};

bool is_on_host(const std::string& device) { return !device.empty() && device != "none"; }

}  // namespace

int ShardedLaunch::zero_stage() const {
    constexpr std::int64_t highest = 3;
    if (is_deepspeed()) return static_cast<int>(std::min(zero.value_or(0), highest));
    if (!is_fsdp()) return 0;
    if (fsdp.find("no_shard") != std::string::npos) return 0;
    return reshards || is_on_host(offload_weights) ? 3 : 2;
}

std::optional<std::int64_t> ShardedLaunch::tokens() const {
    if (!length) return std::nullopt;
    return *length * sequences();
}

std::int64_t ShardedLaunch::samples() const {
    return pp == 1 ? micro_batch : std::max<std::int64_t>(1, pipeline_batch.value_or(micro_batch));
}

std::int64_t ShardedLaunch::sequences() const {
    const frameworks::TrainingStage* const kind = frameworks::training_stage(stage);
    return samples() * (kind == nullptr || (packs.value_or(false) && !joins_pairs) ? 1 : kind->rows);
}

std::int64_t ShardedLaunch::microbatches(std::int64_t gpus) const {
    if (accumulation) return std::max<std::int64_t>(1, *accumulation);
    if (!global_batch || *global_batch == 0) return 1;
    const std::int64_t together = micro_batch * dp(gpus);
    return together > 0 && *global_batch % together == 0 ? *global_batch / together : 0;
}

ShardedLaunch read_sharded(const SaidLaunch& said) { return ShardedReading(said).read(); }

ShardedLaunch with_model(ShardedLaunch launch, const workloads::Model& model) {
    const workloads::Architecture& a = model.modules[model.backbone()].architecture;
    launch.heads = a.heads;
    launch.kv_heads = a.kv_heads;
    launch.hidden = a.hidden;
    launch.layers = a.layers;
    launch.experts = a.moe ? a.moe->experts : 0;
    if (launch.rings_rest && launch.kv_heads % launch.sequence != 0) {
        const std::int64_t all = launch.sequence;
        launch.sequence = std::gcd(launch.kv_heads, all);
        launch.ring = all / launch.sequence;
    }
    return launch;
}

std::string written(const ShardedLaunch& launch, const frameworks::ShardedMember& member) {
    const std::string_view name = frameworks::setting_of(*launch.trainer, member);
    const bool is_of_file =
        name.starts_with("deepspeed.") || name.starts_with("fsdp_config.") || name.starts_with("accelerate.");
    return is_of_file || name.empty() ? std::string(name) : "--" + std::string(name);
}

}  // namespace pipeweaver::launch
