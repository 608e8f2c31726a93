// Asks a server of `pipeweaver serve`.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <memory>
#include <string>

namespace pipeweaver::service {

struct ServerAddress {
    std::string url;        ///< http://127.0.0.1:8080, https://host:port
    std::string token;      ///< empty: none
    std::string authority;  ///< certificate (PEM) that the server's is signed with; empty: the system's
};

/// The token of a file, without the end of its line. Throws Error{io}.
[[nodiscard]] std::string read_token(const std::string& path);

struct Reply {
    int status = 0;
    std::string body;
};

/// Asks a server on a connection that stays open from one request to the next. One that the server has closed meanwhile
/// is opened again: every request of the service may be sent twice. For one thread at a time.
class Client {
public:
    /// Opens nothing yet. Throws Error{input} for what is no such URL.
    explicit Client(ServerAddress server);
    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;
    ~Client();

    /// Bears this token from the next request on.
    void use_token(std::string token);

    /// Sends one request, its body JSON, and returns the reply. Throws Error{io} where there is no answer in `within`;
    /// the next request then opens a connection anew.
    [[nodiscard]] Reply ask(const std::string& method, const std::string& path, const std::string& body,
                            Duration within);

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;  // Boost's headers take long to compile: one source knows them
};

/// Sends one request on a connection of its own. Throws as a Client does.
[[nodiscard]] Reply ask(const ServerAddress& server, const std::string& method, const std::string& path,
                        const std::string& body, Duration within);

}  // namespace pipeweaver::service
