// Tables that several sharded trainers have, and those of each.
#pragma once

#include "pipeweaver/frameworks/entry.hpp"
#include "pipeweaver/frameworks/sharded.hpp"

#include <string_view>
#include <vector>

namespace pipeweaver::frameworks {

/// The entry that USE_MCA=1 makes of LLaMA-Factory's.
inline constexpr std::string_view factory_on_megatron_core = "LLaMA-Factory on Megatron Core";
inline constexpr std::string_view example_of_mcore_adapter = "mcore_adapter's examples";

[[nodiscard]] ShardedTable training_arguments();  ///< of Hugging Face's Trainer
[[nodiscard]] ShardedTable accelerate_file();     ///< of `accelerate launch`, its flags too
[[nodiscard]] ShardedTable deepspeed_file();

/// Of each folder: the way in, and its settings.
[[nodiscard]] std::vector<Entry> llama_factory_entries();
[[nodiscard]] std::vector<Entry> sharded_swift_entries();
[[nodiscard]] std::vector<Entry> hugging_face_entries();
[[nodiscard]] std::vector<Entry> veomni_entries();
[[nodiscard]] std::vector<Entry> automodel_entries();
[[nodiscard]] std::vector<ShardedTrainer> llama_factory_trainers();
[[nodiscard]] std::vector<ShardedTrainer> sharded_swift_trainers();
[[nodiscard]] std::vector<ShardedTrainer> hugging_face_trainers();
[[nodiscard]] std::vector<ShardedTrainer> veomni_trainers();
[[nodiscard]] std::vector<ShardedTrainer> automodel_trainers();

}  // namespace pipeweaver::frameworks
