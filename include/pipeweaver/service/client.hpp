// Asks a server of `pipeweaver serve`.
#pragma once

#include "pipeweaver/base/units.hpp"

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

/// Sends one request, its body JSON, and returns the reply. Throws Error{input} for what is no such URL, Error{io}
/// where there is no answer in `within`.
[[nodiscard]] Reply ask(const ServerAddress& server, const std::string& method, const std::string& path,
                        const std::string& body, Duration within);

}  // namespace pipeweaver::service
