// Folders for tests' files, gone when the test ends, or all tests.
#pragma once

#include "pipeweaver/base/files.hpp"

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

/// A folder for all tests' files, gone when they end.
inline const std::filesystem::path& shared_temporary() {
    static const TemporaryFolder temporary("tests");
    return temporary.path();
}

/// A file there of this name and content; one that was there is replaced.
inline std::filesystem::path written(const std::string& name, const std::string& content) {
    auto path = shared_temporary() / name;
    write_files({{path, content}});
    return path;
}

}  // namespace pipeweaver::testing
