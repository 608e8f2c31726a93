#include "launch/read/file_words.hpp"

#include "launch/read/sharded_files.hpp"
#include "pipeweaver/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace pipeweaver::launch {

namespace {

bool is_file(const Word& word) {
    const std::string& text = word.text;
    return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

// The first word behind the program, or what --config names; the number of words: neither is a file.
std::size_t place_of_file(const std::vector<Word>& words, std::size_t begin) {
    if (begin < words.size() && is_file(words[begin])) return begin;
    for (std::size_t i = begin; i + 1 < words.size(); ++i)
        if (words[i].text == "--config" && is_file(words[i + 1])) return i + 1;
    return words.size();
}

std::string text_of(const Json& value) { return value.is_string() ? value.text() : value.raw().dump(); }

// "--name value value"; nothing of null, of an object its JSON.
void add_flag(const std::string& name, const Json& value, std::size_t line, std::vector<Word>& words) {
    if (value.raw().is_null()) return;
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
    return entry != nullptr && entry->takes_file &&
           place_of_file(words, frameworks::words_before(*entry, texts_of(words))) < words.size();
}

std::vector<Word> with_file(const std::vector<Word>& words, SaidLaunch& said) {
    if (!names_file(words)) return words;
    const std::size_t begin = frameworks::words_before(*entry_started(words), texts_of(words)),
                      at = place_of_file(words, begin);
    const Word& file = words[at];
    const auto document = document_named(file.text, said);
    if (!document) fail(ErrorKind::io, "{}:{}: '{}' is not at hand", said.from, file.line, file.text);
    std::vector<Word> all(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(begin));
    for (const auto& [name, value] : document->root().members()) {
        if (name != "ENV")
            add_flag(name, value, file.line, all);
        else
            for (const auto& [variable, text] : value.members()) said.variables.emplace(variable, text_of(text));
    }
    for (std::size_t i = begin; i < words.size(); ++i)
        if (i != at && (i + 1 != at || words[i].text != "--config")) all.push_back(words[i]);
    return all;
}

}  // namespace pipeweaver::launch
