// A folder for a test's files, gone when the test ends.
#pragma once

#include <filesystem>
#include <string>
#include <unistd.h>

namespace pipeweaver::testing {

class TemporaryFolder {
public:
    /// Creates an empty folder; `name` and the process make it this test's own.
    explicit TemporaryFolder(const std::string& name)
        : path_(std::filesystem::temp_directory_path() / ("pipeweaver-" + name + "-" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace pipeweaver::testing
