// The words of an option, as a shell parts them.
#include "launch/read/entry.hpp"
#include "launch/read/recipe.hpp"
#include "launch/read/words.hpp"
#include "pipeweaver/base/error.hpp"

#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

SaidLaunch read_words(Dialect dialect, std::string_view text, const std::string& from) {
    std::vector<Word> words;
    Word word;
    bool inside = false;
    char quote = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '$' && quote != '\'')
            fail(ErrorKind::input, "{}: has a variable at '{}'; allowed are plain values, variables belong in a script",
                 from, text.substr(at, 12));
        if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
            if (inside) words.push_back(std::exchange(word, {}));
            inside = false;
            continue;
        }
        inside = true;
        if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
            if (text[++at] != '\n') word.text += text[at];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == quote) {
            quote = 0;
        } else {
            word.text += c;
        }
    }
    if (quote != 0) fail(ErrorKind::input, "{}: a quote {} is not closed", from, quote);
    if (inside) words.push_back(word);
    SaidLaunch said{dialect, from, {}, {}, {}};
    put_settings(dialect, words, said);
    put_entry_of_option(words, said);
    for (std::string& note : notes_of_repeated(dialect, said.settings)) said.notes.push_back(std::move(note));
    put_recipe(words, said);
    return said;
}

}  // namespace pipeweaver::launch
