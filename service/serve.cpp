#include "pipeweaver/service/serve.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/service/client.hpp"
#include "service/http/http.hpp"
#include "service/http/routes.hpp"
#include "service/log.hpp"
#include "service/metrics.hpp"
#include "service/planning.hpp"
#include "service/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>

namespace pipeweaver::service {

namespace {

constexpr std::size_t shortest_token = 16;
constexpr Duration between_looks = std::chrono::milliseconds(20);
constexpr Duration last_answers = std::chrono::milliseconds(200);

struct Address {
    std::string host;
    std::uint16_t port = 0;
};

Address address_of(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0)
        fail(ErrorKind::input, "--http: {}", must_be(text, "ADDRESS:PORT, like 127.0.0.1:8080 or [::1]:8080"));
    Address address;
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
        address.host = address.host.substr(1, address.host.size() - 2);
    if (address.host == "localhost") address.host = "127.0.0.1";
    address.port = static_cast<std::uint16_t>(parse_integer("--http", text.substr(colon + 1), 0, 65'535));
    return address;
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

std::string token_of(const std::string& path) {
    if (path.empty()) return {};
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && (about.st_mode & 077) != 0)
        fail(ErrorKind::input, "{}: others may read the token; allowed is a file for its owner alone (chmod 600)",
             path);
    std::string token = read_token(path);
    if (token.size() < shortest_token)
        fail(ErrorKind::input, "{}: the token has {} characters, allowed are {} or more", path, token.size(),
             shortest_token);
    return token;
}

Listen listen_of(const ServeOptions& options) {
    const Address address = address_of(options.http);
    Listen listen;
    listen.address = address.host;
    listen.port = address.port;
    if (options.certificate.empty() != options.key.empty())
        fail(ErrorKind::input, "--tls-certificate, --tls-key: go together");
    if (!options.certificate.empty()) listen.tls = Tls{options.certificate, options.key};
    if (!is_loopback(address.host) && (options.token_file.empty() || !listen.tls))
        fail(ErrorKind::input,
             "--http: {} is for others than this machine, which needs --token-file, --tls-certificate and --tls-key; "
             "without them allowed is 127.0.0.1",
             address.host);
    return listen;
}

// Thousands of connections are thousands of open files.
void allow_many_files() {
    struct rlimit files {};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
}

Limits limits_of(const ServeOptions& options) {
    Limits limits;
    limits.sessions = options.sessions;
    limits.queue = options.queue;
    limits.together.memory = options.memory;
    limits.open.replicas = options.replicas;
    limits.open.most_budget = options.session_budget;
    return limits;
}

// What went wrong with what is stored: said also where the log is quiet.
bool is_of_the_state(std::string_view event) {
    constexpr std::array<std::string_view, 3> all{"plan not stored", "state not read", "session not opened again"};
    return std::find(all.begin(), all.end(), event) != all.end();
}

class Server {
public:
    Server(const ServeOptions& options, Log& log)
        : log_(log),
          http_(
              listen_of(options),
              [this](Question question, const Respond& respond) { take(std::move(question), respond); },
              [this] { end(); }),
          store_(options.state, {options.keep_plans, options.keep_bytes}, moved_),
          planning_(store_, metrics_, options.threads, limits_of(options),
                    [this](const std::string& event, const std::string& fields) { say(event, fields); }),
          routes_(planning_, metrics_, token_of(options.token_file),
                  [this](Duration time, std::function<void()> then) { http_.after(time, std::move(then)); }) {
        if (moved_) log_.warning("state moved aside", {{"why", *moved_}});
        const std::string host = listen_of(options).address;
        log_.always("listening", {{"url", fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https",
                                                      host.find(':') == std::string::npos ? host : "[" + host + "]",
                                                      http_.port())}});
    }

    void run() {
        http_.run();
        log_.always("ended", {{"unfinished", std::to_string(planning_.unfinished())}});
    }

private:
    void take(Question question, const Respond& respond) {
        metrics_.connections(http_.connections());
        if (question.id.empty() || question.id.size() > 100) question.id = fmt::format("r{}", ++requests_);
        const Stopwatch watch;
        const std::string about = question.path.substr(0, 200);
        routes_.answer(question,
                       [this, watch, about, id = question.id, method = question.method, respond](Answer answer) {
                           metrics_.answered(method, answer.route.empty() ? "none" : answer.route, answer.status);
                           log_.request({id, method, about, answer.status, watch.seconds()});
                           answer.headers.emplace_back("X-Request-Id", id);
                           respond(std::move(answer));
                       });
    }

    void say(const std::string& event, const std::string& fields) {
        if (is_of_the_state(event))
            log_.warn(event, fields);
        else
            log_.info(event, fields);
    }

    void end() {
        if (ending_) return http_.stop();
        ending_ = true;
        log_.always("ending", {{"unfinished", std::to_string(planning_.unfinished())}});
        wait_for_rest();
    }

    void wait_for_rest() {
        if (planning_.drain()) return http_.after(last_answers, [this] { http_.stop(); });
        http_.after(between_looks, [this] { wait_for_rest(); });
    }

    Log& log_;
    Metrics metrics_;
    HttpServer http_;
    std::optional<std::string> moved_;
    Store store_;
    Planning planning_;  // its threads end before what they use
    Routes routes_;
    std::uint64_t requests_ = 0;
    bool ending_ = false;
};

}  // namespace

void serve(const ServeOptions& options) {
    allow_many_files();
    Log log(options.quiet);
    Server(options, log).run();
}

}  // namespace pipeweaver::service
