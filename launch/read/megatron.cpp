#include "pipeweaver/launch/megatron.hpp"

#include "launch/read/defaults.hpp"
#include "launch/read/megatron_table.hpp"
#include "launch/read/values.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/frameworks/sharded.hpp"
#include "pipeweaver/frameworks/tokenizers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::launch {

namespace {

std::string_view name_in(Dialect dialect, const MegatronRow& row) {
    return dialect == Dialect::bridge_overrides ? row.field : row.flag;
}

const MegatronRow* row_of(Dialect dialect, const std::string& name) {
    const auto rows = megatron_rows();
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const MegatronRow& row) { return name_in(dialect, row) == name; });
    return name.empty() || found == rows.end() ? nullptr : &*found;
}

// Sets one member; an override that is null takes the value away.
class Setter {
public:
    Setter(MegatronLaunch& launch, const MegatronRow& row, const Setting& setting)
        : launch_(launch), row_(row), setting_(setting) {}

    void operator()(std::int64_t MegatronLaunch::*member) const { launch_.*member = integer_of(setting_, row_.least); }
    void operator()(MegatronLaunch::Number MegatronLaunch::*member) const {
        launch_.*member = is_null(setting_) ? MegatronLaunch::Number{} : integer_of(setting_, row_.least);
    }
    // A flag of Megatron-LM says what its row says; `true` or `false` after it is ms-swift's. An override says itself,
    // but for one that is the opposite of a flag.
    void operator()(bool MegatronLaunch::*member) const {
        const bool said = !is_null(setting_) && boolean_of(setting_);
        const bool opposite =
            launch_.dialect == Dialect::bridge_overrides ? row_.flag.empty() && !row_.value : !row_.value;
        launch_.*member = said != opposite;
    }
    void operator()(std::string MegatronLaunch::*member) const {
        launch_.*member = is_null(setting_) ? std::string() : text_of(setting_, row_.choices);
    }
    void operator()(std::vector<std::string> MegatronLaunch::*member) const {
        launch_.*member = is_null(setting_) ? std::vector<std::string>() : texts_of(setting_);
    }

private:
    MegatronLaunch& launch_;
    const MegatronRow& row_;
    const Setting& setting_;
};

// Where TransformerConfig and ModelParallelConfig have other defaults than the arguments.
MegatronLaunch defaults_of(Dialect dialect) {
    MegatronLaunch launch;
    launch.dialect = dialect;
    if (dialect != Dialect::bridge_overrides) return launch;
    launch.overlap_p2p = false;
    launch.batch_p2p = true;
    launch.fused_accumulation = false;
    launch.gelu_fusion = false;
    launch.kv_lora_rank = 512;
    launch.grouped_query = true;
    launch.pads_vocab = false;
    launch.offload_fraction = "0";
    return launch;
}

// Of two lengths in one configuration that of the data counts: samples of it are trained, the model's may be the
// longest that it takes.
void take_data_length(MegatronLaunch& l) {
    if (!l.data_length) return;
    if (l.seq_length && *l.seq_length != *l.data_length)
        l.notes.push_back(fmt::format("model.seq_length is {}, the data's own length {}: samples of {} are trained",
                                      *l.seq_length, *l.data_length, *l.data_length));
    l.seq_length = l.data_length;
}

// Steps grow up to the global batch, whose step holds most and is the one that is answered.
void take_ramp(MegatronLaunch& l) {
    constexpr std::int64_t most = 1'000'000'000'000;
    const std::string name = written(l.dialect, "rampup-batch-size");
    for (const std::string& size : l.said_ramp) l.ramp.push_back(parse_integer(name, size, 0, most));
    if (l.ramp.size() == 3 && l.global_batch)
        l.notes.push_back(
            fmt::format("global batches grow from {} to {} samples by {}: step and memory are of the last", l.ramp[0],
                        *l.global_batch, l.ramp[1]));
}

// A prompt and its answer together, which an engine on the same GPUs may hold to less.
void take_answers(MegatronLaunch& l) {
    if (l.answers_batch && l.global_batch.value_or(0) > 0)
        l.answers_steps = std::max<std::int64_t>(1, *l.answers_batch / *l.global_batch);
    if (!l.generates() || !l.seq_length) return;
    *l.seq_length += l.answer_length.value_or(0);
    if (l.by_engine && l.engine != "server" && l.engine_length)
        l.seq_length = std::min(*l.seq_length, *l.engine_length);
}

// A padded size counts whatever the tokenizer has.
void take_tokenizer(MegatronLaunch& l) {
    const bool is_of_model = l.dialect == Dialect::bridge_overrides && l.vocab;
    if (l.tokenizer_type.empty() || l.padded_vocab || is_of_model) return;
    const auto has = frameworks::vocabulary_of({l.tokenizer_type, l.tokenizer_model, l.vocab_file, l.vocab});
    if (!has) return;
    l.least_vocab = has->least;
    l.most_vocab = has->most;
}

// Where versions differ, and nobody says it.
void take_other_versions(const SaidLaunch& said, MegatronLaunch& l) {
    if (said.entry == nullptr || said.is_dump) return;
    for (const frameworks::Default& one : said.entry->by_version) {
        PIPEWEAVER_ASSERT(one.setting == "cross-entropy-fusion-impl");
        const bool is_said = std::any_of(said.settings.begin(), said.settings.end(),
                                         [&](const Setting& of) { return of.name == one.setting; });
        if (!is_said) l.fused_loss_elsewhere = one.value;
    }
}

}  // namespace

std::int64_t MegatronLaunch::sequences() const {
    const auto* const stage = frameworks::training_stage(learns);
    return micro_batch.value_or(1) * (stage == nullptr ? 1 : stage->rows);
}

bool MegatronLaunch::generates() const {
    const auto* const stage = frameworks::training_stage(learns);
    if (stage == nullptr || !stage->generates) return false;
    return !stage->distils || (by_engine && parse_number("--lmbda", on_policy, 0, 1) > 0);
}

bool is_megatron_setting(Dialect dialect, const std::string& name) { return row_of(dialect, name) != nullptr; }

std::string written(Dialect dialect, const std::string& flag) {
    const MegatronRow* row = row_of(Dialect::megatron_arguments, flag);
    PIPEWEAVER_ASSERT(row != nullptr);
    return dialect == Dialect::bridge_overrides && !row->field.empty() ? std::string(row->field) : "--" + flag;
}

std::vector<MegatronName> megatron_names() {
    std::vector<MegatronName> names;
    names.reserve(megatron_rows().size());
    for (const MegatronRow& row : megatron_rows()) names.push_back({std::string(row.flag), std::string(row.field)});
    return names;
}

MegatronLaunch read_megatron(const SaidLaunch& said, std::optional<OfVersion> version) {
    MegatronLaunch launch = defaults_of(said.dialect);
    for (const Setting& setting : with_defaults(said)) {
        if (const MegatronRow* row = row_of(said.dialect, setting.name))
            std::visit(Setter(launch, *row, setting), row->member);
        else
            launch.not_read.push_back(setting.name);
    }
    if (launch.recompute == "none") launch.recompute.clear();  // ms-swift's word
    if (launch.learns == "sft" || launch.learns == "pt")
        launch.learns.clear();  // from tokens, in LLaMA-Factory's words
    take_data_length(launch);
    take_answers(launch);
    take_tokenizer(launch);
    take_ramp(launch);
    take_other_versions(said, launch);
    // Where Megatron-Bridge has other defaults than Megatron Core, by version; recipes that are known are of 0.6.0.
    const bool of_entry = said.entry != nullptr && said.entry->turns_off_sequence_parallel;
    const auto [turns_off, parts_no_experts] =
        version.value_or(OfVersion{said.knows_named || of_entry, said.knows_named});
    if (parts_no_experts && !launch.etp && launch.ep > 1) launch.etp = 1;
    if (turns_off && launch.tp == 1) launch.sequence_parallel = false;
    return launch;
}

}  // namespace pipeweaver::launch
