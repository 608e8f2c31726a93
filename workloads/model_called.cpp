// What people call the models of the catalogue: the names of repositories, folders and releases.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "workloads/public_models.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <vector>

namespace pipeweaver::workloads {

namespace {

// What releases of equal sizes have behind their name.
constexpr std::array<std::string_view, 20> release_endings{
    "-2512", "-reasoning", "-instruct", "-base", "-chat", "-thinking", "-pretrained", "-it",  "-pt",        "-hf",
    "-fp8",  "-bf16",      "-2506",     "-2507", "-0324", "-0528",     "-0905",       "-mpo", "-diffusers", "-mcore"};

// Of releases whose weights have fewer bits.
constexpr std::array<std::string_view, 11> endings_of_fewer_bits{
    "-awq",  "-gptq", "-gptq-int4", "-gptq-int8", "-unsloth-bnb-4bit", "-bnb-4bit", "-aqlm-2bit-1x16",
    "-int4", "-int8", "-4bit",      "-8bit"};

// What lies below the folder that has a model's name: of runs (checkpoint-100, v0-20250701-101010 of ms-swift), of
// diffusers (transformer), files of weights.
bool is_below_a_model(std::string_view folder) {
    const bool of_a_run = folder.size() > 1 && folder[0] == 'v' && folder[1] >= '0' && folder[1] <= '9';
    return folder.empty() || folder.starts_with("checkpoint") || folder == "transformer" ||
           folder.ends_with(".safetensors") || (of_a_run && contains(folder, "-"));
}

// "models--Qwen--Qwen3-8B/snapshots/..." is a folder in the cache of huggingface_hub.
std::string_view part_with_name(std::string_view path) {
    if (const auto cached = path.find("models--"); cached != std::string_view::npos) {
        const std::string_view folder = path.substr(cached, path.find('/', cached) - cached);
        return folder.substr(folder.rfind("--") + 2);
    }
    for (;;) {
        const auto slash = path.find_last_of('/');
        if (slash == std::string_view::npos) return path;
        if (!is_below_a_model(path.substr(slash + 1))) return path.substr(slash + 1);
        path = path.substr(0, slash);
    }
}

// The part of a path that is a name, in lower case, '-' for '.' and '_'. ModelScope's cache has "___" for '.', which
// ms-swift undoes likewise (3602360a swift/model/model_meta.py get_matched_model_meta).
std::string plain_name(std::string_view path) {
    constexpr std::string_view dot = "___";
    std::string plain = in_lower_case(part_with_name(path));
    for (std::size_t at = 0; (at = plain.find(dot, at)) != std::string::npos; ++at) plain.replace(at, dot.size(), ".");
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return c == '.' || c == '_'; }, '-');
    constexpr std::string_view half = "1half";  // ms-swift 2.6.1 swift/llm/utils/model.py: qwen1half is Qwen1.5
    if (const auto at = plain.find(half); at != std::string::npos) plain.replace(at, half.size(), "1-5");
    return plain;
}

// Without '-' but between digits, where it parts numbers: "qwen2-5-vl-32b" and "qwen2-5vl-32b" are one name.
std::string joined_name(std::string_view plain) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::string joined;
    for (std::size_t i = 0; i < plain.size(); ++i) {
        const bool parts_numbers = i > 0 && i + 1 < plain.size() && is_digit(plain[i - 1]) && is_digit(plain[i + 1]);
        if (plain[i] != '-' || parts_numbers) joined += plain[i];
    }
    return joined;
}

using Names = std::map<std::string, std::string, std::less<>>;

// Constant once made: plain name -> name in the catalogue.
const Names& plain_names() {
    static const Names all = [] {
        Names names;
        for (const auto& name : model_names()) names.emplace(plain_name(name), name);
        for (const auto& [called, model] : names_in_public()) names.emplace(called, model);
        return names;
    }();
    return all;
}

// Constant once made: joined name -> name in the catalogue; empty where it is that of several.
const Names& joined_names() {
    static const Names all = [] {
        Names names;
        for (const auto& [plain, model] : plain_names()) {
            const auto [at, is_new] = names.emplace(joined_name(plain), model);
            if (!is_new && at->second != model) at->second.clear();
        }
        return names;
    }();
    return all;
}

// Whether one was there.
template <std::size_t n>
bool drop_one_of(const std::array<std::string_view, n>& endings, std::string& plain) {
    const auto* const ending =
        std::find_if(endings.begin(), endings.end(), [&](std::string_view one) { return plain.ends_with(one); });
    if (ending == endings.end()) return false;
    plain.resize(plain.size() - ending->size());
    return true;
}

bool drop_ending(std::string& plain) { return drop_one_of(release_endings, plain); }

}  // namespace

std::string model_called(std::string_view name) {
    for (std::string plain = plain_name(name); !plain.empty();) {
        if (const auto known = plain_names().find(plain); known != plain_names().end()) return known->second;
        if (const auto known = joined_names().find(joined_name(plain)); known != joined_names().end())
            return known->second;
        if (!drop_ending(plain)) break;
    }
    return {};
}

std::string model_of_fewer_bits(std::string_view name) {
    std::string plain = plain_name(name);
    return drop_one_of(endings_of_fewer_bits, plain) ? model_called(plain) : std::string();
}

bool has_fewer_bits(std::string_view name) {
    std::string plain = plain_name(name);
    return drop_one_of(endings_of_fewer_bits, plain);
}

std::string model_like(std::string_view name) {
    std::vector<std::string> known;
    known.reserve(plain_names().size());
    for (const auto& [plain, model] : plain_names()) known.push_back(plain);
    std::string plain = plain_name(name);
    while (drop_ending(plain)) {
    }
    const auto near = nearest(plain, known);
    return near ? plain_names().at(*near) : std::string();
}

}  // namespace pipeweaver::workloads
