// What a server has acknowledged, by those who were told so, and whether it still has it.
//
// Threads      any number.
#pragma once

#include "pipeweaver/service/client.hpp"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace pipeweaver::load {

class Acknowledged {
public:
    /// A session of that name is open.
    void opened(const std::string& name);

    /// It may be open or not from now on; and: it is closed for good.
    void closing(const std::string& name);
    void closed(const std::string& name);

    /// A part of a plan, by its path, was given so.
    void part(const std::string& path, const std::string& content);

    /// What of all that the server lacks, or has otherwise, a line each; what was looked at is counted. Throws
    /// Error{io} where it does not answer. Pre: the server is ready.
    [[nodiscard]] std::vector<std::string> lost(service::Client& client);

    struct Count {
        std::size_t sessions = 0, parts = 0;  ///< that were looked at, each as often as that
    };
    const Count& looked_at() const { return looked_at_; }

private:
    std::mutex mutex_;
    std::set<std::string> open_, closed_;  // sessions
    std::map<std::string, std::string> sha256_by_path_;
    Count looked_at_;
};

}  // namespace pipeweaver::load
