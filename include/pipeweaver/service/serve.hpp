// The planning service: a schedule for every batch of a job that runs, over HTTP (docs/service.md).
//
// Threads      so many as asked for plan; one more, the caller's, talks and mostly waits.
// Ends         at SIGTERM or SIGINT: what was taken is planned, nothing new is taken; a second signal ends it at once.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::service {

struct ListenOptions {
    std::string http = "127.0.0.1:8080";       ///< address and port; 0: one that is free
    std::string token_file, certificate, key;  ///< an address that is not of this machine needs all three
};

struct ServeOptions : ListenOptions {
    std::string state;                  ///< folder; empty: nothing outlives the server
    std::size_t threads = 1;            ///< that plan
    std::vector<std::size_t> replicas;  ///< that this server plans of every session; none: all
    std::size_t sessions = 64, queue = 32;
    std::size_t memory = 0;         ///< bytes beyond which a step is taken only when none is unfinished; 0: any
    std::size_t keep_plans = 1000;  ///< of a session
    std::int64_t keep_bytes = std::int64_t{4} << 30;
    Duration session_budget = std::chrono::seconds(60);  ///< that a session's first plan may ask for
    bool quiet = false;                                  ///< the log has warnings alone
};

/// Serves until it is told to end. The log goes to stderr, a JSON object a line. Throws Error{input} for options that
/// contradict each other (an address for others without token and TLS), Error{io} for what cannot be listened to,
/// read or written.
void serve(const ServeOptions& options);

}  // namespace pipeweaver::service
