#include "pipeweaver/base/deadline.hpp"
#include "service/http/http.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <arpa/inet.h>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::service;
using namespace std::chrono_literals;

namespace {

constexpr Duration at_last = 60s;  // on the slowest machine

// What a case must find: whether it did, and what it is.
using Must = std::function<void(bool, const char*)>;

// Runs a case with connections that may be silent for so long. A machine that is busy may keep the test itself from its
// turn for as long, and has it cut off: then it is tried once more with longer ones.
void tried(const std::function<void(Duration, const Must&)>& run) {
    std::string wrong;
    for (const Duration idle : {Duration(300ms), Duration(2s), Duration(10s)}) {
        wrong.clear();
        run(idle, [&](bool holds, const char* what) {
            if (!holds) wrong += fmt::format("not so: {}\n", what);
        });
        if (wrong.empty()) break;
    }
    CHECK_MESSAGE(wrong.empty(), wrong);
}

// A server whose connections may be silent for a moment. "/never" is not answered, "/much" with more than a socket
// holds; "/three" with three pieces, "/quiet" with none and no end, "/on" with pieces larger than a socket holds.
class Server {
public:
    explicit Server(Duration idle = 2s)
        : http_(
              listen(idle), [this](const Question& question, const Respond& respond) { take(question, respond); },
              [] {}) {
        thread_ = std::jthread([this] { http_.run(); });
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() { http_.stop(); }

    std::uint16_t port() const { return http_.port(); }
    std::size_t asked() const { return asked_; }
    std::size_t pieces() const { return pieces_; }

    // Whether so many connections are there before long.
    bool has(std::size_t connections) const {
        const Stopwatch watch;
        while (http_.connections() != connections) {
            if (watch.elapsed() > at_last) return false;
            std::this_thread::sleep_for(1ms);
        }
        return true;
    }

private:
    static Listen listen(Duration idle) {
        Listen listen;
        listen.port = 0;
        listen.most_idle = idle;
        listen.between_pieces = 5ms;
        return listen;
    }

    void take(const Question& question, const Respond& respond) {
        ++asked_;
        if (question.path == "/never")
            held_.push_back(respond);
        else if (question.path == "/three" || question.path == "/quiet" || question.path == "/on")
            go_on(question.path, respond);
        else
            respond({200, std::string(question.path == "/much" ? std::size_t{64} << 20 : 2, 'x')});
    }

    void go_on(const std::string& path, const Respond& respond) {
        Answer answer;
        answer.type = "text/event-stream";
        answer.pieces = [this, path, given = 0]() mutable -> std::optional<std::string> {
            if (path == "/quiet") return "";
            if (path == "/three" && given == 3) return std::nullopt;
            ++pieces_;
            return path == "/three" ? fmt::format("piece {}\n", ++given) : std::string(std::size_t{8} << 20, 'x');
        };
        respond(std::move(answer));
    }

    std::atomic<std::size_t> asked_ = 0, pieces_ = 0;
    HttpServer http_;
    std::vector<Respond> held_;  // with their connections, which the server outlives
    std::jthread thread_;
};

// A client of its own making.
class Client {
public:
    explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        // Small, whatever this machine gives a socket: what nobody takes soon stays with the server.
        const int room = 1 << 16;
        REQUIRE(::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0);
        struct sockaddr_in there {};
        there.sin_family = AF_INET;
        there.sin_port = htons(port);
        there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(socket_, reinterpret_cast<struct sockaddr*>(&there), sizeof there) == 0);
        const struct timeval most { 60, 0 };
        REQUIRE(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() { ::close(socket_); }

    bool send(std::string_view text) const {
        return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
    }
    void says_no_more() const { ::shutdown(socket_, SHUT_WR); }

    // What comes until the other side has closed, or until `enough` is in it.
    std::string receive(std::string_view enough = "nothing that is ever sent") const {
        std::string got, block(4096, '\0');
        while (got.find(enough) == std::string::npos) {
            const ssize_t read = ::recv(socket_, block.data(), block.size(), 0);
            if (read <= 0) return read == 0 ? got : got + "(no end)";
            got.append(block, 0, static_cast<std::size_t>(read));
        }
        return got;
    }

private:
    int socket_;
};

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

}  // namespace

TEST_CASE("who says nothing, or says it too slowly, is cut off") {
    tried([](Duration idle, const Must& must) {
        const Stopwatch watch;  // of connections that begin later
        const Server server(idle);
        const Client silent(server.port()), half(server.port()), slow(server.port()), without_body(server.port());
        must(half.send("GET /x HTTP/1.1\r\nHost"), "a half header is sent");
        must(without_body.send("PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nten bytes "),
             "a part of a body is sent");
        bool open = true;
        for (int i = 0; open && watch.elapsed() < at_last; ++i) {  // a byte now and then, of a header without end
            open = slow.send(i == 0 ? "GET /x HTTP/1.1\r\nX: " : "x");
            std::this_thread::sleep_for(20ms);
        }
        must(!open, "who is slow is cut off");
        for (const Client* one : {&silent, &half, &without_body}) must(one->receive().empty(), "there is no answer");
        must(watch.elapsed() >= idle, "not before its time");
        must(server.asked() == 0, "nothing is asked");
        must(server.has(0), "all are cut off");
    });
}

TEST_CASE("who has been answered may be silent for as long, and no longer") {
    tried([](Duration idle, const Must& must) {
        const Server server(idle);
        const Client client(server.port());
        for (int i = 0; i < 3; ++i) {
            std::this_thread::sleep_for(idle / 2);
            must(client.send(get("/x")), "there is a connection");
            must(client.receive("xx").starts_with("HTTP/1.1 200"), "there is an answer");
        }
        const Stopwatch watch;
        must(client.receive().empty(), "nothing more is said");
        must(watch.elapsed() >= idle / 2, "not before its time");
        must(server.has(0), "it is cut off");
    });
}

TEST_CASE("who does not take its answer is cut off") {
    tried([](Duration idle, const Must& must) {
        const Server server(idle);
        const Client client(server.port());
        must(client.send(get("/much")), "it asks");
        for (const Stopwatch watch; server.asked() == 0 && watch.elapsed() < at_last;) std::this_thread::sleep_for(1ms);
        must(server.asked() == 1, "it has asked");
        must(server.has(0), "it is cut off");
    });
}

TEST_CASE("who waits for an answer is not cut off, and holds up nobody") {
    tried([](Duration idle, const Must& must) {
        const Server server(idle);
        const Client waits(server.port());
        must(waits.send(get("/never")), "it asks");
        std::this_thread::sleep_for(3 * idle);
        must(server.has(1), "it is there still");
        const Client other(server.port());
        must(other.send(get("/x")), "another asks");
        must(other.receive("xx").starts_with("HTTP/1.1 200"), "the other is answered");
    });
}

TEST_CASE("who has closed its side of a connection is answered on the other") {
    const Server server;
    const Client half_open(server.port());
    REQUIRE(half_open.send(get("/x")));
    half_open.says_no_more();
    const std::string answer = half_open.receive();
    CHECK(answer.starts_with("HTTP/1.1 200"));
    CHECK(answer.ends_with("xx"));
    CHECK(server.has(0));
}

TEST_CASE("an answer that goes on comes piece by piece, and ends with its connection") {
    const Server server;
    const Client client(server.port()), head(server.port());
    REQUIRE(client.send(get("/three")));
    const std::string answer = client.receive();
    CHECK(answer.starts_with("HTTP/1.1 200"));
    CHECK(answer.find("Content-Length") == std::string::npos);
    CHECK(answer.ends_with("\r\n\r\npiece 1\npiece 2\npiece 3\n"));
    REQUIRE(head.send("HEAD /three HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK(head.receive().ends_with("\r\n\r\n"));
    CHECK(server.pieces() == 3);
    CHECK(server.has(0));
}

TEST_CASE("who does not take an answer that goes on is cut off, and holds a piece and no more") {
    tried([](Duration idle, const Must& must) {
        const Server server(idle);
        const Client silent(server.port());
        must(silent.send(get("/on")), "it asks");
        const Client other(server.port());
        must(other.send(get("/x")), "another asks");
        must(other.receive("xx").starts_with("HTTP/1.1 200"), "the other is answered");
        other.says_no_more();
        must(server.has(0), "it is cut off");
        must(server.pieces() >= 1, "after it had an answer");
        must(server.pieces() <= 3, "the sockets hold one or two; made every 5 ms there were 60");
    });
}

TEST_CASE("an answer that goes on may be silent for long, and its reader's end is seen meanwhile") {
    tried([](Duration idle, const Must& must) {
        const Server server(idle);
        {
            const Client reader(server.port());
            must(reader.send(get("/quiet")), "it asks");
            must(reader.receive("\r\n\r\n").starts_with("HTTP/1.1 200"), "it is answered");
            std::this_thread::sleep_for(3 * idle);
            must(server.has(1), "it is there still");
            must(reader.send("what nobody wants to know"), "it says something");
            std::this_thread::sleep_for(20ms);
            must(server.has(1), "and is there still");
        }
        must(server.has(0), "its end is seen");
        const Client noisy(server.port());
        must(noisy.send(get("/quiet")), "another asks");
        while (noisy.send(std::string(4096, 'x'))) std::this_thread::sleep_for(1ms);
        must(server.has(0), "who says too much is cut off");
    });
}
