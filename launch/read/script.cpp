// The command of a bash script that launches something, by the flags that it has.
#include "launch/read/script.hpp"

#include "launch/read/entry.hpp"
#include "launch/read/file_words.hpp"
#include "launch/read/grids.hpp"
#include "launch/read/recipe.hpp"
#include "launch/read/sharded_words.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipeweaver::launch {

Variables parse_variables(const std::string& text) {
    Variables variables;
    std::string last;  // "ROW=2,1" is one value
    for (const std::string& one : parts_of(text)) {
        if (one.empty()) continue;
        const std::size_t equals = one.find('=');
        if (equals == std::string::npos && !last.empty()) {
            variables[last] += "," + one;
            continue;
        }
        if (equals == std::string::npos || equals == 0) fail(ErrorKind::input, "--set: {}", must_be(one, "NAME=VALUE"));
        last = one.substr(0, equals);
        variables[last] = one.substr(equals + 1);
    }
    return variables;
}

namespace {

// The dialect that has the most settings among the words, and how many of them it knows. One whose recipe they name is
// it, with settings more.
Guess guess(const std::vector<Word>& words) {
    Guess best{Dialect::sharded_settings, sharded_settings_among(words)};
    if (best.known > 0) return best;
    constexpr std::size_t by_recipe = 4;  // settings that the name of a recipe is worth
    if (const auto dialect = dialect_by_recipe(words)) return {*dialect, guess_of(*dialect, words).known + by_recipe};
    constexpr std::size_t by_file = 3;  // and a file of them
    if (names_file(words))
        return {Dialect::megatron_arguments, guess_of(Dialect::megatron_arguments, words).known + by_file};
    for (const Dialect dialect : {Dialect::megatron_arguments, Dialect::bridge_overrides, Dialect::titan_settings})
        if (const Guess one = guess_of(dialect, words); one.known > best.known) best = one;
    return best;
}

struct Choice {
    const ScriptCommand* command = nullptr;  // null: none has settings
    Guess best{};
    std::size_t launches = 0;  // commands with so many settings that they launch something
};

// The last of those with the most settings, from `begin` on.
Choice choose(const Script& script, std::size_t begin, std::optional<Dialect> dialect) {
    constexpr std::size_t enough = 3;
    Choice choice;
    for (std::size_t i = begin; i < script.commands.size(); ++i) {
        const auto& words = script.commands[i].words;
        const Guess now = dialect ? guess_of(*dialect, words) : guess(words);
        if (now.known == 0) continue;
        choice.launches += now.known >= enough ? 1U : 0U;
        if (now.known < choice.best.known) continue;
        choice.best = now;
        choice.command = &script.commands[i];
    }
    return choice;
}

// What of a script may be other than it is taken.
void add_doubts(const Script& script, const std::string& name, SaidLaunch& said) {
    for (const auto& [file, line] : script.not_sourced)
        said.notes.push_back(fmt::format("{}:{}: '{}' is not at hand: what it sets is not known", name, line, file));
    if (!script.not_sourced.empty()) said.not_at_hand = said.notes[said.notes.size() - script.not_sourced.size()];
    said.notes.insert(said.notes.end(), script.loops.begin(), script.loops.end());
    for (const auto& [variable, line] : script.used_branches) {
        said.notes.push_back(
            fmt::format("{}:{}: {} is set in a branch: what is set last is taken", name, line, variable));
        const auto value = said.variables.find(variable);
        if (value != said.variables.end()) said.chosen.insert(*value);
    }
}

// The GPUs that a command of a script starts, and its settings that are known.
SaidLaunch started_by(const Script& script, std::size_t command, Dialect dialect, const std::string& name) {
    SaidLaunch said{dialect, name, {}, {}, script.variables};
    const ScriptCommand& one = script.commands[command];
    for (const auto& [variable, value] : one.in_front) said.variables[variable] = value;
    put_settings(dialect, one.words, said);
    put_gpus(one.words, said);
    std::erase_if(said.settings, [&](const Setting& setting) { return !is_known(dialect, setting.name); });
    return said;
}

// The variable by which a launcher says how many nodes there are, where settings follow it: with 2 in its place the
// command starts twice the GPUs, with other values. Empty: none.
std::string multiplier_of(std::string_view text, const Script& script, std::size_t command, Dialect dialect,
                          const std::string& name, const Variables& given) {
    constexpr std::size_t most_names = 32, longest_text = 1U << 16U;  // each is a reading
    const auto& names = script.taken_as_one;
    if (dialect == Dialect::sharded_settings || names.size() > most_names || text.size() > longest_text) return {};
    const SaidLaunch one = started_by(script, command, dialect, name);
    if (one.gpus <= 0) return {};
    const auto same = [](const Setting& a, const Setting& b) { return a.name == b.name && a.values == b.values; };
    for (const std::string& variable : names) {
        Variables with = given;
        with[variable] = "2";
        const Script other = read_commands(text, name, with);
        if (other.commands.size() != script.commands.size()) continue;
        const SaidLaunch two = started_by(other, command, dialect, name);
        if (two.gpus == 2 * one.gpus &&
            !std::equal(one.settings.begin(), one.settings.end(), two.settings.begin(), two.settings.end(), same))
            return variable;
    }
    return {};
}

}  // namespace

SaidLaunch read_script(std::string_view text, const std::string& name, std::optional<Dialect> dialect,
                       const Variables& given) {
    if (text.find("\r\n") != std::string_view::npos)
        fail(ErrorKind::input, "{}: has CRLF line ends, allowed are LF, which bash takes", name);
    Script script = read_commands(text, name, given);
    const Choice any = choose(script, 0, dialect), called = choose(script, script.uncalled, dialect);
    const ScriptCommand* const command = called.launches > 0 ? called.command : any.command;
    const auto* const chosen = command == nullptr ? nullptr : &command->words;
    const Guess best = called.launches > 0 ? called.best : any.best;
    if (auto said = dialect ? std::nullopt : said_grids(script, text, name, chosen)) {
        add_doubts(script, name, *said);
        return std::move(*said);
    }
    if (chosen == nullptr)
        for (const ScriptCommand& one : script.commands) refuse_entry(one.words, name);
    else
        refuse_entry(*chosen, name);
    if (chosen == nullptr)
        fail(ErrorKind::input,
             "{}: has no command with flags of Megatron-LM, overrides of Megatron-Bridge, settings of torchtitan or of "
             "a trainer on DeepSpeed or FSDP; of a file of arrays alone name the script that sources it",
             name);
    const auto at = static_cast<std::size_t>(command - script.commands.data());
    std::string multiplies = multiplier_of(text, script, at, best.dialect, name, given);
    SaidLaunch said{best.dialect, name, {}, {}, std::move(script.variables)};
    said.multiplies = std::move(multiplies);
    for (const auto& [variable, value] : command->in_front) said.variables[variable] = value;
    said.documents = std::move(script.documents);
    if (best.dialect == Dialect::sharded_settings) {
        put_sharded_words(*chosen, said);
    } else {
        const std::vector<Word> words = with_file(*chosen, said);
        put_settings(best.dialect, words, said);
        put_entry(words, said);
    }
    for (std::string& note : notes_of_repeated(best.dialect, said.settings)) said.notes.push_back(std::move(note));
    put_recipe(*chosen, said);
    if (any.launches > 1)
        said.notes.push_back(fmt::format("{} commands of {} launch something: the one at line {} is read", any.launches,
                                         name, chosen->front().line));
    add_doubts(script, name, said);
    return said;
}

SaidLaunch read_launch(const std::filesystem::path& path, std::optional<Dialect> dialect, const Variables& given) {
    const auto end = path.extension();
    if (end == ".yaml" || end == ".yml" || end == ".json") return read_configuration(path);
    if (end == ".toml")
        fail(ErrorKind::input,
             "{}: is TOML, which is not read: torchtitan takes its settings from the command line since 0.3; read are "
             "a launch script, and --torchtitan-args of `pipeweaver check`",
             path.string());
    return read_script(read_file(path, longest_file), path.string(), dialect, given);
}

}  // namespace pipeweaver::launch
