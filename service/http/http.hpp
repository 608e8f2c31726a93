// HTTP/1.1 on one thread: connections in, questions out, answers back. Knows nothing of planning.
//
// Limits       a connection that is idle, slow to send or slow to take is closed; bodies and headers have a largest
//              size. Beyond so many connections a new one is told so and closed.
// Bodies       that go on end with their connection, as those of HTTP/1.0; HEAD has none.
// Threads      run() is the one that talks; answers, after() and stop() may come from any.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "service/http/answer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::service {

/// Files in PEM.
struct Tls {
    std::string certificate, key;
};

struct Listen {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8080;  ///< 0: one that is free
    std::optional<Tls> tls;
    std::size_t most_body = std::size_t{16} << 20;
    std::size_t most_connections = 8'000;
    Duration most_idle = std::chrono::seconds(30);  ///< also for a request to arrive whole, and for an answer to leave
    Duration between_pieces = std::chrono::milliseconds(250);  ///< of a body that goes on
};

/// What a connection makes of bytes that it got.
struct Reading {
    std::optional<Question> question;  ///< none: they are refused, or not whole
    int refused = 0;                   ///< with that status; 0: they are not
};

/// Reads bytes as a connection does that got these and no more: to look at how requests are read, without one.
[[nodiscard]] Reading read_request(std::string_view bytes, std::size_t most_body = Listen{}.most_body);

/// Takes a question and answers it, soon or late.
using Handler = std::function<void(Question, Respond)>;

class HttpServer {
public:
    /// Listens. From now on SIGTERM, SIGINT and, unless it is ignored, SIGHUP do nothing but call `at_signal`, each
    /// time, on the thread of run().
    /// Throws Error{io} for an address that cannot be had, or a certificate that cannot be read.
    HttpServer(const Listen& listen, Handler handler, std::function<void()> at_signal);
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer();

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::size_t connections() const;

    /// Serves on the calling thread until stop().
    void run();
    void stop();

    /// Calls `then` on the thread of run().
    void after(Duration time, std::function<void()> then);

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;  // Boost's headers take long to compile: one source knows them
};

}  // namespace pipeweaver::service
