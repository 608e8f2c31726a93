#include "launch/read/sharded_words.hpp"

#include "launch/read/entry.hpp"
#include "launch/read/sharded_files.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/frameworks/sharded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace pipeweaver::launch {

namespace {

using frameworks::Entry;

// "deepspeed=ds_z3.json" is a setting.
bool names_configuration(const std::string& text) {
    if (text.find('=') != std::string::npos) return false;
    return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

bool is_sharded_flag(const std::string& text) {
    return text.size() > 2 && text.starts_with("--") && std::isalpha(static_cast<unsigned char>(text[2])) != 0;
}

// "--max-length" and "--max_length" are one.
std::string flag_name(const std::string& text) {
    std::string name = text.substr(2, text.find('=') == std::string::npos ? std::string::npos : text.find('=') - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

// Reads the words behind a program, or those of a launcher in front of it with the launcher's name before each setting.
class ShardedWords {
public:
    ShardedWords(SaidLaunch& said, std::string prefix) : said_(said), prefix_(std::move(prefix)) {}

    void read(const std::vector<Word>& words, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) take(words[i]);
    }

    std::vector<Setting> settings;

private:
    void take(const Word& word) {
        if (are_arguments(word)) return;
        const std::string where = word.line == 0 ? said_.from : fmt::format("{}:{}", said_.from, word.line);
        const std::size_t equals = word.text.find('=');
        if (is_sharded_flag(word.text)) {
            settings.push_back({prefix_ + flag_name(word.text), {}, where});
            if (equals != std::string::npos) settings.back().values.push_back(word.text.substr(equals + 1));
            is_open_ = equals == std::string::npos;
            leave_open(word);
        } else if (word.text == "-c") {
            settings.push_back({"config", {}, where});
            is_open_ = true;
        } else if (is_open_ && !is_configuration_flag()) {
            settings.back().values.push_back(word.text);
            leave_open(word);
        } else if (prefix_.empty() && names_configuration(word.text)) {
            if (is_open_) settings.pop_back();
            is_open_ = false;
            read_file(word);
        } else if (prefix_.empty() && equals != std::string::npos && equals > 0) {
            settings.push_back({word.text.substr(0, equals), {word.text.substr(equals + 1)}, where});
            leave_open(word);
        }
    }

    // Of a known setting a value that is not known: without it nothing can be said.
    void leave_open(const Word& word) {
        if (word.unknown.empty() || !frameworks::is_sharded_setting(settings.back().name)) return;
        said_.unset.push_back({"--" + settings.back().name, word.unknown, settings.back().where});
        settings.pop_back();
        is_open_ = false;
    }

    bool is_configuration_flag() const {
        return prefix_.empty() && settings.back().values.empty() &&
               (settings.back().name == "config" || settings.back().name == "config_file");
    }

    void read_file(const Word& word) {
        const auto document = document_named(word.text, said_);
        if (!document) {
            said_.missing.push_back(word.text);
            return;
        }
        auto more = flattened(document->root(), {}, document->name());
        settings.insert(settings.begin(), more.begin(), more.end());
    }

    SaidLaunch& said_;
    std::string prefix_;
    bool is_open_ = false;  // values of the last flag may follow
};

// Of a program that is anybody's script, so many flags of Hugging Face's Trainer make it one.
constexpr std::size_t enough_flags = 3;

// Of the trainer, or of one that a variable makes of it.
std::size_t known_flags(const Entry& entry, const std::vector<Word>& words, std::size_t begin) {
    std::vector<const frameworks::ShardedTrainer*> trainers{frameworks::sharded_trainer(entry.name)};
    for (const auto& [variable, name] : entry.turned_by)
        if (const auto* const other = frameworks::sharded_trainer(name)) trainers.push_back(other);
    const auto is_known = [&](const Word& word) {
        return is_sharded_flag(word.text) && std::any_of(trainers.begin(), trainers.end(), [&](const auto* one) {
                   return frameworks::sharded_row(*one, flag_name(word.text)) != nullptr;
               });
    };
    return static_cast<std::size_t>(
        std::count_if(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end(), is_known));
}

// Whether the words before the program start it by accelerate, which starts trainers alone.
bool is_of_accelerate(const std::vector<std::string>& texts, std::size_t begin) {
    const auto program = texts.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::find(texts.begin(), program, "accelerate") != program;
}

// The trainer that the words start; null: none.
const Entry* sharded_entry_of(const std::vector<Word>& words) {
    const auto texts = texts_of(words);
    const Entry* const named = frameworks::entry_of(texts);
    if (named != nullptr) return named->dialect == Dialect::sharded_settings ? named : nullptr;
    const Entry* const any = frameworks::entry_of(Dialect::sharded_settings);
    const std::size_t begin = frameworks::words_before(*any, texts);
    const bool is_script = begin > 1 && (texts[begin - 1].ends_with(".py") || texts[begin - 2] == "-m");
    if (!is_script) return nullptr;
    const std::size_t enough = is_of_accelerate(texts, begin) ? 1 : enough_flags;
    return known_flags(*any, words, begin) >= enough ? any : nullptr;
}

std::string in_small(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// LLaMA-Factory ff6d4d12 src/llamafactory/extras/misc.py is_env_enabled
bool is_enabled(std::string_view variable, const SaidLaunch& said) {
    const auto found = said.variables.find(std::string(variable));
    if (found == said.variables.end()) return false;
    const std::string value = in_small(found->second);
    return value == "1" || value == "true" || value == "y";
}

void refuse_by_variables(const Entry& entry, const SaidLaunch& said) {
    for (const std::string_view name : entry.refused_by)
        if (is_enabled(name, said))
            fail(ErrorKind::input, "{}: {}={} makes another trainer of {}, which is not read", said.from, name,
                 said.variables.at(std::string(name)), entry.name);
}

bool is_turned_on(std::string_view setting, const SaidLaunch& said) {
    const auto found = std::find_if(said.settings.rbegin(), said.settings.rend(),
                                    [&](const Setting& one) { return one.name == setting; });
    if (found == said.settings.rend()) return false;
    constexpr std::array<std::string_view, 5> off{"false", "no", "f", "n", "0"};  // transformers hf_argparser.py
    return found->values.empty() || std::find(off.begin(), off.end(), in_small(found->values.front())) == off.end();
}

// The settings in the words of that trainer's dialect, those of Megatron Core with '-' in names.
void turn_to(std::string_view name, SaidLaunch& said) {
    said.entry = frameworks::entry_named(name);
    said.dialect = said.entry->dialect;
    if (said.dialect == Dialect::sharded_settings) return;
    for (Setting& one : said.settings) std::replace(one.name.begin(), one.name.end(), '_', '-');
}

// Of a trainer that a variable, or a flag, makes another.
void turn(SaidLaunch& said) {
    for (const auto& [variable, name] : said.entry->turned_by)
        if (is_enabled(variable, said)) return turn_to(name, said);
    for (const auto& [setting, name] : said.entry->turned_by_settings)
        if (is_turned_on(setting, said)) return turn_to(name, said);
}

void put_named_model(SaidLaunch& said) {
    const auto take = [&](std::string_view name) {
        for (const Setting& one : said.settings)
            if (one.name == name && one.values.size() == 1) said.named_model = one.values.front();
    };
    take(said.entry->model);
    for (const std::string_view name : said.entry->checkpoints)
        if (said.named_model.empty()) take(name);
}

}  // namespace

std::size_t sharded_settings_among(const std::vector<Word>& words) {
    const Entry* const entry = sharded_entry_of(words);
    if (entry == nullptr) return 0;
    const std::size_t begin = frameworks::words_before(*entry, texts_of(words));
    const bool has_file = std::any_of(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end(),
                                      [](const Word& word) { return names_configuration(word.text); });
    const std::size_t known = known_flags(*entry, words, begin) + (has_file ? enough_flags : 0);
    return known == 0 ? 0 : known + 1;
}

void put_sharded_words(const std::vector<Word>& all, SaidLaunch& said) {
    const std::vector<Word> words = without_redirections(all);
    said.entry = sharded_entry_of(words);
    refuse_by_variables(*said.entry, said);
    const auto texts = texts_of(words);
    const std::size_t begin = frameworks::words_before(*said.entry, texts);
    for (const auto& [variable, setting] : said.entry->by_variables)
        if (const auto found = said.variables.find(std::string(variable)); found != said.variables.end())
            said.settings.push_back({std::string(setting), {found->second}, std::string(variable)});
    const bool is_accelerate = is_of_accelerate(texts, begin);
    ShardedWords launcher(said, "accelerate."), program(said, {});
    if (is_accelerate) launcher.read(words, 0, begin - 1);
    program.read(words, begin, words.size());
    for (const auto* const some : {&launcher.settings, &program.settings})
        said.settings.insert(said.settings.end(), some->begin(), some->end());
    put_program_defaults(words, said);
    put_gpus(words, said);
    put_named_model(said);
    turn(said);
    if (said.named_model.empty()) put_named_model(said);  // by another name
    if (!said.entry->named_by_program || begin == 0) return;
    said.named = fmt::format("the {} {}", said.entry->names, texts[begin - 1]);
}

std::optional<SaidLaunch> sharded_configuration(const std::filesystem::path& path) {
    const auto document = JsonDocument::read_large(path);
    if (!document.root().is_object()) return std::nullopt;
    SaidLaunch said{Dialect::sharded_settings, path.string(), flattened(document.root(), {}, path.string()), {}, {}};
    std::vector<std::string> keys;
    for (const Setting& one : said.settings) keys.push_back(one.name);
    said.entry = frameworks::entry_of_keys(keys);
    if (said.entry == nullptr) return std::nullopt;
    if (!said.entry->refused.empty())
        fail(ErrorKind::input, "{}: is of {}, which is not read: {}", path.string(), said.entry->name,
             said.entry->refused);
    said.is_alone = true;
    put_named_model(said);
    return said;
}

}  // namespace pipeweaver::launch
