// pipeweaver serve: plans for jobs that run, over HTTP.
#include "pipeweaver/service/serve.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <thread>

namespace pipeweaver::apps {

namespace {

constexpr std::int64_t most_replicas = 65'536;

struct Serve {
    explicit Serve(CLI::App& app) : options(app) {
        options.group("The server");
        options.with_configuration();
        options.text("http", serve.http, "ADDRESS:PORT",
                     "where it listens; port 0: one that is free, which the log says (default 127.0.0.1:8080)");
        options.text("state", serve.state, "DIR",
                     "folder for sessions and served plans, which then outlive the server (default: they do not)");
        options.integer("threads", threads, 1, 1024, "threads that plan (default: all cores)");
        options.text("replicas", replicas, "LIST",
                     "plan these replicas of every session alone, like 0-15: other servers plan the others (default: "
                     "all)");
        options.flag("quiet", serve.quiet, "log warnings alone");
        options.group("Others than this machine");
        options.text("token-file", serve.token_file, "FILE", "the token that requests must bear, in a file of its own");
        options.text("tls-certificate", serve.certificate, "FILE", "certificate chain (PEM)");
        options.text("tls-key", serve.key, "FILE", "its key (PEM)");
        options.group("Limits");
        options.integer("sessions", sessions, 1, 10'000, "open at once (default 64)");
        options.integer("queue", queue, 1, 10'000, "unfinished steps of a session (default 32)");
        options.parsed(
            "memory", "SIZE", "of the server, beyond which a step is taken only when none is unfinished (default: any)",
            [this](const std::string& text) { serve.memory = static_cast<std::size_t>(parse_bytes(text).count); });
        options.parsed("session-budget", "TIME",
                       "most that a session's first plan may take, and has where it asks for no budget (default 60s)",
                       [this](const std::string& text) { serve.session_budget = parse_duration(text); });
        options.integer("keep-plans", keep_plans, 1, 1'000'000,
                        "served plans of a session that are kept (default 1000)");
        options.parsed("keep-bytes", "SIZE", "of all sessions and served plans that are kept (default 4GiB)",
                       [this](const std::string& text) { serve.keep_bytes = parse_bytes(text).count; });
    }

    void run() {
        options.apply();
        serve.threads = threads > 0 ? static_cast<std::size_t>(threads)
                                    : std::max(std::size_t{1}, std::size_t{std::thread::hardware_concurrency()});
        serve.sessions = static_cast<std::size_t>(sessions);
        serve.queue = static_cast<std::size_t>(queue);
        serve.keep_plans = static_cast<std::size_t>(keep_plans);
        if (!replicas.empty())
            for (const std::int64_t one : parse_integers("--replicas", replicas, 0, most_replicas - 1, most_replicas))
                serve.replicas.push_back(static_cast<std::size_t>(one));
        std::sort(serve.replicas.begin(), serve.replicas.end());
        serve.replicas.erase(std::unique(serve.replicas.begin(), serve.replicas.end()), serve.replicas.end());
        service::serve(serve);
    }

    Options options;
    service::ServeOptions serve;
    std::string replicas;
    std::int64_t threads = 0, sessions = 64, queue = 32, keep_plans = 1000;
};

}  // namespace

void add_serve(CLI::App& program) {
    add_command<Serve>(
        program, "serve", "plan for jobs that run, over HTTP",
        {.synopsis = "[--http ADDRESS:PORT] [--state DIR] [--threads N] [OPTION...]",
         .description =
             "Serves plans to jobs that run: a job opens a session (model, cluster, layout, partition), then posts "
             "each batch a few steps ahead with a deadline, and every rank collects its list. A plan by policy is "
             "there in milliseconds; it is improved until the deadline, and given again unchanged ever after. Ends at "
             "SIGTERM, when what was taken is planned.\n"
             "Any address but the loopback one needs a token and TLS. The log goes to stderr, a JSON object a line.",
         .examples = {{"For jobs of this machine, on two cores", "pipeweaver serve --state state --threads 2"},
                      {"On a port that is free, which the log says", "pipeweaver serve --http 127.0.0.1:0 --quiet"}},
         .files = {{"DIR/state.sqlite", "sessions and served plans (SQLite)"}},
         .see_also = {"pipeweaver plan --help", "docs/service.md"}});
}

}  // namespace pipeweaver::apps
