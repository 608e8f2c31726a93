// A batch that a server plans: a session opened, the batch submitted, the plan collected into a folder.
#pragma once

#include "pipeweaver/planner/job.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

struct ServerOptions {
    std::string url, token_file, authority;
};

struct ServerPlan {
    nlohmann::ordered_json answer;             ///< the server's, of the step
    std::vector<std::filesystem::path> files;  ///< that were written
};

/// Opens a session on the batch with the `given` options of `plan`, lets it plan the batch for `within` (none: three
/// seconds), and writes what the server has of the plan to `out`, with its record and its partition. The session is of
/// this call alone, and closed again. Throws Error of the kind that the server's answer says.
[[nodiscard]] ServerPlan plan_on_server(const ServerOptions& server, const nlohmann::ordered_json& given,
                                        const planner::Batch& batch, std::optional<Duration> within,
                                        const std::filesystem::path& out);

/// How the plan was found, for a person.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& answer);

}  // namespace pipeweaver::apps
