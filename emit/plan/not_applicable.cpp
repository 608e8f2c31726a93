#include "emit/plan/not_applicable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit {

using namespace planner;

std::vector<std::string> not_applicable(const std::vector<NotApplicable>& pairs) {
    struct Alike {
        const NotApplicable* first;
        std::string partitions;
    };
    std::vector<Alike> groups;
    for (const NotApplicable& pair : pairs) {
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const Alike& one) {
            return one.first->policy == pair.policy && one.first->chunks_per_rank == pair.chunks_per_rank &&
                   one.first->why == pair.why;
        });
        if (group == groups.end())
            groups.push_back({&pair, pair.partition});
        else
            group->partitions += ", " + pair.partition;
    }
    std::vector<std::string> lines;
    lines.reserve(groups.size());
    for (const Alike& one : groups)
        lines.push_back(fmt::format("{} on {} with {} chunk{}: {}", one.first->policy, one.partitions,
                                    one.first->chunks_per_rank, one.first->chunks_per_rank == 1 ? "" : "s",
                                    one.first->why));
    return lines;
}

std::vector<std::string> not_applicable(const std::vector<StagePolicy>& policies) {
    std::vector<std::string> lines;
    for (const StagePolicy& one : policies)
        if (!one.result.schedule) lines.push_back(fmt::format("{}: {}", one.policy, one.result.why_not));
    return lines;
}

std::string not_applicable_text(const std::vector<std::string>& lines) {
    return lines.empty() ? "" : fmt::format("not applicable:\n  {}\n", fmt::join(lines, "\n  "));
}

}  // namespace pipeweaver::emit
