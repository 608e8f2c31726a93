// A certificate for a server on 127.0.0.1 that nobody vouches for but itself.
#pragma once

#include <filesystem>

namespace pipeweaver::load {

/// Makes a key (P-256) and a certificate of it for a day, and writes both (PEM), for the owner alone. Throws Error{io}.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key);

}  // namespace pipeweaver::load
