#include "service/log.hpp"

#include <nlohmann/json.hpp>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace pipeweaver::service {

namespace {

// The members of an object, without its braces.
std::string members(const std::string& event, const std::string& fields) {
    const std::string inner = fields.size() > 2 ? "," + fields.substr(1, fields.size() - 2) : "";
    return fmt::format("\"event\":{}{}", nlohmann::json(event).dump(), inner);
}

}  // namespace

std::string log_fields(const nlohmann::json& fields) {
    return fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Log::Log(bool quiet)
    : logger_(std::make_shared<spdlog::logger>("service", std::make_shared<spdlog::sinks::stderr_sink_mt>())),
      quiet_(quiet) {
    logger_->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})");
    logger_->flush_on(spdlog::level::info);
}

void Log::always(const std::string& event, const Fields& fields) {
    logger_->info("{}", members(event, log_fields(fields)));
}

void Log::warning(const std::string& event, const Fields& fields) {
    logger_->warn("{}", members(event, log_fields(fields)));
}

void Log::info(const std::string& event, const std::string& fields) {
    if (!quiet_) logger_->info("{}", members(event, fields));
}

void Log::warn(const std::string& event, const std::string& fields) { logger_->warn("{}", members(event, fields)); }

void Log::request(const Request& request) {
    if (quiet_) return;
    const nlohmann::json fields{{"id", request.id},
                                {"method", request.method},
                                {"path", request.path},
                                {"status", request.status},
                                {"seconds", request.seconds}};
    logger_->info("{}", members("request", log_fields(fields)));
}

}  // namespace pipeweaver::service
