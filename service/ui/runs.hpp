// Commands that the page has asked for, each a process of this program in a folder of its own.
//
// Folder       holds the files that were given and what the command writes, `out/`; it goes with the run.
// Answers      the command's --json on stdout; progress, as objects, and errors on stderr, a line each.
// Threads      one, that which talks: nothing here waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace pipeweaver::service {

struct RunQuestion {
    std::vector<std::string> words;                          ///< of the command line, from the command on
    std::vector<std::pair<std::string, std::string>> files;  ///< name, content
};

struct RunState {
    bool is_going = false;
    int status = 0;           ///< as the process exits; -1: it was cancelled
    std::string lines;        ///< on stderr, whole lines
    std::int64_t millis = 0;  ///< since it began, or that it took
};

class Runs {
public:
    static constexpr std::size_t most_going = 4, most_kept = 32;

    /// `program`: path of this one. Throws Error{io} where there is no folder to be had.
    explicit Runs(std::string program);
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;
    ~Runs();  ///< ends what goes on and removes the folder

    /// Number of the new run; none: as many go on as may. Forgets the oldest that ended. Throws Error{io}.
    std::optional<std::uint64_t> begin(const RunQuestion& question);

    /// None: there is no such run any more.
    [[nodiscard]] std::optional<RunState> state(std::uint64_t run);

    /// What the command wrote on stdout. Pre: state() is there.
    [[nodiscard]] std::string answer(std::uint64_t run) const;

    /// Paths of what it wrote, below its folder, sorted. Pre: state() is there.
    [[nodiscard]] std::vector<std::string> files(std::uint64_t run) const;

    /// The content of one of files(), unzipped. Throws Error{io}.
    [[nodiscard]] std::string content(std::uint64_t run, const std::string& file) const;

    /// Lets it end with what it has found so far, or at once. Nothing where it has ended.
    void end(std::uint64_t run, bool at_once);

private:
    struct Run {
        pid_t process = 0;  ///< 0: it has ended
        int status = 0;
        std::chrono::steady_clock::time_point begun, ended;
    };

    [[nodiscard]] std::filesystem::path folder(std::uint64_t run) const;
    void look(Run& run);
    void forget_oldest();

    std::string program_;
    std::filesystem::path folder_;
    std::map<std::uint64_t, Run> runs_;
    std::uint64_t last_ = 0;
};

}  // namespace pipeweaver::service
