#include "launch/read/words.hpp"

#include "launch/read/megatron_table.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/frameworks/sharded.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/titan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <variant>

namespace pipeweaver::launch {

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool is_flag(const std::string& word) { return word.size() > 2 && word.starts_with("--") && is_letter(word[2]); }

std::string with(std::string text, char from, char to) {
    std::replace(text.begin(), text.end(), from, to);
    return text;
}

// "--name=value" apart; flags of ms-swift have underscores, torchtitan takes both.
Setting flag_of(Dialect dialect, const Word& word, const std::string& where) {
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    Setting setting{dialect == Dialect::titan_settings ? with(name, '-', '_') : with(name, '_', '-'), {}, where};
    if (equals != std::string::npos) setting.values.push_back(word.text.substr(equals + 1));
    return setting;
}

// torchtitan's "activation-checkpoint:full": a word of its own, which ends the values before it.
std::optional<Setting> kind_of(Dialect dialect, const Word& word, const std::string& where) {
    constexpr std::string_view begin = "activation-checkpoint:";
    const std::string text = with(word.text, '_', '-');
    if (dialect != Dialect::titan_settings || !text.starts_with(begin)) return std::nullopt;
    return Setting{"activation_checkpoint", {text.substr(begin.size())}, where};
}

// A value in Hydra's quotes, which "E|(t*2|)*3" needs, without them.
std::string unquoted(const std::string& value) {
    const bool quoted = value.size() > 1 && value.front() == value.back() && (value[0] == '"' || value[0] == '\'');
    return quoted ? value.substr(1, value.size() - 2) : value;
}

// "model.num_layers=64" or "+model.num_layers=64"; nothing for other words.
std::optional<Setting> override_of(const Word& word, const std::string& where) {
    const std::size_t equals = word.text.find('=');
    const std::size_t begin = word.text.find_first_not_of('+');
    if (equals == std::string::npos || begin >= equals) return std::nullopt;
    const std::string name = word.text.substr(begin, equals - begin);
    const auto plain = [](char c) {
        return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    if (name.find('.') == std::string::npos || !is_letter(name.front()) ||
        !std::all_of(name.begin(), name.end(), plain))
        return std::nullopt;
    return Setting{name, {unquoted(word.text.substr(equals + 1))}, where};
}

// LoongForge's "+model.image_encoder.freeze=True" among arguments, likewise.
std::optional<Setting> override_among(Dialect dialect, const Word& word, const std::string& where) {
    const bool is_marked = word.text.starts_with('+') || word.text.starts_with("model.");
    return dialect == Dialect::megatron_arguments && is_marked ? override_of(word, where) : std::nullopt;
}

std::string where_of(const Word& word, const std::string& from) {
    return word.line == 0 ? from : fmt::format("{}:{}", from, word.line);
}

// Whether a word is a variable alone, behind a setting that has its value or takes none.
bool is_left_out(Dialect dialect, const Word& word, const Setting& setting) {
    if (are_arguments(word)) return true;
    if (word.unknown.empty() || word.quoted || word.text != word.unknown) return false;
    if (!setting.values.empty()) return true;
    const auto rows = megatron_rows();
    return dialect == Dialect::megatron_arguments && std::any_of(rows.begin(), rows.end(), [&](const MegatronRow& row) {
               return row.flag == setting.name && std::holds_alternative<bool MegatronLaunch::*>(row.member);
           });
}

// A tokenizer that is not known leaves the vocabulary between the least and the most of all.
bool names_tokenizer(const std::string& name) {
    const auto rows = megatron_rows();
    return std::any_of(rows.begin(), rows.end(), [&](const MegatronRow& row) {
        const bool is_one = row.member == MegatronRow::Member(&MegatronLaunch::tokenizer_model) ||
                            row.member == MegatronRow::Member(&MegatronLaunch::vocab_file);
        return is_one && (row.flag == name || row.field == name);
    });
}

// Of a known setting a value that is not known: without it nothing can be said. False: it is another.
bool leave_open(Dialect dialect, const Word& word, const Setting& setting, SaidLaunch& said) {
    if (word.unknown.empty() || !is_known(dialect, setting.name) || names_tokenizer(setting.name)) return false;
    const bool is_key = dialect == Dialect::bridge_overrides;
    said.unset.push_back({(is_key ? "" : "--") + setting.name, word.unknown, setting.where});
    return true;
}

// The setting that a flag of the program says ("-tp 2", "--seq_length=4096"); none: it is no such flag. `value` is set
// to the word that has its value.
std::optional<Setting> said_by_flag(const std::vector<Word>& words, std::size_t at, const Word*& value) {
    const frameworks::Entry* const entry = entry_started(words);
    const std::string& word = words[at].text;
    if (entry == nullptr || !word.starts_with('-')) return std::nullopt;
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals).substr(word.starts_with("--") ? 2 : 1);
    std::replace(name.begin(), name.end(), '-', '_');
    for (const auto& [flag, setting] : entry->flags) {
        if (flag != name) continue;
        const bool is_joined = equals < word.size();
        if (!is_joined && at + 1 == words.size()) return std::nullopt;
        value = is_joined ? &words[at] : &words[at + 1];
        return Setting{std::string(setting), {is_joined ? word.substr(equals + 1) : value->text}, {}};
    }
    return std::nullopt;
}

// Overrides, and flags of the program that say some of them.
void put_overrides(const std::vector<Word>& words, SaidLaunch& said) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const Word* value = &words[i];
        auto one = override_of(words[i], {});
        if (!one) one = said_by_flag(words, i, value);
        if (!one) continue;
        one->where = where_of(words[i], said.from);
        if (!leave_open(Dialect::bridge_overrides, *value, *one, said)) said.settings.push_back(std::move(*one));
    }
}

}  // namespace

std::string_view name_of(Dialect dialect) {
    constexpr std::array<std::string_view, 5> names{"Megatron-LM's arguments", "Megatron-Bridge's overrides",
                                                    "torchtitan's settings", "a sharded trainer's settings",
                                                    "variables of MegatronMIMO's grids"};
    return names[static_cast<std::size_t>(dialect)];
}

bool are_arguments(const Word& word) {
    const std::string& unknown = word.unknown;
    return word.text == unknown && (unknown == "$@" || unknown == "$*" || unknown.starts_with("${@"));
}

std::vector<Word> without_redirections(const std::vector<Word>& words) {
    std::vector<Word> left;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& text = words[i].text;
        const bool is_placeholder = text.starts_with('<') && text.ends_with('>');
        if (!words[i].redirects || is_placeholder)
            left.push_back(words[i]);
        else if (text.find_first_not_of("0123456789<>") == std::string::npos)
            ++i;  // the file is the next word
    }
    return left;
}

std::vector<std::string> texts_of(const std::vector<Word>& words) {
    std::vector<std::string> texts;
    texts.reserve(words.size());
    for (const Word& word : words) texts.push_back(word.text);
    return texts;
}

const frameworks::Entry* entry_started(const std::vector<Word>& words) { return frameworks::entry_of(texts_of(words)); }

bool is_known(Dialect dialect, const std::string& name) {
    if (dialect == Dialect::sharded_settings) return frameworks::is_sharded_setting(name);
    return dialect == Dialect::titan_settings ? is_titan_setting(name) : is_megatron_setting(dialect, name);
}

void put_settings(Dialect dialect, const std::vector<Word>& words, SaidLaunch& said) {
    if (dialect == Dialect::bridge_overrides) return put_overrides(words, said);
    std::vector<Setting>& settings = said.settings;
    bool open = false;  // values of the last flag may follow
    for (const Word& word : without_redirections(words)) {
        const std::string where = where_of(word, said.from);
        auto apart = kind_of(dialect, word, where);
        if (!apart) apart = override_among(dialect, word, where);
        if (apart) {
            settings.push_back(std::move(*apart));
            open = false;
            continue;
        }
        if (!is_flag(word.text) && !open) continue;
        if (is_flag(word.text)) {
            settings.push_back(flag_of(dialect, word, where));
            open = settings.back().values.empty();
        } else if (is_left_out(dialect, word, settings.back())) {
            said.notes.push_back(fmt::format("{}: '{}' is set to no plain text in the script: it is taken as empty",
                                             where, word.unknown));
            continue;
        } else {
            settings.back().values.push_back(word.text);
        }
        if (!leave_open(dialect, word, settings.back(), said)) continue;
        settings.pop_back();
        open = false;
    }
}

std::vector<std::string> notes_of_repeated(Dialect dialect, const std::vector<Setting>& settings) {
    std::map<std::string, std::vector<std::string>> all;
    for (const Setting& one : settings)
        if (is_known(dialect, one.name))
            all[one.name].push_back(one.values.empty() ? "on" : fmt::format("{}", fmt::join(one.values, " ")));
    std::vector<std::string> notes;
    for (const auto& [name, values] : all) {
        if (std::equal(values.begin() + 1, values.end(), values.begin())) continue;
        const std::string times = values.size() == 2 ? "twice" : fmt::format("{} times", values.size());
        notes.push_back(fmt::format("{}{} is given {} ({}): the last counts",
                                    dialect == Dialect::bridge_overrides ? "" : "--", name, times,
                                    fmt::join(values, ", ")));
    }
    return notes;
}

Guess guess_of(Dialect dialect, const std::vector<Word>& words) {
    Guess found{dialect, 0};
    for (const Word& word : words) {
        const auto one = dialect == Dialect::bridge_overrides ? override_of(word, {})
                         : is_flag(word.text)                 ? std::optional(flag_of(dialect, word, {}))
                                                              : std::nullopt;
        found.known += one && is_known(dialect, one->name) ? 1U : 0U;
    }
    return found;
}

}  // namespace pipeweaver::launch
