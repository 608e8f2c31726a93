#include "tests/load/served_process.hpp"

#include "apps/programs.hpp"
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace pipeweaver::load {

namespace {

constexpr Duration between_glances = std::chrono::milliseconds(5);
constexpr Duration to_listen = std::chrono::seconds(60);

// The last line that is not empty.
std::string last_line_of(std::string text) {
    text.erase(text.find_last_not_of('\n') + 1);
    return text.substr(text.find_last_of('\n') + 1);
}

// Between fork and exec: nothing here may take a lock.
[[noreturn]] void become(const char* program, char* const* arguments, int output) {
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL));
    static_cast<void>(::dup2(output, STDOUT_FILENO));
    static_cast<void>(::dup2(output, STDERR_FILENO));
    static_cast<void>(::close_range(STDERR_FILENO + 1, ~0U, 0));  // connections are the parent's
    ::execv(program, arguments);
    ::_exit(127);
}

int status_of(int waited) { return WIFEXITED(waited) ? WEXITSTATUS(waited) : -WTERMSIG(waited); }

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pipeweaver-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail(ErrorKind::io, "{}: cannot be made: {}", name, std::strerror(errno));
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
                           std::filesystem::path output)
    : output_(std::move(output)) {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail(ErrorKind::io, "{}: cannot be written: {}", output_.string(), std::strerror(errno));
    pid_ = ::fork();
    if (pid_ == 0) become(program.c_str(), pointers.data(), file);
    ::close(file);
    if (pid_ < 0) fail(ErrorKind::io, "{}: cannot be begun: {}", program, std::strerror(errno));
}

ChildProcess::~ChildProcess() {
    if (is_running()) end_by(SIGKILL);
}

bool ChildProcess::is_running() {
    if (pid_ < 0) return false;
    int waited = 0;
    if (::waitpid(pid_, &waited, WNOHANG) != pid_) return true;
    status_ = status_of(waited);
    pid_ = -1;
    return false;
}

int ChildProcess::end_by(int signal) {
    if (!is_running()) return status_;
    ::kill(pid_, signal);
    int waited = 0;
    while (::waitpid(pid_, &waited, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_ = status_of(waited);
}

int ChildProcess::wait(Duration within) {
    for (const Stopwatch watch; is_running();) {
        if (watch.elapsed() > within) return end_by(SIGKILL);
        std::this_thread::sleep_for(between_glances);
    }
    return status_;
}

std::string ChildProcess::output() const { return read_file(output_); }

std::int64_t ChildProcess::memory() const {
    const std::string pages = read_file(fmt::format("/proc/{}/statm", pid_));
    return std::strtoll(pages.c_str() + pages.find(' '), nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

namespace {

std::vector<std::string> serve_at(const std::string& http, const std::vector<std::string>& options) {
    std::vector<std::string> all{"serve", "--http", http, "--quiet"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
}

// Of the log, as soon as it has it.
std::string url_in(const std::string& log) {
    const std::size_t event = log.find("\"listening\"");
    if (event == std::string::npos) return {};
    const std::size_t begin = log.rfind('\n', event), end = log.find('\n', event);
    if (end == std::string::npos) return {};
    const std::size_t first = begin == std::string::npos ? 0 : begin + 1;
    return nlohmann::json::parse(log.substr(first, end - first)).at("url");
}

}  // namespace

ServedProcess::ServedProcess(const std::vector<std::string>& options, std::filesystem::path log,
                             const std::string& http)
    : process_(apps::program_beside("pipeweaver"), serve_at(http, options), std::move(log)) {
    for (const Stopwatch watch; url_.empty();) {
        const bool runs = process_.is_running();
        url_ = url_in(process_.output());
        if (!url_.empty()) return;
        if (!runs || watch.elapsed() > to_listen)
            fail(ErrorKind::io, "the server does not listen: {}", last_line_of(process_.output()));
        std::this_thread::sleep_for(between_glances);
    }
}

}  // namespace pipeweaver::load
