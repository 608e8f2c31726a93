#include "pipeweaver/schedule/whole_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"

#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace pipeweaver::schedule {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

// Where a plan's schedules lie.
bool is_part(const fs::path& folder) {
    const std::string name = folder.filename().string();
    return name.starts_with("replica-") || name == "torch";
}

// The plan's folder: this one, or the one above. None: neither has a plan's files.
std::optional<fs::path> plan_of(const fs::path& folder) {
    for (const char* const file : {"plan.json", "assignment.json"}) {
        if (is_there(folder / file)) return folder;
        if (is_part(folder) && is_there(folder.parent_path() / file)) return folder.parent_path();
    }
    return std::nullopt;
}

}  // namespace

std::string hash_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> block(std::size_t{1} << 16);
    Sha256 digest;
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
        digest.add({block.data(), static_cast<std::size_t>(file.gcount())});
    if (file.bad() || !file.eof()) fail(ErrorKind::io, "{}: cannot be read", path.string());
    return digest.hex();
}

PlanHashes hashes_of_plan(const fs::path& folder) {
    PlanHashes hashes;
    if (!is_there(folder / "plan.json")) return hashes;
    const auto document = JsonDocument::read_large(folder / "plan.json");
    if (!document.root().is_object()) return hashes;
    if (const auto files = document.root().find("files"))
        for (const auto& [name, hash] : files->members()) hashes.emplace(name, hash.text());
    return hashes;
}

void require_whole(const fs::path& folder) {
    std::error_code ignored;
    const fs::path place = fs::weakly_canonical(folder.empty() ? "." : folder, ignored);
    const auto plan = plan_of(place);
    if (!plan) return;
    if (!is_there(*plan / "plan.json"))
        fail(ErrorKind::input, "{}: the plan there was not written to its end: plan.json is missing; plan again",
             plan->string());
    for (const auto& [name, hash] : hashes_of_plan(*plan)) {
        const fs::path path = *plan / name;
        if (path.parent_path() != place) continue;
        if (!is_there(path)) fail(ErrorKind::input, "{}: is missing, which plan.json names; plan again", path.string());
        if (hash_of_file(path) != hash)
            fail(ErrorKind::input, "{}: is not the file that plan.json is of; plan again", path.string());
    }
}

}  // namespace pipeweaver::schedule
