#include "pipeweaver/service/ui.hpp"

#include "service/http/http.hpp"
#include "service/listen.hpp"
#include "service/ui/ui_routes.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace pipeweaver::service {

void serve_ui(const UiOptions& options) {
    UiRoutes routes(options);
    HttpServer* running = nullptr;
    HttpServer http(
        listen_of(options), [&](const Question& question, const Respond& respond) { respond(routes.answer(question)); },
        [&] { running->stop(); });
    running = &http;
    fmt::print(stderr, "{}  (Ctrl-C ends it)\n", url_of(options, http.port()));
    std::fflush(stderr);
    http.run();
}

}  // namespace pipeweaver::service
