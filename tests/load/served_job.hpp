// What `bench service` has planned: jobs of one model on one cluster, batches drawn for them, and the questions that a
// job asks its server.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/service/client.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::load {

struct ServedJob {
    std::string model = "dip-vlm-m", cluster = "h100-sxm:32", dataset = "vlm-mix";
    std::int64_t tp = 8, pp = 4, microbatches = 16;

    /// What a session is asked for, with `more` options of `pipeweaver plan`.
    [[nodiscard]] std::string session(const nlohmann::ordered_json& more) const;

    /// Draws batches with the seeds `first`, `first` + 1, ...; each as a JSON array of samples.
    [[nodiscard]] std::vector<std::string> batches(std::uint64_t first, std::size_t count) const;
};

/// What a step is submitted as.
[[nodiscard]] std::string submission(const std::string& samples, Duration deadline);

[[nodiscard]] std::string path_of(const std::string& session);
[[nodiscard]] std::string path_of(const std::string& session, std::int64_t step);

/// The body of an answer of status 200; 202 or 204 will do where nothing is awaited. Throws Error{io} for another.
std::string asked(service::Client& client, const std::string& method, const std::string& path,
                  const std::string& body = {});

/// Opens a session. Throws as asked().
void open_session_of(service::Client& client, const std::string& name, const std::string& session);

/// Waits until the server plans for all stored sessions. Throws Error{io} where it does not in a minute.
void wait_until_ready(service::Client& client);

}  // namespace pipeweaver::load
