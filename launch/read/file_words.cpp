#include "launch/read/file_words.hpp"

#include "launch/read/sharded_files.hpp"
#include "pipeweaver/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace pipeweaver::launch {

namespace {

bool is_yaml(const Word& word) {
    return !word.text.starts_with("--") && (word.text.ends_with(".yaml") || word.text.ends_with(".yml"));
}

std::string text_of(const Json& value) { return value.is_string() ? value.text() : value.raw().dump(); }

// "--name value value"; nothing of null.
void add_flag(const std::string& name, const Json& value, std::size_t line, std::vector<Word>& words) {
    if (value.raw().is_null() || value.is_object()) return;
    words.push_back({"--" + name, line});
    if (!value.is_array()) {
        words.push_back({text_of(value), line});
        return;
    }
    for (const Json& one : value.elements()) words.push_back({text_of(one), line});
}

}  // namespace

bool names_file(const std::vector<Word>& words) {
    const frameworks::Entry* const entry = entry_started(words);
    return entry != nullptr && entry->takes_file && std::any_of(words.begin(), words.end(), is_yaml);
}

std::vector<Word> with_file(const std::vector<Word>& words, SaidLaunch& said) {
    if (!names_file(words)) return words;
    const auto file = std::find_if(words.begin(), words.end(), is_yaml);
    const auto document = document_named(file->text, said);
    if (!document) fail(ErrorKind::io, "{}:{}: '{}' is not at hand", said.from, file->line, file->text);
    std::vector<std::string> texts;
    for (const Word& word : words) texts.push_back(word.text);
    const std::size_t begin = frameworks::words_before(*entry_started(words), texts);
    std::vector<Word> all(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(begin));
    for (const auto& [name, value] : document->root().members()) {
        if (name != "ENV")
            add_flag(name, value, file->line, all);
        else
            for (const auto& [variable, text] : value.members()) said.variables.emplace(variable, text_of(text));
    }
    for (auto word = words.begin() + static_cast<std::ptrdiff_t>(begin); word != words.end(); ++word)
        if (word != file && (word + 1 != file || word->text != "--config")) all.push_back(*word);
    return all;
}

}  // namespace pipeweaver::launch
