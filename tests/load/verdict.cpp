#include "tests/load/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::load {

namespace {

constexpr std::size_t longest_measured = 300;

// An answer of a server may be quoted, which has many lines.
std::string on_one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.size() > longest_measured) text.replace(longest_measured, std::string::npos, "...");
    return text;
}

}  // namespace

std::string line_of(const Verdict& verdict) {
    const char* end = verdict.held ? (*verdict.held ? "held" : "NOT HELD") : "";
    std::string line = fmt::format("{:<9}{:<42} {:<42} {:<26} {}", verdict.part, verdict.what,
                                   on_one_line(verdict.measured), verdict.allowed, end);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

nlohmann::ordered_json to_json(const Verdict& verdict) {
    nlohmann::ordered_json json{{"part", verdict.part}, {"what", verdict.what}, {"measured", verdict.measured}};
    json["allowed"] = nullptr;
    json["held"] = nullptr;
    if (!verdict.allowed.empty()) json["allowed"] = verdict.allowed;
    if (verdict.held) json["held"] = *verdict.held;
    if (!verdict.figures.is_null()) json["figures"] = verdict.figures;
    return json;
}

}  // namespace pipeweaver::load
