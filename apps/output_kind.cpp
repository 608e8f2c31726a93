#include "apps/output_kind.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string_view>

namespace pipeweaver::apps {

namespace fs = std::filesystem;

namespace {

struct Mark {
    OutputKind kind;
    std::string_view file;  // that commands of this kind alone write
    std::string_view what;
};

// A study has an answer.json, too: its own file goes first.
constexpr std::array marks{Mark{OutputKind::plan, "plan.json", "a plan"},
                           Mark{OutputKind::study, "study.json", "a study"},
                           Mark{OutputKind::recommend, "answer.json", "a recommendation"}};

bool is_file(const fs::path& path) {
    std::error_code none;
    return fs::is_regular_file(path, none);
}

bool has(const fs::path& folder, const Mark& mark) {
    if (mark.kind == OutputKind::recommend && is_file(folder / marks[1].file)) return false;
    return is_file(folder / mark.file);
}

}  // namespace

void require_output_kind(const fs::path& folder, OutputKind kind) {
    for (const Mark& mark : marks)
        if (mark.kind != kind && has(folder, mark))
            fail(ErrorKind::input, "{}: is the folder of {}: allowed for --out is another folder",
                 (folder / mark.file).string(), mark.what);
}

std::string replaced_plan(const fs::path& folder) {
    const fs::path file = folder / marks.front().file;
    if (!is_file(file)) return {};
    const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
    if (!json.is_object() || !json.contains("asked")) return {};
    const auto& asked = json["asked"];
    const bool is_named = asked.is_object() && asked.contains("model") && asked["model"].is_string() &&
                          asked.contains("gpus") && asked["gpus"].is_number_integer() && asked.contains("device") &&
                          asked["device"].is_string();
    if (!is_named) return {};
    return fmt::format("replaces the plan of {} on {} x {}", asked["model"].get<std::string>(),
                       asked["gpus"].get<std::int64_t>(), asked["device"].get<std::string>());
}

}  // namespace pipeweaver::apps
