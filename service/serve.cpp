#include "pipeweaver/service/serve.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/service/client.hpp"
#include "service/http/http.hpp"
#include "service/http/routes.hpp"
#include "service/listen.hpp"
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

constexpr Duration between_looks = std::chrono::milliseconds(20);
constexpr Duration last_answers = std::chrono::milliseconds(200);

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
        log_.always("listening", {{"url", url_of(options, http_.port())}});
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
