#include "pipeweaver/planner/record.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::planner {

using nlohmann::json;

namespace {

json how_json(const How& how) {
    if (!how) return nullptr;
    json all = json::array();
    for (const Ending& one : *how) {
        if (!one) {
            all.push_back(nullptr);
            continue;
        }
        json stops = json::array();
        for (const auto& stop : *one) stops.push_back(stop ? json(*stop) : json(nullptr));
        all.push_back(std::move(stops));
    }
    return all;
}

// Parts of its time that a replica opens: where there is none for a search, and with one.
constexpr std::size_t parts_of_policies = 2, parts_of_a_search = 5;

How how_of(const Json& given) {
    if (given.is_null()) return std::nullopt;
    How how = Endings();
    for (const Json& one : given.elements()) {
        Ending& ending = how->emplace_back();
        if (one.is_null()) continue;
        ending.emplace();
        if (one.size() != parts_of_policies && one.size() != parts_of_a_search)
            one.fail(
                fmt::format("has {} numbers, {} or {} are needed", one.size(), parts_of_policies, parts_of_a_search));
        for (const Json& stop : one.elements()) {
            auto& times = ending->emplace_back();
            if (!stop.is_null()) times = static_cast<std::uint64_t>(stop.integer());
        }
    }
    return how;
}

}  // namespace

std::string to_json(const How& how) { return how_json(how).dump(); }

How parse_how(const std::string& name, std::string_view text) { return how_of(JsonDocument(name, text).root()); }

std::string record(std::string_view kept, std::int64_t step, std::string_view samples, const How& how) {
    const json all{{"format", "pipeweaver-record/1"},
                   {"session", json::parse(kept)},
                   {"step", step},
                   {"samples", samples},
                   {"endings", how_json(how)}};
    return all.dump(1) + "\n";
}

Recorded plan_again(const std::filesystem::path& path, const Executor& execute) {
    const auto document = JsonDocument::read_large(path);
    document.require_format("pipeweaver-record", 1);
    const Json root = document.root();
    root.only_keys({"format", "session", "step", "samples", "endings"});
    const KeptSession kept = read_session(document.name(), root.at("session").raw().dump(), execute);
    auto batch = kept.batch(root.at("step").integer(), root.at("samples").text());
    const How how = how_of(root.at("endings"));
    if (!how) {
        auto plan = kept.session.by_policy(batch, execute);
        return {kept.session.job(), std::move(batch), std::move(plan)};
    }
    if (how->size() != kept.session.replicas().size())
        root.at("endings").fail(
            fmt::format("has {} entries, the session plans {} replicas", how->size(), kept.session.replicas().size()));
    auto plan = kept.session.plan_again(batch, execute, *how);
    return {kept.session.job(), std::move(batch), std::move(plan)};
}

}  // namespace pipeweaver::planner
