#include "apps/run_json.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace pipeweaver::apps {

namespace {

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

nlohmann::ordered_json run_json(const planner::SearchLimits& limits, double seconds) {
    nlohmann::ordered_json json{
        {"format", "pipeweaver-run/1"}, {"seconds", seconds},    {"threads", limits.thread_count()},
        {"budget_ns", nullptr},         {"max_rounds", nullptr}, {"host", host_name()}};
    if (const auto limit = limits.time()) json["budget_ns"] = limit->count();
    if (limits.max_rounds) json["max_rounds"] = *limits.max_rounds;
    return json;
}

}  // namespace pipeweaver::apps
