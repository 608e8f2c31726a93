// Here-documents: scripts that a shell is given, files that are written and then named; and Slurm's directives.
#include "launch/read/shell/reader.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <utility>

namespace pipeweaver::launch {

namespace {

bool is_shell(const std::string& word) { return word == "bash" || word == "sh" || word == "sbatch"; }

struct Written {
    std::string file;  // empty: the text goes nowhere that is known
    bool appends = false;
};

// "./a.sh" and "a.sh" are one.
std::string plain_path(const std::string& name) { return std::filesystem::path(name).lexically_normal().string(); }

// "> FILE", ">>FILE", "tee -a FILE".
Written file_written(const std::vector<Word>& words) {
    bool appends = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        const bool is_redirected = word.starts_with('>');
        const std::string name =
            is_redirected ? word.substr(word.find_first_not_of('>') == std::string::npos ? word.size()
                                                                                         : word.find_first_not_of('>'))
                          : std::string();
        appends = appends || word.starts_with(">>");
        if (!name.empty()) return {plain_path(name), appends};
        std::size_t next = is_redirected || (i == 0 && word == "tee") ? i + 1 : words.size();
        for (; i == 0 && next < words.size() && words[next].text.starts_with('-'); ++next)
            appends = appends || words[next].text == "-a";
        if (next < words.size()) return {plain_path(words[next].text), appends};
    }
    return {};
}

// "--nodes=4", "--nodes 4", "-N 4" of a line of directives, "gpu:h100:8" without what it counts.
std::string directive(const std::vector<std::string>& words, std::string_view name, std::string_view letter) {
    const std::string flag = "--" + std::string(name);
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string value;
        if (words[i].starts_with(flag + "="))
            value = words[i].substr(flag.size() + 1);
        else if ((words[i] == flag || (!letter.empty() && words[i] == letter)) && i + 1 < words.size())
            value = words[i + 1];
        else
            continue;
        if (name == "gres" && !value.starts_with("gpu")) continue;
        return value.substr(value.rfind(':') == std::string::npos ? 0 : value.rfind(':') + 1);
    }
    return {};
}

}  // namespace

// Behind "<<".
void Reader::open_document() {
    next(), next();
    const bool cuts_tabs = peek() == '-';
    if (cuts_tabs) next();
    skip();
    const auto tag = word();
    documents_.push_back(
        {tag.empty() ? std::string() : tag.front().text, !tag.empty() && tag.front().quoted, cuts_tabs, {}});
}

// Those of the line that ended, whose last command has these words: what `cat` prints may go into it.
void Reader::read_documents(const std::vector<Word>& words) {
    for (const HereDocument& one : std::exchange(documents_, {})) {
        std::string text;
        while (at_ < text_.size()) {
            std::string line;
            while (at_ < text_.size() && peek() != '\n') line += next();
            if (at_ < text_.size()) next();
            if (one.cuts_tabs) line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
            if (line == one.end) break;
            text += line + "\n";
        }
        const bool prints =
            !one.words.empty() && one.words.front().text == "cat" && file_written(one.words).file.empty();
        const std::vector<Word>& given = prints ? words : one.words;
        if (!given.empty()) take_document(given, text, one.is_plain);
    }
}

void Reader::take_document(const std::vector<Word>& words, const std::string& text, bool is_plain) {
    const auto [file, appends] = file_written(words);
    const bool is_script = file.empty() && nested_ < most_nested &&
                           std::any_of(words.begin(), words.end(), [](const Word& one) { return is_shell(one.text); });
    const bool is_value = words.front().text == "read" && words.size() > 1;
    const bool is_printed = words.front().text == "cat" && words.size() == 1;
    if (file.empty() && !is_script && !is_value && !is_printed) return;
    Reader inner(text, name_, {});
    inner.variables_ = variables_;
    inner.script_.in_branches = script_.in_branches;
    Word printed = is_plain ? Word{text, line_} : inner.expanded();
    script_.used_branches.insert(inner.script_.used_branches.begin(), inner.script_.used_branches.end());
    std::string put_in = printed.text;
    if (is_printed)
        printed_ = std::move(printed);
    else if (is_value)
        set_plain(words.back().text, put_in);
    else if (is_script)
        run_with_front(put_in, line_ - static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1);
    else
        script_.documents[file] = appends ? script_.documents[file] + put_in : std::move(put_in);
}

// A shell's text, which has what stands in front of the shell.
void Reader::run_with_front(std::string_view text, std::size_t line) {
    const std::size_t before = script_.commands.size();
    exchange_front();
    run_apart(text, name_, line);
    keep_front(before);
}

// "bash FILE" and "sbatch FILE" of a file that the script wrote; false: it is another command.
bool Reader::run_document(const std::vector<Word>& words) {
    for (std::size_t i = 0; i + 1 < words.size() && nested_ < most_nested; ++i) {
        const bool is_sourced = words[i].text == "source" || words[i].text == ".";
        if (!is_shell(words[i].text) && !is_sourced) continue;
        const auto found = script_.documents.find(plain_path(words[i + 1].text));
        if (found == script_.documents.end()) continue;
        const std::string text = found->second;
        const std::string name = (std::filesystem::path(name_).parent_path() / found->first).string();
        if (is_sourced)
            run_text(text, name, 1);
        else
            run_apart(text, name, 1);
        return true;
    }
    return false;
}

// "#SBATCH --nodes=4": what Slurm sets by them, where nobody says otherwise.
void Reader::take_directives() {
    constexpr std::string_view mark = "#SBATCH";
    std::vector<std::string> words;
    for (std::size_t at = text_.find(mark); at != std::string_view::npos; at = text_.find(mark, at + 1)) {
        if (at > 0 && text_[at - 1] != '\n') continue;
        const std::size_t begin = at + mark.size();
        std::string line(text_.substr(begin, text_.find('\n', begin) - begin));
        auto some = parted_at_blanks(line.substr(0, line.find('#')));
        words.insert(words.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    struct Directive {
        std::string_view name, letter, variable;
    };
    constexpr std::array directives{
        Directive{"nodes", "-N", "SLURM_NNODES"},
        Directive{"nodes", "-N", "SLURM_JOB_NUM_NODES"},
        Directive{"ntasks", "-n", "SLURM_NTASKS"},
        Directive{"ntasks-per-node", {}, "SLURM_NTASKS_PER_NODE"},
        Directive{"gpus-per-node", {}, "SLURM_GPUS_PER_NODE"},
        Directive{"gpus-per-node", {}, "SLURM_GPUS_ON_NODE"},
        Directive{"gres", {}, "SLURM_GPUS_ON_NODE"},
    };
    for (const Directive& one : directives) {
        const std::string value = directive(words, one.name, one.letter);
        const bool is_plain = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
        if (is_plain) variables_.try_emplace(std::string(one.variable), Variable{{{value, 0, {}, true}}});
    }
}

}  // namespace pipeweaver::launch
