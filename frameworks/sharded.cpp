// Finding settings of sharded trainers.
#include "frameworks/sharded_tables.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::frameworks {

std::span<const ShardedTrainer> sharded_trainers() {
    static const std::vector<ShardedTrainer> all = [] {
        std::vector<ShardedTrainer> trainers;
        for (const std::vector<ShardedTrainer>& some :
             {llama_factory_trainers(), sharded_swift_trainers(), veomni_trainers(), automodel_trainers(),
              hugging_face_trainers()})
            trainers.insert(trainers.end(), some.begin(), some.end());
        return trainers;
    }();
    return all;
}

const ShardedTrainer* sharded_trainer(std::string_view entry) {
    const auto all = sharded_trainers();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const ShardedTrainer& one) { return one.entry == entry; });
    return found == all.end() ? nullptr : &*found;
}

const ShardedRow* sharded_row(const ShardedTrainer& trainer, std::string_view setting) {
    if (setting.empty()) return nullptr;
    for (const ShardedTable& table : trainer.tables)
        for (const ShardedRow& row : table.rows)
            if (row.setting == setting) return &row;
    return nullptr;
}

bool is_sharded_setting(std::string_view setting) {
    const auto all = sharded_trainers();
    return std::any_of(all.begin(), all.end(),
                       [&](const ShardedTrainer& one) { return sharded_row(one, setting) != nullptr; });
}

std::string_view setting_of(const ShardedTrainer& trainer, const ShardedMember& member, std::string_view file) {
    for (const ShardedTable& table : trainer.tables)
        for (const ShardedRow& row : table.rows)
            if (!row.setting.empty() && row.member == member && row.setting.starts_with(file)) return row.setting;
    return {};
}

// ms-swift 3602360a swift/arguments/rlhf_args.py, rlhf_trainers/; LLaMA-Factory ff6d4d12 hparams/finetuning_args.py,
// train/trainer_utils.py create_ref_model, data/collator.py. "gkd" is Megatron-SWIFT's (swift/megatron/trainers/
// gkd_trainer.py). Others ("ppo") hold models that are not followed.
std::span<const TrainingStage> training_stages() {
    static constexpr std::array stages{TrainingStage{.name = "dpo", .rows = 2, .refers = true},
                                       TrainingStage{.name = "kto", .refers = true},
                                       TrainingStage{.name = "orpo", .rows = 2},
                                       TrainingStage{.name = "cpo", .rows = 2},
                                       TrainingStage{.name = "simpo", .rows = 2},
                                       TrainingStage{.name = "rm", .rows = 2},
                                       TrainingStage{.name = "grpo", .refers = true, .generates = true},
                                       TrainingStage{.name = "gkd", .generates = true, .distils = true}};
    return stages;
}

const TrainingStage* training_stage(std::string_view name) {
    const auto all = training_stages();
    const auto found = std::find_if(all.begin(), all.end(), [&](const TrainingStage& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::string word_of(const ShardedRow& row, std::string_view value) {
    if (value == "true" || value == "false") return (value == "true") == row.value ? "true" : "false";
    std::string_view words = row.words;
    while (!words.empty()) {
        const std::string_view one = words.substr(0, words.find('|'));
        const std::size_t equals = one.rfind('=');
        if (one.substr(equals + 1) == value) return std::string(one.substr(0, equals));
        words.remove_prefix(std::min(words.size(), one.size() + 1));
    }
    return std::string(value);
}

}  // namespace pipeweaver::frameworks
