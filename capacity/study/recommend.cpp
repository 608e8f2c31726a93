#include "pipeweaver/capacity/recommend.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace pipeweaver::capacity {

namespace {

constexpr std::int64_t most_gpus_rented = 1'000'000;

// 64, 96, 128, 192, ..., 512, 1024: whole nodes of eight where the first is one. What lies between two large counts
// seldom decides.
std::vector<std::int64_t> between(std::int64_t from, std::int64_t to) {
    constexpr std::int64_t large = 512;
    std::vector<std::int64_t> counts;
    for (std::int64_t gpus = from; gpus <= to; gpus *= 2) {
        counts.push_back(gpus);
        const std::int64_t half_more = gpus + gpus / 2;
        if (half_more <= std::min(to, large) && half_more % 8 == 0) counts.push_back(half_more);
    }
    if (counts.back() != to) counts.push_back(to);
    std::sort(counts.begin(), counts.end());
    return counts;
}

std::vector<std::int64_t> gpu_counts(const std::string& text) {
    const auto dash = text.find('-');
    if (dash != std::string::npos) {
        const std::int64_t from = parse_integer("--gpus", text.substr(0, dash), 1, most_gpus_rented);
        return between(from, parse_integer("--gpus", text.substr(dash + 1), from, most_gpus_rented));
    }
    std::vector<std::int64_t> counts;
    for (const std::string& part : parts_of(text)) counts.push_back(parse_integer("--gpus", part, 1, most_gpus_rented));
    return counts;
}

nlohmann::json prices_of(const std::string& text) {
    nlohmann::json prices = nlohmann::json::object();
    constexpr double least_usd = 1e-6, most = 10'000;
    for (const std::string& part : parts_of(text)) {
        const auto equal = part.rfind('=');
        if (equal == std::string::npos || equal == 0)
            fail(ErrorKind::input, "--prices: {}", must_be(part, "CLUSTER=USD of a GPU-hour, like h100-sxm=2.5"));
        if (prices.contains(part.substr(0, equal)))
            fail(ErrorKind::input, "--prices: has {} twice", part.substr(0, equal));
        prices[part.substr(0, equal)] = parse_number("--prices", part.substr(equal + 1), least_usd, most);
    }
    return prices;
}

nlohmann::json cores_of(const std::string& text) {
    nlohmann::json cores = nlohmann::json::object();
    constexpr double most_usd = 1'000, most_included = 1'024;  // as studies have them
    for (const std::string& part : parts_of(text)) {
        const auto equal = part.find('=');
        const std::string name = part.substr(0, equal);
        const bool is_known = name == "usd" || name == "included" || name == "node";
        if (equal == std::string::npos || !is_known || cores.contains(name))
            fail(ErrorKind::input, "--cores: {}",
                 must_be(part, "usd=USD of a core-hour, included=CORES of a GPU or node=CORES, each once"));
        if (name == "node")
            cores[name] = parse_integer("--cores", part.substr(equal + 1), 1, 65'536);
        else
            cores[name] = parse_number("--cores", part.substr(equal + 1), 0, name == "usd" ? most_usd : most_included);
    }
    if (!cores.contains("usd")) fail(ErrorKind::input, "--cores: lacks usd=USD of a core-hour");
    return cores;
}

// What is wrong in the study is said of the options that it was made of.
std::string of_options(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> said{
        {{"a cell of the study: ", "--"},
         {"recommend: axes: cluster", "--clusters"},
         {"recommend: axes.cluster", "--clusters"},
         {"recommend: axes.", "--"},
         {"recommend: constraints.budget-usd and axes.cluster", "--budget-usd, --clusters"},
         {"recommend: constraints.", "--"},
         {"recommend: prices", "--prices"},
         {"recommend: tokens", "--tokens"},
         {"recommend: faulty", "--faulty"}}};
    for (const auto& [key, option] : said) {
        if (!text.starts_with(key)) continue;
        const std::string_view rest = text.substr(key.size());
        return std::string(rest.starts_with("--") ? "" : option) + std::string(rest);
    }
    return std::string(text);
}

}  // namespace

Study study_of(const RecommendAsked& asked) {
    nlohmann::json study{{"format", "pipeweaver-study/1"}, {"name", "recommend"}};
    if (!asked.tokens.empty()) study["tokens"] = asked.tokens;
    for (const auto& value : asked.plan.all())
        if (value.name != "model") study["plan"][value.name] = value.text;
    const auto* model = asked.plan.find("model");
    if (model == nullptr) {
        const Needed missing = planner::needed_model({});
        fail_missing(missing.option, missing.what);
    }
    study["axes"] = {{"model", model->text}, {"cluster", parts_of(asked.clusters)}, {"gpus", gpu_counts(asked.gpus)}};
    if (!asked.groups.empty()) study["axes"]["groups"] = asked.groups;
    if (!asked.prices.empty()) study["prices"] = prices_of(asked.prices);
    if (!asked.cores.empty() && asked.plan.find("loader") == nullptr)
        fail(ErrorKind::input, "--cores: goes with --loader, whose workers they are");
    if (!asked.cores.empty()) study["cores"] = cores_of(asked.cores);
    if (!asked.cp.empty())
        for (const std::string& part : parts_of(asked.cp))
            study["layouts"]["cp"].push_back(parse_integer("--cp", part, 1, 65'536));
    if (!asked.faulty.empty()) study["faulty"] = asked.faulty;
    if (asked.days) study["constraints"]["days"] = *asked.days;
    if (asked.budget_usd) study["constraints"]["budget-usd"] = *asked.budget_usd;
    study["shown"] = asked.shown;
    study["planned"] = asked.planned;
    try {
        return read_study(JsonDocument("recommend", study.dump()));
    } catch (const Error& error) {
        throw Error(error.kind(), of_options(error.what()));
    }
}

}  // namespace pipeweaver::capacity
