// Ways into frameworks: the program that a command starts, what it sets where nobody says it, and what it takes from
// elsewhere. Data: a correction is a row.
//
// Determinism  Tables alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::frameworks {

/// In whose words a launch is said.
enum class Dialect : std::uint8_t {
    megatron_arguments,
    bridge_overrides,
    titan_settings,
    sharded_settings,
    grid_variables
};

/// A value that an entry gives a setting that the launch does not say.
struct Default {
    std::string_view setting;  ///< in the words of the entry's dialect: "bf16", "model.bf16"
    std::string_view value;
    std::string_view unless{};  ///< not where this setting is said either
};

/// A value that one of an entry's programs gives a setting that the launch does not say.
struct ProgramDefault {
    std::string_view program, setting, value;
};

/// A value that a setting has where another one has a value and this one is not said.
struct Implied {
    std::string_view setting, value;  ///< "recompute-granularity", "full"
    std::string_view then, is;        ///< "recompute-method", "uniform"
};

/// A setting that has another meaning in this entry than in its dialect.
struct Meaning {
    std::string_view setting;
    std::string_view as;        ///< the setting of the dialect that it is; empty: none of those that are read
    std::string_view beside{};  ///< where this one is said alone; empty: always
};

/// A variable of the environment that says a setting.
struct VariableSetting {
    std::string_view variable, setting;
};

/// A program that is launched.
struct Entry {
    std::string_view name;  ///< "ms-swift"
    Dialect dialect = Dialect::megatron_arguments;
    std::vector<std::string_view>
        programs{};  ///< ends of words in a row: "megatron sft", "examples/multimodal/train.py"
    std::vector<Default> defaults{};
    std::vector<Meaning> meanings{};
    /// Settings whose value names what sets others: a recipe, a configuration of a registry, a model.
    std::vector<std::string_view> named{};
    std::vector<std::string_view> named_by_variables{};  ///< the same of the script's variables
    std::string_view names{};                            ///< what these name, in words: "recipe"
    std::string_view say{};                              ///< how what it sets is told to us
    std::string_view model{};  ///< the setting that names the model, whose sizes are not at hand
    /// Settings that name a checkpoint's folder, which is called as its model is, where `model` is not said.
    std::vector<std::string_view> checkpoints{};
    std::string_view packs{};    ///< the setting that fills microbatches; without it they hold what samples have
    Default fills{};             ///< a setting and its value with which they are full, too
    std::string_view refused{};  ///< not empty: why such a launch is not read
    std::vector<std::pair<std::string_view, std::string_view>> sets{};  ///< variables of the environment
    std::string_view source{};                                          ///< where all this is from
    std::string_view framework{};           ///< whose rules count, by its name; empty: the first of the dialect
    std::vector<std::string_view> marks{};  ///< keys that a configuration file of this entry has, and no other's
    /// Programs that others have, too: theirs are the words only with one of `marks` or a configuration file.
    std::vector<std::string_view> common_programs{};
    std::vector<VariableSetting> by_variables{};
    std::vector<std::string_view> refused_by{};  ///< variables that make another trainer of it, which is not read
    std::vector<std::pair<std::string_view, std::string_view>> turned_by{};  ///< and those with the name of its entry
    std::vector<std::pair<std::string_view, std::string_view>> turned_by_settings{};  ///< the same of flags
    std::vector<Implied> implied{};
    /// How the name of a recipe is made of flags and, in capital letters, variables: "{model}_{mode}_config". A flag
    /// may have other spellings and a value where none is said: "{compute_dtype|-c=bf16}".
    std::vector<std::string_view> recipes{};
    std::string_view recipe_framework{};  ///< whose rules are nearest to what runs the recipes that are known
    std::vector<std::pair<std::string_view, std::string_view>> recipe_words{};  ///< what is called otherwise in it
    std::vector<std::pair<std::string_view, std::string_view>> flags{};  ///< of the program, and the settings they say
    std::string_view builds{};                 ///< whose encoders it has, of built_encoders(); empty: not known
    bool turns_off_sequence_parallel = false;  ///< without tensor parallelism, where others refuse it
    bool spreads_layers = false;         ///< one process has all GPUs where nobody says how many processes there are
    bool named_by_program = false;       ///< the program is what `names` calls, and sets what it does not say
    bool counts_loss_per_token = false;  ///< it sets this itself where it fine-tunes with context parallelism
    bool bounds_items = false;           ///< no sample is longer than its length says, positions of images among them
    std::vector<std::pair<std::string_view, std::string_view>> unbounds{};  ///< settings and values with which some are
    std::vector<ProgramDefault> program_defaults{};
    std::string_view unbounded_family{};     ///< models of which an encoder reads items whole that are cut behind it
    std::vector<Default> unbounds_unless{};  ///< the same, where nobody says the third setting
    std::vector<std::string_view> data{};    ///< settings that name data sets
    /// Settings and beginnings of their values by which samples are text, whatever the data is.
    std::vector<std::pair<std::string_view, std::string_view>> texts{};
    std::vector<std::string_view> remakes{};    ///< settings with which samples are made in another way than its own
    std::vector<std::string_view> lengthens{};  ///< settings whose text, or file of text, is put into samples
    bool attention_by_variables = false;        ///< NVTE_*_ATTN choose the backend, where no other than auto is said
    std::vector<Default> by_version{};          ///< other values that some versions have where nobody says the setting
    std::string_view commands{};  ///< not empty: which of these trains a file of it is said by the command alone
    bool takes_file = false;      ///< of flags, a YAML file among the words has some in front of the others
};

[[nodiscard]] std::span<const Entry> entries();

/// The entry of these words of a command, in order; null: none has such a program.
[[nodiscard]] const Entry* entry_of(const std::vector<std::string>& words);

/// The entry of this name; null: there is none.
[[nodiscard]] const Entry* entry_named(std::string_view name);

/// The entry of a configuration file with these keys, of which one in a section is "section.key"; null: none.
[[nodiscard]] const Entry* entry_of_keys(const std::vector<std::string>& keys);

/// Whether these words of a command start the program.
[[nodiscard]] bool starts(const std::vector<std::string>& words, std::string_view program);

/// How many words lead to what the program itself is told: launchers, their options and its name. Of an entry without
/// programs the first that ends in ".py", or that follows "-m", is the program.
[[nodiscard]] std::size_t words_before(const Entry& entry, const std::vector<std::string>& words);

/// The entry that all launches of a dialect take that name no other program; null: the dialect's own defaults count.
[[nodiscard]] const Entry* entry_of(Dialect dialect);

}  // namespace pipeweaver::frameworks
