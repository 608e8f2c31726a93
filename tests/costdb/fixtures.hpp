// Small databases and files for the tests of the cost database.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace pipeweaver::costdb::testing {

/// A folder of this test, empty at first and removed at the end.
class Folder : public pipeweaver::testing::TemporaryFolder {
public:
    using TemporaryFolder::TemporaryFolder;

    std::filesystem::path operator/(const std::string& name) const { return path() / name; }
    std::filesystem::path write(const std::string& name, const std::string& content) const {
        write_files({{path() / name, content}});
        return path() / name;
    }
};

/// The collected tables, where they are on this machine.
inline std::optional<std::filesystem::path> shared_tables() {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared || !std::filesystem::exists(*shared / "data/ops")) return std::nullopt;
    return *shared / "data/ops";
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
