#include "launch/read/entry.hpp"

#include "launch/read/shell/arithmetic.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/frameworks/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pipeweaver::launch {

namespace {

// The value of the first of these that is said.
std::optional<std::string> first_of(const std::vector<Word>& words, const std::vector<std::string_view>& names) {
    for (const std::string_view name : names)
        if (auto value = flag_value(words, name)) return value;
    return std::nullopt;
}

// A file of sizes is called as its model is.
std::string without_yaml(const std::string& path) {
    constexpr std::string_view end = ".yaml";
    return path.ends_with(end) ? path.substr(0, path.size() - end.size()) : path;
}

// "recipe 'x'", or the Python program that has it.
std::string what_is_named(const frameworks::Entry& entry, const std::vector<Word>& words, const Variables& variables) {
    if (const auto value = first_of(words, entry.named)) return fmt::format("{} '{}'", entry.names, *value);
    for (const std::string_view name : entry.named_by_variables)
        if (const auto found = variables.find(std::string(name)); found != variables.end())
            return fmt::format("{} '{}'", entry.names, found->second);
    if (entry.dialect != Dialect::bridge_overrides) return {};
    const auto program =
        std::find_if(words.begin(), words.end(), [](const Word& word) { return word.text.ends_with(".py"); });
    return program == words.end() ? std::string() : fmt::format("the {} of {}", entry.names, program->text);
}

void put_named(const std::vector<Word>& words, SaidLaunch& said) {
    said.named = what_is_named(*said.entry, words, said.variables);
    if (said.entry->model.empty()) return;
    const auto model = flag_value(words, said.entry->model);
    said.named_model = model ? *model : without_yaml(first_of(words, said.entry->checkpoints).value_or(std::string()));
}

// None: it is no whole number.
std::optional<std::int64_t> number_of(const std::string& text) {
    return worked_out(text, [](const std::string& word) { return word; });
}

// A name of a launcher as it is said.
struct SaidCount {
    std::string text;  // "--nnodes 4"
    std::optional<std::int64_t> number;
};

// None: it is not said.
std::optional<SaidCount> said_to(const frameworks::Launcher& launcher, std::string_view name,
                                 const std::vector<Word>& words, const Variables& variables) {
    if (name.empty()) return std::nullopt;
    const std::string as_name(name);
    if (launcher.by_variables) {
        const auto found = variables.find(as_name);
        if (found == variables.end()) return std::nullopt;
        return SaidCount{as_name + "=" + found->second, number_of(found->second)};
    }
    std::string dashed = as_name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    for (const std::string& spelling : {as_name, dashed})
        if (const auto value = flag_value(words, spelling))
            return SaidCount{"--" + spelling + " " + *value, number_of(*value)};
    return std::nullopt;
}

}  // namespace

std::optional<std::string> flag_value(const std::vector<Word>& words, std::string_view name) {
    const std::string flag = (name.starts_with('-') ? "" : "--") + std::string(name);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (word.starts_with(flag + "=")) return word.substr(flag.size() + 1);
        if (word == flag && i + 1 < words.size()) return words[i + 1].text;
    }
    return std::nullopt;
}

void refuse_entry(const std::vector<Word>& words, const std::string& from) {
    const frameworks::Entry* found = entry_started(words);
    if (found != nullptr && !found->refused.empty())
        fail(ErrorKind::input, "{}: launches {}, which is not read: {}", from, found->name, found->refused);
}

// Of the first launcher whose names are said.
void put_gpus(const std::vector<Word>& words, SaidLaunch& said) {
    for (const frameworks::Launcher& launcher : frameworks::launchers()) {
        const auto all = said_to(launcher, launcher.all, words, said.variables);
        const auto a_node = said_to(launcher, launcher.a_node, words, said.variables);
        const auto nodes = said_to(launcher, launcher.nodes, words, said.variables);
        if ((!all && !a_node) || (launcher.only_both && !nodes)) continue;
        const SaidCount& first = all ? *all : *a_node;
        said.says_gpus = first.text + (nodes ? ", " + nodes->text : std::string());
        if (!first.number || (nodes && !nodes->number)) return;
        said.gpus = *first.number * (nodes ? *nodes->number : 1);
        return;
    }
}

void put_program_defaults(const std::vector<Word>& words, SaidLaunch& said) {
    const auto texts = texts_of(words);
    for (const frameworks::ProgramDefault& one : said.entry->program_defaults) {
        const bool is_said = std::any_of(said.settings.begin(), said.settings.end(),
                                         [&](const Setting& other) { return other.name == one.setting; });
        const bool is_left = std::any_of(said.unset.begin(), said.unset.end(),
                                         [&](const Unset& other) { return other.setting.ends_with(one.setting); });
        if (!is_said && !is_left && frameworks::starts(texts, one.program))
            said.settings.push_back({std::string(one.setting), {std::string(one.value)}, std::string(one.program)});
    }
}

void put_entry(const std::vector<Word>& words, SaidLaunch& said) {
    const frameworks::Entry* found = entry_started(words);
    put_gpus(words, said);
    said.entry = found != nullptr && found->dialect == said.dialect ? found : frameworks::entry_of(said.dialect);
    if (said.entry == nullptr) return;
    put_program_defaults(words, said);
    put_named(words, said);
}

void put_entry_of_option(const std::vector<Word>& words, SaidLaunch& said) {
    said.entry = frameworks::entry_of(said.dialect);
    if (said.entry != nullptr || said.dialect != Dialect::titan_settings) return;
    const frameworks::Entry* const titan = frameworks::entry_named("torchtitan");
    if (!first_of(words, titan->named)) return;
    said.entry = titan;
    put_named(words, said);
}

}  // namespace pipeweaver::launch
