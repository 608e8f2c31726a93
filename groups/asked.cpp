#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/groups/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::groups {

namespace {

constexpr std::int64_t most_gpus = 1'000'000;

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
        const std::string degree = words[w].substr(0, 2);
        if (degree != "tp" && degree != "pp")
            fail(ErrorKind::input, "--groups: {}", must_be(words[w], "tpN or ppN, as in llm=112:tp8:pp2"));
        auto& of = degree == "tp" ? asked.tp : asked.pp;
        if (of) fail(ErrorKind::input, "--groups: {} has {} twice", asked.name, degree);
        of = parse_integer("--groups", words[w].substr(2), 1, most_gpus);
    }
    return asked;
}

}  // namespace

std::vector<Asked> asked_groups(const std::string& text, const workloads::Model& model) {
    std::vector<Asked> groups;
    if (text == "auto") {
        for (std::size_t m = 0; m < model.modules.size(); ++m)
            groups.push_back({model.modules[m].name, {m}, {}, {}, {}});
        return groups;
    }
    std::vector<std::size_t> times(model.modules.size());
    for (const std::string& part : split_at(text, ',')) {
        groups.push_back(one_group(part, model));
        for (const std::size_t m : groups.back().modules) ++times[m];
    }
    for (std::size_t m = 0; m < times.size(); ++m)
        if (times[m] != 1)
            fail(ErrorKind::input, "--groups: {} is named {} times: every module is in one group",
                 model.modules[m].name, times[m]);
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Asked& a, const Asked& b) { return a.modules.back() < b.modules.back(); });
    return groups;
}

}  // namespace pipeweaver::groups
