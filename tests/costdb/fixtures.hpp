// Small databases and files for the tests of the cost database.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/database.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace pipeweaver::costdb::testing {

/// A folder of this test, empty at first and removed at the end.
class Folder {
public:
    explicit Folder(const std::string& name) : path_(std::filesystem::temp_directory_path() / ("pipeweaver-" + name)) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    std::filesystem::path write(const std::string& name, const std::string& content) const {
        write_files({{path_ / name, content}});
        return path_ / name;
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// The collected tables, where they are on this machine.
inline std::optional<std::filesystem::path> shared_tables() {
    const char* given = std::getenv("PIPEWEAVER_SHARED");
    const std::filesystem::path shared = given ? given : PIPEWEAVER_SOURCE_DIR "/../shared";
    if (!std::filesystem::exists(shared / "data/ops")) return std::nullopt;
    return shared / "data/ops";
}

/// The embedded tables, loaded once.
inline const CostDatabase& a100() {
    static const auto database = CostDatabase::embedded("a100_sxm");
    return database;
}
inline const CostDatabase& h100() {
    static const auto database = CostDatabase::embedded("h100_sxm");
    return database;
}
inline const CostDatabase& h200() {
    static const auto database = CostDatabase::embedded("h200_sxm");
    return database;
}

}  // namespace pipeweaver::costdb::testing
