// Where a server listens, and who may ask it.
#pragma once

#include "pipeweaver/service/serve.hpp"
#include "service/http/http.hpp"

#include <cstdint>
#include <string>

namespace pipeweaver::service {

/// Throws Error{input} for an address that is none, or one for others than this machine without token and TLS.
[[nodiscard]] Listen listen_of(const ListenOptions& options);

/// The token in that file; empty: there is no file. Throws Error{input} for one that others may read or that is short,
/// Error{io}.
[[nodiscard]] std::string token_of(const std::string& path);

/// "http://127.0.0.1:8080"
[[nodiscard]] std::string url_of(const ListenOptions& options, std::uint16_t port);

}  // namespace pipeweaver::service
