#include "tests/load/served_job.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <algorithm>
#include <string_view>
#include <thread>

namespace pipeweaver::load {

namespace {

constexpr Duration to_be_answered = std::chrono::minutes(2);

// The lines of a batch file as an array.
std::string array_of(std::string lines) {
    lines.erase(lines.find_last_not_of('\n') + 1);
    std::replace(lines.begin(), lines.end(), '\n', ',');
    return "[" + lines + "]";
}

}  // namespace

std::string ServedJob::session(const nlohmann::ordered_json& more) const {
    nlohmann::ordered_json config{{"model", model}, {"cluster", cluster}, {"tp", tp},
                                  {"pp", pp},       {"dataset", dataset}, {"microbatches", microbatches}};
    config.update(more);
    return nlohmann::ordered_json{{"config", std::move(config)}}.dump();
}

std::vector<std::string> ServedJob::batches(std::uint64_t first, std::size_t count) const {
    planner::WorkloadOptions workload;
    workload.model = model;
    workload.cluster = cluster;
    workload.dataset = dataset;
    workload.tp.number = tp;
    workload.pp.number = pp;
    workload.microbatches = microbatches;
    const auto setup = workload.job(first, in_order).setup;
    std::vector<std::string> all;
    all.reserve(count);
    for (std::size_t k = 0; k < count; ++k)
        all.push_back(array_of(workloads::to_jsonl(workload.drawn(setup->model, first + k, microbatches).samples)));
    return all;
}

std::string submission(const std::string& samples, Duration deadline) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
    return fmt::format(R"({{"deadline_ms":{},"samples":{}}})", std::max<std::int64_t>(1, time), samples);
}

std::string path_of(const std::string& session) { return "/v1/sessions/" + session; }

std::string path_of(const std::string& session, std::int64_t step) {
    return fmt::format("{}/steps/{}", path_of(session), step);
}

std::string asked(service::Client& client, const std::string& method, const std::string& path,
                  const std::string& body) {
    auto reply = client.ask(method, path, body, to_be_answered);
    const bool good = method == "GET" ? reply.status == 200 : reply.status >= 200 && reply.status < 300;
    if (!good) fail(ErrorKind::io, "{} {}: status {}: {}", method, path, reply.status, reply.body);
    return std::move(reply.body);
}

void open_session_of(service::Client& client, const std::string& name, const std::string& session) {
    static_cast<void>(asked(client, "PUT", path_of(name), session));
}

void wait_until_ready(service::Client& client) {
    for (const Stopwatch watch; client.ask("GET", "/readyz", {}, to_be_answered).status != 200;) {
        if (watch.elapsed() > std::chrono::minutes(1)) fail(ErrorKind::io, "the server is not ready after a minute");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

}  // namespace pipeweaver::load
