#include "apps/server_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/service/client.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <random>

namespace pipeweaver::apps {

using nlohmann::ordered_json;

namespace {

constexpr Duration usual_time = std::chrono::seconds(3);
constexpr Duration to_answer = std::chrono::seconds(150);  // a session is opened in a minute at most, unless it waits

ErrorKind kind_of(int status) {
    if (status == 422) return ErrorKind::limit;
    return status >= 500 || status == 429 ? ErrorKind::io : ErrorKind::input;
}

std::string message_of(const service::Reply& reply) {
    const auto json = ordered_json::parse(reply.body, nullptr, false);
    return json.is_object() && json.contains("error") ? json["error"].value("message", reply.body) : reply.body;
}

class Server {
public:
    explicit Server(const ServerOptions& options)
        : url_(options.url),
          authority_(options.authority),
          token_(options.token_file.empty() ? std::string() : service::read_token(options.token_file)) {}

    service::Reply reply(const std::string& method, const std::string& path, const std::string& body = {}) const {
        return service::ask({url_, token_, authority_}, method, path, body, to_answer);
    }

    std::string ask(const std::string& method, const std::string& path, const std::string& body = {}) const {
        const auto reply = this->reply(method, path, body);
        if (reply.status >= 400)
            fail(kind_of(reply.status), "{}: {}: {} (status {})", url_, path, message_of(reply), reply.status);
        return reply.body;
    }

private:
    std::string url_, authority_, token_;
};

// A session that is open while this lives: servers have places for a few.
class OpenSession {
public:
    OpenSession(const Server& server, std::string path, const std::string& asked)
        : server_(server), path_(std::move(path)) {
        static_cast<void>(server_.ask("PUT", path_, asked));
    }
    OpenSession(const OpenSession&) = delete;
    OpenSession& operator=(const OpenSession&) = delete;
    ~OpenSession() {
        try {
            static_cast<void>(server_.reply("DELETE", path_));
        } catch (const Error&) {  // a server that is gone has its sessions no longer
        }
    }

private:
    const Server& server_;
    std::string path_;
};

// A name that no other call has: a session of two would be closed under the one by the other.
std::string name_of_its_own() {
    std::random_device draw;
    return fmt::format("plan-{:08x}{:08x}{:08x}{:08x}", draw(), draw(), draw(), draw());
}

// Files that options name, as documents: a server reads none.
ordered_json without_files(ordered_json config) {
    for (const char* here : {"out", "batch", "dataset", "microbatches", "global-batch", "deferred", "threads", "server",
                             "server-token", "server-authority", "served", "sample"})
        config.erase(here);
    for (const char* key : {"model", "teacher", "cluster", "network", "recipe", "partition", "loader"}) {
        const auto found = config.find(key);
        if (found == config.end() || !found->is_string()) continue;
        const std::string value = *found;
        if (value.starts_with("hf:"))
            fail(ErrorKind::input, "--{}: with --server write the model as a file: pipeweaver show {}", key, value);
        if (is_a_document(value)) continue;
        // A cluster's file may be followed by a number of GPUs.
        if (found.key() == "cluster" && names_a_document(std::string_view(value).substr(0, value.rfind(':'))))
            *found = ordered_json::parse(workloads::to_json(workloads::find_cluster(value)));
        else if (names_a_document(value))
            *found = ordered_json::parse(JsonDocument::read(value).root().raw().dump());
    }
    return config;
}

ordered_json samples_of(const planner::Batch& batch) {
    ordered_json samples = ordered_json::array();
    std::string_view lines;
    const std::string text = workloads::to_jsonl(batch.samples);
    for (lines = text; !lines.empty();) {
        const std::size_t end = lines.find('\n');
        samples.push_back(ordered_json::parse(lines.substr(0, end)));
        lines.remove_prefix(std::min(lines.size(), end + 1));
    }
    return samples;
}

// "replicas/0/solution" as the folder of a plan has it.
std::string file_of(const std::string& part) {
    constexpr std::string_view replicas = "replicas/";
    if (part == "deferred") return "deferred.jsonl";
    if (!part.starts_with(replicas)) return part + ".json";
    const std::size_t slash = part.find('/', replicas.size());
    const std::string number = part.substr(replicas.size(), slash - replicas.size());
    const std::string rest = part.substr(slash + 1);
    return fmt::format("replica-{:0>3}/{}.json{}", number, rest, rest == "problem" ? ".gz" : "");
}

}  // namespace

ServerPlan plan_on_server(const ServerOptions& options, const ordered_json& given, const planner::Batch& batch,
                          std::optional<Duration> within, const std::filesystem::path& out) {
    const Server server(options);
    const ordered_json samples = samples_of(batch);
    const std::string session = ordered_json{{"config", without_files(given)}, {"sample", samples}}.dump();
    const std::string path = "/v1/sessions/" + name_of_its_own(), of_step = path + "/steps/0";
    const OpenSession open(server, path, session);
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(within.value_or(usual_time));
    const ordered_json step{{"samples", samples}, {"deadline_ms", std::max<std::int64_t>(1, time.count())}};
    static_cast<void>(server.ask("PUT", of_step, step.dump()));
    ServerPlan plan;
    plan.answer = ordered_json::parse(server.ask("GET", of_step));
    if (plan.answer.at("state") != "planned")
        fail(ErrorKind::io, "{}: the plan is late: {}", options.url, plan.answer.dump());
    std::vector<FileToWrite> files;
    for (const std::string part : plan.answer.at("parts"))
        if (part.find("/ranks/") == std::string::npos)
            files.push_back({out / file_of(part), server.ask("GET", fmt::format("{}/{}", of_step, part))});
    const std::string record = server.ask("GET", of_step + "/record");
    files.push_back({out / "record.json", record});
    files.push_back({out / "partition.json", ordered_json::parse(record).at("session").at("config").at("partition")});
    plan.files = emit::write_plan_files(files, out);
    return plan;
}

std::string text_of(const ordered_json& answer) {
    const auto& found = answer.at("found");
    return fmt::format("makespan {}, gap {:.1f} %, found by {} ({}, {} rounds)",
                       human(Duration{found.at("makespan_ns").get<std::int64_t>()}),
                       100 * found.at("gap").get<double>(), found.at("by").get<std::string>(),
                       found.at("strategy").get<std::string>(), found.at("rounds").get<std::int64_t>());
}

}  // namespace pipeweaver::apps
