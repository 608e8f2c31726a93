#include "apps/mcp/call.hpp"

#include "apps/command_line.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

namespace fs = std::filesystem;
using CallJson = nlohmann::ordered_json;

constexpr std::string_view progress_every = "1000";  // milliseconds

// While it lives, what is written on standard output is kept in memory.
class TakenOutput {
public:
    TakenOutput() : before_(::dup(STDOUT_FILENO)), taken_(::memfd_create("pipeweaver", MFD_CLOEXEC)) {
        if (before_ < 0 || taken_ < 0 || ::dup2(taken_, STDOUT_FILENO) < 0) {
            close_all();
            fail(ErrorKind::io, "what a command prints cannot be taken");
        }
    }

    ~TakenOutput() {
        flush();
        ::dup2(before_, STDOUT_FILENO);
        close_all();
    }

    TakenOutput(const TakenOutput&) = delete;
    TakenOutput& operator=(const TakenOutput&) = delete;

    std::string text() const {
        flush();
        std::string all;
        std::array<char, 65536> part;
        ::lseek(taken_, 0, SEEK_SET);
        for (ssize_t got = 0; (got = ::read(taken_, part.data(), part.size())) > 0;)
            all.append(part.data(), static_cast<std::size_t>(got));
        return all;
    }

private:
    static void flush() {
        std::cout.flush();
        std::fflush(stdout);
    }

    void close_all() const {
        if (before_ >= 0) ::close(before_);
        if (taken_ >= 0) ::close(taken_);
    }

    int before_, taken_;
};

// A folder that is removed with all that is in it.
class PassingFolder {
public:
    PassingFolder() {
        std::string name = (fs::temp_directory_path() / "pipeweaver-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) fail(ErrorKind::io, "{}: cannot be made", name);
        path_ = name;
    }

    ~PassingFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }

    PassingFolder(const PassingFolder&) = delete;
    PassingFolder& operator=(const PassingFolder&) = delete;

    std::string name() const { return path_.string(); }

private:
    fs::path path_;
};

// A plan must have a folder; the further arguments may name it, too.
bool lacks_folder(const Tool& tool, const std::vector<std::string>& words) {
    const auto may_say = [](const std::string& word) {
        return word == "--out" || word.starts_with("--out=") || word.starts_with("--config") || word == "--help" ||
               word == "--help-all";
    };
    return tool.name == "plan" && std::none_of(words.begin(), words.end(), may_say);
}

struct Printed {
    Ended ended;
    std::string out;
};

Printed run_words(const Tool& tool, std::vector<std::string> words, const OnProgress& on) {
    if (on)
        words.insert(words.begin(), {"--progress-json", "--progress-every", std::string(progress_every)});
    else
        words.insert(words.begin(), "--quiet");
    words.insert(words.begin(), {"pipeweaver", tool.name, "--json"});
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const Program program{"pipeweaver", "", PIPEWEAVER_VERSION, {}, {tool.add}};
    const TakenOutput output;
    std::optional<TakenProgress> progress;
    if (on) progress.emplace(on);
    auto ended = run_program(program, static_cast<int>(words.size()), argv.data());
    progress.reset();  // none is told behind the answer
    return {std::move(ended), output.text()};
}

CallJson text_block(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

CallJson refusal(const Tool& tool, const CommandShape& command, const std::string& line, int status, bool structured) {
    const CallJson next = asked_next(tool, command, line);
    std::string text = line;
    for (const CallJson& one : next) {
        text += fmt::format("\nask for {} ({}): {}", one["argument"].get<std::string>(), one["kind"].get<std::string>(),
                            one["about"].get<std::string>());
        if (one.contains("allowed")) text += "; like " + one["allowed"].front().get<std::string>();
    }
    CallJson result{{"content", CallJson::array({text_block(text)})}, {"isError", true}};
    if (structured) result["structuredContent"] = {{"error", line}, {"status", status}, {"ask", next}};
    return result;
}

}  // namespace

CallJson call_tool(const Tool& tool, const CommandShape& command, const CallJson& arguments, bool structured,
                   const OnProgress& on) {
    std::vector<std::string> words;
    try {
        words = words_of_call(tool, command, arguments);
    } catch (const Error& error) {
        return refusal(tool, command, fmt::format("pipeweaver: {}", as_line(error.what())),
                       static_cast<int>(error.kind()), structured);
    }
    std::optional<PassingFolder> folder;
    if (lacks_folder(tool, words)) words.insert(words.begin(), "--out=" + folder.emplace().name());
    auto printed = run_words(tool, std::move(words), on);
    auto answer = CallJson::parse(printed.out, nullptr, false);
    const bool is_answer = answer.is_object();
    if (!is_answer && printed.ended.status != 0)
        return refusal(tool, command, printed.ended.complaint, printed.ended.status, structured);
    CallJson result{{"content", CallJson::array({text_block(std::move(printed.out))})}, {"isError", false}};
    if (!printed.ended.complaint.empty()) result["content"].push_back(text_block(printed.ended.complaint));
    if (folder) result["content"].push_back(text_block("nothing was kept: with `out`, a folder, the plan is"));
    if (structured && is_answer) result["structuredContent"] = std::move(answer);
    return result;
}

}  // namespace pipeweaver::apps
