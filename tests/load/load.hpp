// The load of several jobs on a server: each session submits a batch a second and collects a rank's list.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/service/client.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::load {

struct LoadShape {
    service::ServerAddress address;
    std::size_t sessions = 0, steps = 0;  ///< of each session, one after the other
    Duration deadline{};
    Duration between = std::chrono::seconds(1);  ///< submissions of a session
};

/// A step of the load.
struct Collected {
    std::size_t session = 0;
    std::int64_t step = 0;
    int status = 0;   ///< of the collect; 0: none came, or the step was not taken
    std::string why;  ///< there is no plan
    Duration past{};  ///< the deadline, when the list was there; negative: before it

    bool planned() const { return status == 200; }
};

/// What the session of that number is called.
[[nodiscard]] std::string session_of(std::size_t number);

/// Puts the server under load: the k-th step of all, session after session, brings `batches[k]`. Calls `each_second`
/// meanwhile, on the calling thread. Returns all steps in that order. Pre: the sessions are open.
[[nodiscard]] std::vector<Collected> put_under_load(const LoadShape& shape, const std::vector<std::string>& batches,
                                                    const std::function<void()>& each_second = {});

/// Samples as in a batch file, of a JSON array of them.
[[nodiscard]] std::string lines_of(const std::string& samples);

}  // namespace pipeweaver::load
