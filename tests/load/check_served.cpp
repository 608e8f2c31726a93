#include "tests/load/check_served.hpp"

#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "tests/load/served_job.hpp"

namespace pipeweaver::load {

namespace {

std::string wrong_with(const std::string& problem, const std::string& solution, const nlohmann::json& found) {
    try {
        const auto file = schedule::parse_problem("problem", problem);
        const auto schedule = schedule::parse_schedule("solution", solution, file);
        const Duration makespan{found.at("makespan_ns").get<std::int64_t>()};
        const auto claimed = nlohmann::json::parse(solution);
        if (claimed.at("makespan_ns") != found.at("makespan_ns")) return "solution and answer differ in the makespan";
        if (found.at("lower_bound_ns").get<std::int64_t>() > makespan.count()) return "it is shorter than its bound";
        return bench::refuted(file.problem, schedule, makespan);
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace

CheckedPlan check_served(service::Client& client, const std::string& path) {
    const auto answer = nlohmann::json::parse(asked(client, "GET", path));
    const auto& found = answer.at("found");
    const std::string problem = asked(client, "GET", path + "/replicas/0/problem");
    const std::string solution = asked(client, "GET", path + "/replicas/0/solution");
    return {wrong_with(problem, solution, found), found.at("gap").get<double>(), found.at("by") == "search"};
}

}  // namespace pipeweaver::load
