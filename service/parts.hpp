// A plan as the texts that callers collect.
#pragma once

#include <string>
#include <vector>

namespace pipeweaver::planner {
struct Job;
struct Batch;
struct Plan;
}  // namespace pipeweaver::planner

namespace pipeweaver::service {

/// One text, under the name that its address ends with: "plan", "assignment", "deferred", "replicas/0/problem",
/// "replicas/0/solution", "replicas/0/actions", "replicas/0/ranks/3".
struct Part {
    std::string name;
    std::string content;
};

/// Makes all parts of a plan: the bytes that `pipeweaver plan` writes for it.
[[nodiscard]] std::vector<Part> parts_of(const planner::Job& job, const planner::Batch& batch,
                                         const planner::Plan& plan);

}  // namespace pipeweaver::service
