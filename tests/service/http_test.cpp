#include "service/http/http.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <array>
#include <memory>
#include <optional>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace pipeweaver::service;

namespace {

Question read(const std::string& bytes) {
    CAPTURE(bytes);
    auto reading = read_request(bytes);
    REQUIRE(reading.question);
    CHECK(reading.refused == 0);
    return *reading.question;
}

Question get(const std::string& target) { return read("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"); }

}  // namespace

TEST_CASE("a request is read as a question") {
    const auto question = read(
        "PUT /v1/sessions/job/steps/7?wait_ms=5 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer t\r\n"
        "Content-Type: application/json\r\nAccept-Encoding: deflate, gzip\r\nX-Request-Id: r1\r\n"
        "Content-Length: 4\r\n\r\n{\n }GET / HTTP/1.1\r\n");
    CHECK(question.method == "PUT");
    CHECK(question.path == "/v1/sessions/job/steps/7");
    CHECK(question.query == std::map<std::string, std::string>{{"wait_ms", "5"}});
    CHECK(question.host == "127.0.0.1:8080");
    CHECK(question.authorization == "Bearer t");
    CHECK(question.content_type == "application/json");
    CHECK(question.accepts_gzip);
    CHECK(question.id == "r1");
    CHECK(question.body == "{\n }");
}

TEST_CASE("a query is decoded, a path stays as it came") {
    using Query = std::map<std::string, std::string>;
    CHECK(get("/a%2Fb/c").path == "/a%2Fb/c");
    CHECK(get("/?wait%5Fms=1%30+%2b&by_ms").query == Query{{"wait_ms", "10 +"}, {"by_ms", ""}});
    CHECK(get("/?a=1&a=2&&=3&b==").query == Query{{"a", "2"}, {"", "3"}, {"b", "="}});
    CHECK(get("/?a=%").query == Query{{"a", "%"}});
    CHECK(get("/?a=%4").query == Query{{"a", "%4"}});
    CHECK(get("/?a=%4g%G4%41").query == Query{{"a", "%4g%G4A"}});
    CHECK(get("/?%00=%ff").query == Query{{std::string(1, '\0'), "\xff"}});
    CHECK(get("/?").query.empty());
    CHECK(get("*").path == "*");
}

TEST_CASE("what is asked with HEAD is asked with GET") {
    CHECK(read("HEAD /healthz HTTP/1.1\r\n\r\n").method == "GET");
    CHECK(read("BREW / HTTP/1.0\r\n\r\n").method == "BREW");
}

TEST_CASE("a body in pieces is one") {
    const auto question =
        read("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n");
    CHECK(question.body == "abcde");
}

TEST_CASE("what is no request is refused, and what is not whole is waited for") {
    const auto refused = [](const std::string& bytes) {
        const auto reading = read_request(bytes, 8);
        CHECK_FALSE(reading.question);
        return reading.refused;
    };
    CHECK(refused("nonsense\r\n\r\n") == 400);
    CHECK(refused("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n") == 400);
    CHECK(refused("GET / HTTP/9.9\r\n\r\n") == 400);
    CHECK(refused("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n") == 400);
    CHECK(refused("PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\n") == 413);
    CHECK(refused("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n") == 413);
    CHECK(refused(fmt::format("GET / HTTP/1.1\r\nCookie: {}\r\n\r\n", std::string(20'000, 'x'))) == 431);
    for (const char* begun : {"", "G", "GET / HTTP/1.1\r\nHost:", "PUT / HTTP/1.1\r\nContent-Length: 8\r\n\r\n1234"})
        CHECK(refused(begun) == 0);
}

namespace {

// A connection to this machine's port.
class Client {
public:
    explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in there{};
        there.sin_family = AF_INET;
        there.sin_port = htons(port);
        there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() { ::close(socket_); }

    // What comes until the other side ends the connection.
    [[nodiscard]] std::string all() const {
        std::string all;
        std::array<char, 4096> some{};
        for (ssize_t got = 0; (got = ::recv(socket_, some.data(), some.size(), 0)) > 0;)
            all.append(some.data(), static_cast<std::size_t>(got));
        return all;
    }

    [[nodiscard]] bool is_ended() const {
        char one = 0;
        return ::recv(socket_, &one, 1, MSG_DONTWAIT) == 0;
    }

private:
    int socket_;
};

Listen on_a_free_port() {
    Listen listen;
    listen.port = 0;
    return listen;
}

}  // namespace

TEST_CASE("connections end before the handler that they call") {
    std::optional<Client> client;
    bool was_ended = false;
    std::shared_ptr<void> used(nullptr, [&](void*) { was_ended = client->is_ended(); });
    {
        HttpServer server(
            on_a_free_port(), [used = std::move(used)](const Question&, const Respond&) {}, [] {});
        client.emplace(server.port());
        std::thread serving([&] { server.run(); });
        while (server.connections() == 0) std::this_thread::yield();
        server.stop();
        serving.join();
    }
    CHECK(was_ended);
}

TEST_CASE("beyond so many connections one is told so, with a body as other answers have") {
    Listen listen = on_a_free_port();
    listen.most_connections = 1;
    HttpServer server(
        listen, [](const Question&, const Respond& respond) { respond({}); }, [] {});
    std::thread serving([&] { server.run(); });
    {
        const Client first(server.port());
        while (server.connections() == 0) std::this_thread::yield();
        const std::string told = Client(server.port()).all();
        CHECK(told.starts_with("HTTP/1.1 503 "));
        CHECK(told.find("\r\nRetry-After: 5\r\n") != std::string::npos);
        const std::string body = told.substr(told.find("\r\n\r\n") + 4);
        CHECK(told.find(fmt::format("\r\nContent-Length: {}\r\n", body.size())) != std::string::npos);
        CHECK(nlohmann::json::parse(body)["error"]["message"] == "too many connections are open");
    }
    server.stop();
    serving.join();
}
