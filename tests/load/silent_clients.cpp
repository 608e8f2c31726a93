#include "tests/load/silent_clients.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pipeweaver::load {

namespace {

constexpr std::string_view half_a_question = "GET /v1/sessions HTTP/1.1\r\nHo";
constexpr std::string_view slow_question = "GET /v1/sessions HTTP/1.1\r\nX-Slow: ";  // a header without an end

enum class Silence { idle, half, slow };

Silence silence_of(std::size_t number) {
    const std::size_t place = number % 10;
    return place < 5 ? Silence::idle : place < 9 ? Silence::half : Silence::slow;
}

int connected_to(std::uint16_t port) {
    const int opened = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as the interface has it
    if (opened >= 0 && ::connect(opened, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) == 0) return opened;
    const int why = errno;
    if (opened >= 0) ::close(opened);
    fail(ErrorKind::io, "127.0.0.1:{}: cannot be connected to: {}", port, std::strerror(why));
}

void say(int socket, std::string_view text) {
    static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool is_open(int socket) {
    char letter = 0;
    const auto read = ::recv(socket, &letter, 1, MSG_PEEK | MSG_DONTWAIT);
    return read > 0 || (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

}  // namespace

void allow_files(std::size_t count) {
    struct rlimit files {};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < count) {
        if (files.rlim_max < count)
            fail(ErrorKind::limit, "{} open files are needed, the system allows {} (ulimit -Hn)", count,
                 files.rlim_max);
        files.rlim_cur = count;
        static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
    }
}

SilentClients::SilentClients(const std::string& url, std::size_t count) {
    const auto port = static_cast<std::uint16_t>(parse_integer("port", url.substr(url.rfind(':') + 1), 1, 65'535));
    sockets_.reserve(count);
    for (std::size_t k = 0; k < count; ++k) {
        sockets_.push_back(connected_to(port));
        if (silence_of(k) == Silence::half) say(sockets_.back(), half_a_question);
        if (silence_of(k) == Silence::slow) say(sockets_.back(), slow_question);
    }
}

SilentClients::~SilentClients() {
    for (const int socket : sockets_) ::close(socket);
}

void SilentClients::go_on() {
    for (std::size_t k = 0; k < sockets_.size(); ++k)
        if (silence_of(k) == Silence::slow) say(sockets_[k], "x");
}

std::size_t SilentClients::open() const {
    std::size_t count = 0;
    for (const int socket : sockets_)
        if (is_open(socket)) ++count;
    return count;
}

}  // namespace pipeweaver::load
