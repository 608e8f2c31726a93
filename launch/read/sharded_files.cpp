#include "launch/read/sharded_files.hpp"

#include "pipeweaver/base/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <system_error>

namespace pipeweaver::launch {

namespace {

std::string plain_text(const Json& value) { return value.is_string() ? value.text() : value.raw().dump(); }

void add_flattened(const Json& value, const std::string& name, const std::string& where, std::vector<Setting>& all) {
    if (value.is_object()) {
        for (const auto& [key, inner] : value.members())
            add_flattened(inner, fmt::format("{}{}{}", name, name.empty() || name.ends_with('.') ? "" : ".", key),
                          where, all);
        return;
    }
    if (!value.is_array()) {
        all.push_back({name, {plain_text(value)}, where});
        return;
    }
    std::vector<std::string> parts;
    for (const Json& one : value.elements()) parts.push_back(plain_text(one));
    all.push_back({name, {fmt::format("[{}]", fmt::join(parts, ", "))}, where});
}

}  // namespace

std::optional<std::filesystem::path> file_named(const std::string& named, const std::string& from) {
    constexpr int most_above = 4;
    if (is_readable_file(named)) return named;
    if (std::filesystem::path(named).is_absolute()) return std::nullopt;
    std::error_code ignored;
    std::filesystem::path folder = std::filesystem::absolute(from, ignored).parent_path();
    const auto beside = folder / std::filesystem::path(named).filename();
    for (int above = 0; above < most_above; ++above, folder = folder.parent_path())
        if (is_readable_file(folder / named)) return folder / named;
    return is_readable_file(beside) ? std::optional(beside) : std::nullopt;
}

std::optional<JsonDocument> document_named(const std::string& named, const SaidLaunch& said) {
    const std::string plain = std::filesystem::path(named).lexically_normal().string();
    if (const auto written = said.documents.find(plain); written != said.documents.end()) {
        const std::string name = fmt::format("{}: {}", said.from, named);
        return named.ends_with(".json") ? JsonDocument(name, written->second)
                                        : JsonDocument::yaml(name, written->second);
    }
    if (const auto path = file_named(named, said.from)) return JsonDocument::read_large(*path);
    return std::nullopt;
}

std::vector<Setting> flattened(const Json& root, const std::string& prefix, const std::string& where) {
    std::vector<Setting> all;
    add_flattened(root, prefix, where, all);
    return all;
}

}  // namespace pipeweaver::launch
