// Processes that `bench service` begins: servers on loopback, ended or killed, and commands that end by
// themselves. None outlives the thread that began it.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pipeweaver::load {

/// A folder of its own below the system's for temporary files, removed in the end with all that is in it.
class TemporaryFolder {
public:
    TemporaryFolder();  ///< Throws Error{io}.
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

/// A process whose output, both kinds, goes to a file.
class ChildProcess {
public:
    /// Begins `program` with these arguments. Throws Error{io}.
    ChildProcess(const std::string& program, const std::vector<std::string>& arguments, std::filesystem::path output);
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess();  ///< kills it

    [[nodiscard]] bool is_running();

    /// Sends the signal and waits for the end; returns the exit status, or minus the signal that ended it.
    int end_by(int signal);

    /// Waits for the end, and kills it after that time.
    int wait(Duration within);

    /// What it has written so far.
    [[nodiscard]] std::string output() const;

    /// Bytes that it holds in memory.
    [[nodiscard]] std::int64_t memory() const;

private:
    std::filesystem::path output_;
    pid_t pid_ = -1;
    int status_ = 0;
};

/// `pipeweaver serve` of the pipeweaver beside this program, with further options.
class ServedProcess {
public:
    /// Begins it at that address, or on a port that is free, and waits until it listens. Its log goes to `log`. Throws
    /// Error{io} where it does not.
    ServedProcess(const std::vector<std::string>& options, std::filesystem::path log,
                  const std::string& http = "127.0.0.1:0");

    const std::string& url() const { return url_; }
    ChildProcess& process() { return process_; }

private:
    ChildProcess process_;
    std::string url_;
};

}  // namespace pipeweaver::load
