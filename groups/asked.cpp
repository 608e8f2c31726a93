#include "groups/work.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/groups/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace pipeweaver::groups {

namespace {

constexpr std::int64_t most_gpus = 1'000'000;

constexpr std::array<std::pair<std::string_view, std::optional<std::int64_t> Asked::*>, 5> degrees_of_groups{
    {{"tp", &Asked::tp}, {"cp", &Asked::cp}, {"pp", &Asked::pp}, {"dp", &Asked::dp}, {"zero", &Asked::zero}}};

std::vector<std::string> split_at(const std::string& text, char mark) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(mark, from), text.size());
        parts.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return parts;
}

std::size_t module_named(const std::string& name, const workloads::Model& model) {
    std::vector<std::string> known;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        if (model.modules[m].name == name) return m;
        known.push_back(model.modules[m].name);
    }
    fail(ErrorKind::input, "--groups: no module is called '{}': {} has {}", name, model.name, fmt::join(known, ", "));
}

// Which of a group's numbers a word like "tp8" sets, and the digits behind it; null: it is no such word.
std::pair<std::optional<std::int64_t> Asked::*, std::string> degree_in(const std::string& word) {
    for (const auto& [name, member] : degrees_of_groups)
        if (word.starts_with(name) && word.size() > name.size() && word[name.size()] >= '0' && word[name.size()] <= '9')
            return {member, word.substr(name.size())};
    return {nullptr, {}};
}

std::int64_t most_of(std::optional<std::int64_t> Asked::*degree) { return degree == &Asked::zero ? 1 : most_gpus; }
std::int64_t least_of_degree(std::optional<std::int64_t> Asked::*degree) { return degree == &Asked::zero ? 0 : 1; }

Asked one_group(const std::string& text, const workloads::Model& model) {
    const std::size_t equals = text.find('=');
    Asked asked;
    asked.name = text.substr(0, equals);
    for (const std::string& name : split_at(asked.name, '+')) asked.modules.push_back(module_named(name, model));
    std::sort(asked.modules.begin(), asked.modules.end());
    if (equals == std::string::npos) return asked;
    const auto words = split_at(text.substr(equals + 1), ':');
    asked.gpus = parse_integer("--groups", words.front(), 1, most_gpus);
    for (std::size_t w = 1; w < words.size(); ++w) {
        const auto [degree, digits] = degree_in(words[w]);
        if (degree == nullptr)
            fail(ErrorKind::input, "--groups: {}",
                 must_be(words[w], "tpN, cpN, ppN, dpN or zeroN, as in llm=112:tp8:pp2"));
        if (asked.*degree)
            fail(ErrorKind::input, "--groups: {} has {} twice", asked.name,
                 words[w].substr(0, words[w].size() - digits.size()));
        asked.*degree = parse_integer("--groups", digits, least_of_degree(degree), most_of(degree));
    }
    return asked;
}

Asked group_in(const Json& json, const workloads::Model& model) {
    json.only_keys({"modules", "gpus", "tp", "cp", "pp", "dp", "zero"});
    Asked asked;
    for (const Json& one : json.at("modules").elements()) {
        asked.name += (asked.name.empty() ? "" : "+") + one.text();
        asked.modules.push_back(module_named(one.text(), model));
    }
    if (asked.modules.empty()) json.at("modules").fail("is empty, allowed are one or more modules of the model");
    std::sort(asked.modules.begin(), asked.modules.end());
    if (const auto gpus = json.find("gpus")) asked.gpus = gpus->integer(1, most_gpus);
    for (const auto& [name, member] : degrees_of_groups)
        if (const auto degree = json.find(name))
            asked.*member = degree->integer(least_of_degree(member), most_of(member));
    return asked;
}

bool is_document(const std::string& text) {
    const auto ends = [&](std::string_view end) { return text.ends_with(end); };
    return text.starts_with("{") || ends(".json") || ends(".yaml") || ends(".yml") || ends(".gz");
}

std::vector<Asked> groups_in(const JsonDocument& document, const workloads::Model& model) {
    document.require_format("pipeweaver-split", 1);
    const Json root = document.root();
    root.only_keys({"format", "groups"});
    std::vector<Asked> groups;
    for (const Json& one : root.at("groups").elements()) groups.push_back(group_in(one, model));
    return groups;
}

std::vector<Asked> by_last_module(std::vector<Asked> groups) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Asked& a, const Asked& b) { return a.modules.back() < b.modules.back(); });
    return groups;
}

}  // namespace

std::vector<Asked> asked_groups(const std::string& text, const workloads::Model& model) {
    std::vector<Asked> groups;
    if (text == "auto") {
        for (std::size_t m = 0; m < model.modules.size(); ++m) groups.push_back({model.modules[m].name, {m}});
        return groups;
    }
    if (is_document(text))
        groups = groups_in(JsonDocument::given("--groups", text), model);
    else
        for (const std::string& part : split_at(text, ',')) groups.push_back(one_group(part, model));
    std::vector<std::size_t> times(model.modules.size());
    for (const Asked& group : groups)
        for (const std::size_t m : group.modules) ++times[m];
    for (std::size_t m = 0; m < times.size(); ++m)
        if (times[m] != 1)
            fail(ErrorKind::input, "--groups: {} is named {} times: every module is in one group",
                 model.modules[m].name, times[m]);
    return by_last_module(std::move(groups));
}

std::string text_of(const Placed& placed) {
    return fmt::format("{}={}:tp{}:cp{}:pp{}:dp{}:zero{}", placed.name, placed.gpus(), placed.tp, placed.cp, placed.pp,
                       placed.dp, placed.zero);
}

std::string text_of(const Placing& placing) {
    std::string text;
    for (const Placed& one : placing.groups) text += (text.empty() ? "" : ",") + text_of(one);
    return text;
}

void take_layout(const Placed& placed, Asked& asked) {
    asked.gpus = placed.gpus();
    asked.tp = placed.tp;
    asked.cp = placed.cp;
    asked.pp = placed.pp;
    asked.dp = placed.dp;
    asked.zero = placed.zero;
}

std::vector<Asked> groups_with_work(const workloads::Model& model,
                                    const std::vector<workloads::Microbatch>& microbatches) {
    std::vector<Asked> groups;
    Asked main;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        if (m == model.backbone() || !has_work(model.modules[m], microbatches)) {
            main.name += (main.name.empty() ? "" : "+") + model.modules[m].name;
            main.modules.push_back(m);
        } else {
            groups.push_back({model.modules[m].name, {m}});
        }
    }
    groups.push_back(std::move(main));
    return by_last_module(std::move(groups));
}

}  // namespace pipeweaver::groups
