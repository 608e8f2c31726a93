#include "pipeweaver/planner/record.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/search.hpp"

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

// Of a session's priced layers: batches differ, so most of what is older than some dozens of steps is never asked for
// again.
constexpr std::size_t bytes_of_layers = std::size_t{4} << 20;

std::string_view text_of_split(Split split) {
    return split == Split::always ? "always" : split == Split::never ? "never" : "auto";
}

// Layout, packing and partition as they were chosen; nothing is left to be chosen again.
json pinned(json configuration, const Job& job, const Plan& plan, Split split) {
    const emulator::Layout& layout = job.setup->layout;
    configuration["tp"] = layout.tp;
    configuration["pp"] = layout.pp;
    configuration["dp"] = layout.dp;
    if (job.layout_choice) {
        configuration["cp"] = layout.cp;
        configuration["ep"] = layout.ep;
        configuration["zero"] = job.setup->recipe.zero;
        if (job.setup->recipe.zero >= 2) configuration["bucket"] = "0B";
        configuration.erase("layout");
    }
    configuration["packing"] = std::string(name_of(job.packing));
    // What is left to the batch depends on its shapes: the next one keeps as much.
    const bool is_left = target(job.target).launch.segments_expand_as.empty();
    if (is_left || job.setup->headroom != emulator::usual_headroom)
        configuration["headroom"] = text_of_headroom(job.setup->headroom);
    configuration["split"] = std::string(text_of_split(split));
    configuration["partition"] = partition::to_json({plan.partition(), plan.partition_choice.chosen_on}, *job.setup);
    configuration.erase("budget");
    configuration.erase("sample");
    configuration.erase("replicas");
    return configuration;
}

json order_json(const Plan& plan) {
    const auto order = StaticOrder::of_plan(plan);
    if (!order) return nullptr;
    const std::string problem = to_json(order->problem());
    const auto& found = plan.replicas[plan.slowest].found;
    const std::string sha256 = schedule::parse_problem("order", problem).sha256;
    return {{"problem", json::parse(problem)},
            {"solution", json::parse(to_json(search::solution(found, order->problem(), sha256)))}};
}

// When searches of the session's batches end; a session without the key was kept when they ended by themselves.
constexpr std::string_view at_the_deadline = "at the deadline";

std::optional<search::Patience> patience_of(const Json& kept) {
    const auto ends = kept.find("ends");
    if (!ends) return patience;
    if (ends->text() != at_the_deadline) ends->fail(fmt::format("is none of: {}", at_the_deadline));
    return std::nullopt;
}

std::optional<StaticOrder> order_of(const std::string& name, const Json& kept, const partition::Partition& partition) {
    if (kept.is_null()) return std::nullopt;
    auto problem = schedule::parse_problem(name, kept.at("problem").raw().dump());
    auto schedule = schedule::parse_schedule(name, kept.at("solution").raw().dump(), problem);
    return StaticOrder(partition, std::move(problem.problem), std::move(schedule));
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

SessionOptions::SessionOptions(const Json& configuration, const std::optional<std::string>& sample) {
    asked.configure(configuration);
    WorkloadOptions& workload = asked.plan.workload;
    workload.batch_text = sample;
    workload.store_bytes = bytes_of_layers;
    if (sample) workload.batch = "sample";
}

Request SessionOptions::request(const Executor& execute) const { return asked.plan.request(asked.limits, execute); }

std::string keep(std::string_view configuration, const std::optional<std::string>& sample, const Job& job,
                 const Plan& plan) {
    const Session session(job, plan);
    const json kept{{"format", "pipeweaver-session/1"},
                    {"config", pinned(json::parse(configuration), job, plan, session.job().split)},
                    {"sample", sample ? json(*sample) : json(nullptr)},
                    {"replicas", session.replicas()},
                    {"order", order_json(plan)},
                    {"ends", std::string(at_the_deadline)},
                    {"first_makespan_ns", plan.makespan.count()}};
    return kept.dump();
}

KeptSession read_session(const std::string& name, std::string_view kept, const Executor& execute) {
    const JsonDocument document(name, kept);
    document.require_format("pipeweaver-session", 1);
    const Json root = document.root();
    root.only_keys({"format", "config", "sample", "replicas", "order", "ends", "first_makespan_ns"});
    const Json sample = root.at("sample");
    const SessionOptions options(root.at("config"), sample.is_null() ? std::nullopt : std::optional(sample.text()));
    const auto request = options.request(execute);
    if (!request.job.fixed || request.job.split == Split::automatic)
        root.at("config").fail("has no partition, or leaves open which backwards are split");
    std::vector<std::size_t> replicas;
    for (const Json& one : root.at("replicas").elements())
        replicas.push_back(static_cast<std::size_t>(one.integer(0, request.job.setup->layout.dp - 1)));
    if (replicas.empty()) root.at("replicas").fail("has none");
    auto order = order_of(name, root.at("order"), request.job.fixed->partition);
    return {Session(request.job, std::move(replicas), std::move(order), patience_of(root)),
            options.asked.plan.job.partition, workloads::to_jsonl(request.batch.samples),
            Duration{root.at("first_makespan_ns").integer(0)}};
}

Batch KeptSession::batch(std::int64_t step, std::string_view samples) const {
    const std::string name = fmt::format("step {}", step);
    return session.job().batch(name, workloads::parse_batch(name, samples, session.job().setup->model));
}

}  // namespace pipeweaver::planner
