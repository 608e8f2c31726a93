// The service's log: a JSON object a line, to stderr.
//
// Threads      any number.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace pipeweaver::service {

/// Fields of a line, whatever bytes a message holds.
[[nodiscard]] std::string log_fields(const nlohmann::json& fields);

class Log {
public:
    /// Quiet: no requests and no plans; only what is said always, and warnings.
    explicit Log(bool quiet);

    using Fields = std::map<std::string, std::string>;
    void always(const std::string& event, const Fields& fields);
    void warning(const std::string& event, const Fields& fields);

    /// `fields` is a JSON object.
    void info(const std::string& event, const std::string& fields);
    void warn(const std::string& event, const std::string& fields);

    struct Request {
        std::string id, method, path;
        int status = 0;
        double seconds = 0;
    };
    void request(const Request& request);

private:
    std::shared_ptr<spdlog::logger> logger_;  // shared: as spdlog has it
    bool quiet_;
};

}  // namespace pipeweaver::service
