// What a launch says, as it was read: names with their values, in the words of its framework. Nothing of it is
// understood here.
//
//   Megatron-LM's arguments       --tensor-model-parallel-size 4 --swiglu
//   Megatron-Bridge's overrides   model.tensor_model_parallel_size=4 train.global_batch_size=512
//   torchtitan's settings         --parallelism.tensor_parallel_degree 4
//   MegatronMIMO's grids          MIMO_LANGUAGE_TP=4, a script's variables; --component language=tp=4
//   a sharded trainer's settings  --per_device_train_batch_size 1, cutoff_len: 4096, train.micro_batch_size
#pragma once

#include "pipeweaver/frameworks/entry.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

using Dialect = frameworks::Dialect;

/// "Megatron-LM's arguments", ...
[[nodiscard]] std::string_view name_of(Dialect dialect);

struct Setting {
    std::string name;                 ///< "tensor-model-parallel-size", "model.num_layers", "parallelism.x"
    std::vector<std::string> values;  ///< none: a switch
    std::string where;                ///< "train.sh:41", "--megatron-args"
};

/// A setting whose value a script leaves to its caller.
struct Unset {
    std::string setting;   ///< as it is written
    std::string variable;  ///< "$TP", "$(nproc)"
    std::string where;     ///< "train.sh:41"
};

/// Variables of a script, as plain text.
using Variables = std::map<std::string, std::string>;

/// "TP=4,PP=8", as --set says them; in "ROW=2,1,PP=8" ROW is "2,1". Throws Error{input}.
[[nodiscard]] Variables parse_variables(const std::string& text);

struct SaidLaunch {
    Dialect dialect = Dialect::megatron_arguments;
    std::string from;  ///< the file, or the option that had it
    std::vector<Setting> settings;
    std::vector<std::string> notes{};                ///< what was taken of several, sentences
    Variables variables{};                           ///< that a script sets
    std::map<std::string, std::string> documents{};  ///< files that it writes, with their text
    bool is_alone = false;                           ///< a configuration, without the command that launches it
    bool is_dump = false;                            ///< a framework wrote it, with all its names
    std::string not_at_hand{};  ///< of `notes`, the first of a file that the script sources and that is not there
    const frameworks::Entry* entry = nullptr;  ///< what the command starts; null: a program without a row
    std::string named{};        ///< what sets all that is not said: "recipe 'x'"; empty: nothing, defaults count
    std::string framework{};    ///< whose rules count, with its version, where it follows from what is said
    bool knows_named = false;   ///< what it sets is among the settings, in front
    std::string named_model{};  ///< the model that the launch names, as it does; empty: none
    std::int64_t gpus = 0;      ///< that its launcher starts processes on; 0: not said in plain numbers
    std::string says_gpus{};    ///< "--nproc_per_node 8, --nnodes 4"
    std::string multiplies{};  ///< a variable, 1 as nobody sets it, by which `gpus` and some settings grow; empty: none
    std::vector<Unset> unset{};  ///< what nobody gave a value, and is left out of the settings
    Variables chosen{};          ///< variables that the command has by a branch that may not be taken, as it is taken
    std::vector<std::string> missing{};  ///< configuration files of a sharded trainer that are not at hand
};

/// Reads words as a shell parts them: blanks part, quotes join, a backslash takes the next letter as it is. Throws
/// Error{input} for a quote that is not closed, and for variables, which belong in a script.
[[nodiscard]] SaidLaunch read_words(Dialect dialect, std::string_view text, const std::string& from);

/// Reads a file: by its name's end YAML or JSON, which read_configuration() reads; else a bash script. Of a script the
/// command with the most settings counts, the last of several; variables and arrays are put in where the script sets
/// them to plain text, or `given` does, which it then does not change. Throws Error{io}, Error{input} with file and
/// line, also where nothing of a launch is in it, and for TOML, which torchtitan read before 0.3.
[[nodiscard]] SaidLaunch read_launch(const std::filesystem::path& path, std::optional<Dialect> dialect = std::nullopt,
                                     const Variables& given = {});

/// The same of a script's text.
[[nodiscard]] SaidLaunch read_script(std::string_view text, const std::string& name,
                                     std::optional<Dialect> dialect = std::nullopt, const Variables& given = {});

/// Reads a configuration of Megatron-Bridge, YAML or JSON by its name's end: its sections, or the fields of a model
/// provider without one, those of other sections beside them. Throws Error{io}, Error{input} with file and key.
[[nodiscard]] SaidLaunch read_configuration(const std::filesystem::path& path);

}  // namespace pipeweaver::launch
