#include "pipeweaver/capacity/study.hpp"

#include "capacity/study/axes.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/training_cost.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

constexpr std::int64_t most_points = 10'000'000;

std::vector<std::int64_t> integers_of(const Json& json, std::int64_t low, std::int64_t high) {
    if (!json.is_array()) return {json.integer(low, high)};
    std::vector<std::int64_t> all;
    for (const Json& one : json.elements()) all.push_back(one.integer(low, high));
    if (all.empty()) json.fail("is empty, allowed is a list of degrees, or none");
    return all;
}

// "2%" or 0.02.
double read_faulty(const Json& json) {
    if (!json.is_string()) return json.number(0, 0.999);
    const std::string text = json.text();
    const bool in_percent = text.ends_with('%');
    const auto part = in_percent ? number_in(text.substr(0, text.size() - 1), 0, 99.9) : number_in(text, 0, 0.999);
    if (!part) json.fail(must_be(text, "a part of the nodes, like 2% or 0.02"));
    return in_percent ? *part / 100 : *part;
}

LayoutLists read_layouts(const Json& json) {
    LayoutLists lists;
    if (json.is_string()) {
        json.one_of({"auto"});
        return lists;
    }
    json.only_keys({"tp", "pp", "cp", "dp", "ep", "zero"});
    constexpr std::int64_t most = 65'536;
    const auto take = [&](std::string_view key, std::vector<std::int64_t>& list, std::int64_t low, std::int64_t high) {
        if (const auto found = json.find(key)) list = integers_of(*found, low, high);
    };
    take("tp", lists.tp, 1, most);
    take("pp", lists.pp, 1, most);
    take("cp", lists.cp, 1, most);
    take("dp", lists.dp, 1, most);
    take("ep", lists.ep, 1, most);
    take("zero", lists.zero, 1, 3);
    return lists;
}

CorePrice read_cores(const Json& json) {
    json.only_keys({"usd", "included", "node"});
    constexpr double most_usd = 1'000, most_included = 1'024;
    constexpr std::int64_t most_of_node = 65'536;
    CorePrice read{.usd = json.at("usd").number(0, most_usd)};
    if (const auto included = json.find("included")) read.included = included->number(0, most_included);
    if (const auto node = json.find("node")) read.node = node->integer(1, most_of_node);
    return read;
}

Constraints read_constraints(const Json& json, const Study& study) {
    json.only_keys({"days", "budget-usd"});
    Constraints read;
    constexpr double most_days = 10'000, most_usd = 1e12, least = 1e-6;
    if (const auto days = json.find("days")) read.days = days->number(least, most_days);
    if (const auto usd = json.find("budget-usd")) read.usd = usd->number(least, most_usd);
    if ((read.days || read.usd) && study.training_tokens == 0)
        json.fail("needs `tokens`, of the whole training run, like 300B");
    return read;
}

// What cells keep of a document, in one text: what only the ranking reads is not part of it.
std::string judged_by(const Study& study, const Cell& cell) {
    nlohmann::json all;
    for (const auto& value : cell.asked.all())
        if (value.name != "tokens" && (value.name != "price" || study.constraints.usd))
            all["asked"][value.name] = value.text;
    const LayoutLists& lists = study.layouts;
    all["layouts"] = {lists.tp, lists.pp, lists.cp, lists.dp, lists.ep, lists.zero};
    all["shown"] = study.shown;
    all["bounds"] = study.bounds;
    if (cell.groups != GroupsAsked::shared) all["groups"] = name_of(cell.groups);
    if (study.constraints.days) all["days"] = *study.constraints.days;
    if (study.constraints.usd) all["usd"] = *study.constraints.usd;
    if (study.constraints.days || study.constraints.usd) all["tokens"] = study.training_tokens;
    for (const std::string& path : files_of(cell.asked)) all["files"][path] = sha256(read_file(path));
    all["version"] = PIPEWEAVER_VERSION;
    return all.dump();
}

void require_prices(const Study& study, const Json& json) {
    if (!study.constraints.usd) return;
    for (const Cell& cell : study.cells)
        if (price_of(cell) == 0)
            json.fail(
                fmt::format("constraints.budget-usd and axes.cluster: {} has no price; say one under `prices`, in USD "
                            "of a GPU-hour",
                            cell.cluster));
}

}  // namespace

bool LayoutLists::allow(const planner::LayoutAndZero& as) const {
    const auto has = [](const std::vector<std::int64_t>& list, std::int64_t degree) {
        return list.empty() || std::find(list.begin(), list.end(), degree) != list.end();
    };
    const emulator::Layout& in = as.layout;
    return has(tp, in.tp) && has(pp, in.pp) && has(cp, in.cp) && has(dp, in.dp) && has(ep, in.ep) && has(zero, as.zero);
}

Study read_study(const JsonDocument& document) {
    const Json root = document.root();
    document.require_format("pipeweaver-study", 1);
    root.only_keys({"format", "name", "tokens", "plan", "axes", "layouts", "prices", "cores", "constraints", "faulty",
                    "shown", "bounds", "planned", "limit"});
    Study study;
    study.document = root.raw().dump();
    study.sha256 = pipeweaver::sha256(study.document);
    if (const auto name = root.find("name")) study.name = name->text();
    if (const auto tokens = root.find("tokens")) {
        try {
            study.training_tokens = planner::parse_tokens(tokens->is_string() ? tokens->text() : tokens->raw().dump());
        } catch (const Error& error) {
            tokens->fail(error.what());
        }
    }
    if (const auto faulty = root.find("faulty")) study.faulty = read_faulty(*faulty);
    if (const auto cores = root.find("cores")) study.cores = read_cores(*cores);
    if (const auto layouts = root.find("layouts")) study.layouts = read_layouts(*layouts);
    if (const auto shown = root.find("shown")) study.shown = static_cast<std::size_t>(shown->integer(1, 1000));
    if (const auto bounds = root.find("bounds")) study.bounds = bounds->boolean();
    if (const auto planned = root.find("planned")) study.planned = static_cast<std::size_t>(planned->integer(0, 100));
    constexpr std::int64_t usual_limit = 50'000;
    study.limit = static_cast<std::size_t>(root.find("limit") ? root.at("limit").integer(1, most_points) : usual_limit);
    study.cells = cells_of(root);
    if (const auto constraints = root.find("constraints")) study.constraints = read_constraints(*constraints, study);
    require_prices(study, root);
    make_jobs(study);
    require_points(root, study);
    for (Cell& cell : study.cells) cell.key = sha256(judged_by(study, cell));
    return study;
}

std::string_view name_of(GroupsAsked groups) {
    switch (groups) {
        case GroupsAsked::own:
            return "own";
        case GroupsAsked::either:
            return "auto";
        default:
            return "shared";
    }
}

double price_of(const Cell& cell) { return cell.machine.price_per_gpu_hour; }

Shard parse_shard(const std::string& text) {
    const auto slash = text.find('/');
    constexpr std::int64_t most = 1'000'000;
    if (slash != std::string::npos) {
        const std::int64_t count = parse_integer("--shard", text.substr(slash + 1), 1, most);
        const std::int64_t index = parse_integer("--shard", text.substr(0, slash), 0, count - 1);
        return {static_cast<std::size_t>(index), static_cast<std::size_t>(count)};
    }
    fail(ErrorKind::input, "--shard: {}", must_be(text, "a shard and their number, like 0/4"));
}

}  // namespace pipeweaver::capacity
