#include "service/ui/runs.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

extern char** environ;

namespace pipeweaver::service {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_lines = std::size_t{16} << 20, most_answer = std::size_t{256} << 20;

fs::path new_folder() {
    std::string name = (fs::temp_directory_path() / "pipeweaver-ui-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail(ErrorKind::io, "{}: cannot be made: {}", name, std::strerror(errno));
    return name;
}

// The environment of a command: this process', and that no file is read but those that were given.
std::vector<std::string> environment_for(const fs::path& files) {
    constexpr std::string_view below = "PIPEWEAVER_READS_BELOW=";
    std::vector<std::string> all;
    for (char** one = environ; *one != nullptr; ++one)
        if (!std::string_view(*one).starts_with(below)) all.emplace_back(*one);
    all.push_back(std::string(below) + files.string());
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// How a process begins: where, in a group of its own, so that Ctrl-C at the server's terminal is the server's alone,
// and with none of the server's sockets, which would outlive it there.
class Beginning {
public:
    explicit Beginning(const fs::path& folder)
        : out_(folder / "stdout"), error_(folder / "stderr"), files_(folder / "files") {
        posix_spawn_file_actions_init(&actions_);
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes_, 0);
        sigset_t heard;  // by a command that a server which ignores SIGINT, as in a shell's background, begins
        sigemptyset(&heard);
        sigaddset(&heard, SIGINT);
        posix_spawnattr_setsigdefault(&attributes_, &heard);
        constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
        constexpr mode_t mode = 0600;
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, out_.c_str(), flags, mode);
        posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, error_.c_str(), flags, mode);
        posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
        posix_spawn_file_actions_addchdir_np(&actions_, files_.c_str());
    }
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;
    ~Beginning() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }

    pid_t begin(const std::string& program, const std::vector<std::string>& arguments) const {
        std::vector<std::string> words{program};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<std::string> environment = environment_for(files_);
        pid_t process = 0;
        const int error = ::posix_spawn(&process, program.c_str(), &actions_, &attributes_, pointers_to(words).data(),
                                        pointers_to(environment).data());
        if (error != 0) fail(ErrorKind::io, "{}: cannot be run: {}", program, std::strerror(error));
        return process;
    }

private:
    std::string out_, error_, files_;
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

std::string whole_lines(std::string text) {
    text.resize(text.find_last_of('\n') == std::string::npos ? 0 : text.find_last_of('\n') + 1);
    return text;
}

}  // namespace

Runs::Runs(std::string program) : program_(std::move(program)), folder_(new_folder()) {}

Runs::~Runs() {
    for (auto& [number, run] : runs_)
        if (run.process != 0) {
            ::kill(-run.process, SIGKILL);
            ::waitpid(run.process, nullptr, 0);
        }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

fs::path Runs::folder(std::uint64_t run) const { return folder_ / std::to_string(run); }

std::optional<std::uint64_t> Runs::begin(const RunQuestion& question) {
    std::size_t going = 0;
    for (auto& [number, run] : runs_) {
        look(run);
        going += run.process != 0 ? 1 : 0;
    }
    if (going >= most_going) return std::nullopt;
    if (runs_.size() >= most_kept) forget_oldest();
    const std::uint64_t number = ++last_;
    const fs::path place = folder(number);
    Run run;
    run.begun = std::chrono::steady_clock::now();
    try {
        fs::create_directories(place / "files");
        PendingFiles files;
        for (const auto& [name, content] : question.files) files.add({place / "files" / name, content});
        static_cast<void>(files.finish());
        run.process = Beginning(place).begin(program_, question.words);
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(place, ignored);
        throw;
    }
    runs_.emplace(number, run);
    return number;
}

// Asks the system whether it has ended.
void Runs::look(Run& run) {
    int how = 0;
    if (run.process == 0 || ::waitpid(run.process, &how, WNOHANG) != run.process) return;
    run.process = 0;
    run.status = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    run.ended = std::chrono::steady_clock::now();
}

void Runs::forget_oldest() {
    const auto oldest =
        std::find_if(runs_.begin(), runs_.end(), [](const auto& one) { return one.second.process == 0; });
    if (oldest == runs_.end()) return;
    std::error_code ignored;
    fs::remove_all(folder(oldest->first), ignored);
    runs_.erase(oldest);
}

std::optional<RunState> Runs::state(std::uint64_t run) {
    const auto found = runs_.find(run);
    if (found == runs_.end()) return std::nullopt;
    Run& one = found->second;
    look(one);
    const auto until = one.process != 0 ? std::chrono::steady_clock::now() : one.ended;
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(until - one.begun);
    std::string lines = read_file(folder(run) / "stderr", most_lines);
    return RunState{one.process != 0, one.status, one.process != 0 ? whole_lines(std::move(lines)) : std::move(lines),
                    took.count()};
}

std::string Runs::answer(std::uint64_t run) const { return read_file(folder(run) / "stdout", most_answer); }

std::vector<std::string> Runs::files(std::uint64_t run) const {
    const fs::path out = folder(run) / "files" / "out";
    std::vector<std::string> all;
    std::error_code ignored;
    // While it writes, files come and go.
    for (fs::recursive_directory_iterator entry(out, ignored), end; !ignored && entry != end; entry.increment(ignored))
        if (std::error_code gone; entry->is_regular_file(gone))
            all.push_back(entry->path().lexically_relative(out).generic_string());
    std::sort(all.begin(), all.end());
    return all;
}

std::string Runs::content(std::uint64_t run, const std::string& file) const {
    return read_file(folder(run) / "files" / "out" / file, most_answer);
}

void Runs::end(std::uint64_t run, bool at_once) {
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    look(found->second);
    if (found->second.process != 0) ::kill(-found->second.process, at_once ? SIGKILL : SIGINT);
}

}  // namespace pipeweaver::service
