#include "pipeweaver/schedule/solved.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/whole_plan.hpp"

namespace pipeweaver::schedule {

namespace {

template <class T, class Value>
void check_list(const Json& root, std::string_view key, const std::vector<T>& true_values, Value value_of) {
    const auto member = root.find(key);
    if (!member || member->is_null()) return;
    if (member->size() != true_values.size())
        member->fail(fmt::format("has {} entries, the replay has {}", member->size(), true_values.size()));
    for (std::size_t i = 0; i < true_values.size(); ++i)
        if ((*member)[i].integer() != value_of(true_values[i]))
            (*member)[i].fail(
                fmt::format("is {}, the replay gives {}", (*member)[i].integer(), value_of(true_values[i])));
}

}  // namespace

std::filesystem::path problem_in(const std::filesystem::path& folder) {
    std::error_code ignored;
    std::filesystem::path plain = folder / "problem.json";
    return std::filesystem::exists(plain, ignored) ? plain : folder / "problem.json.gz";
}

Solved read_solved(const std::filesystem::path& solution) {
    require_whole(solution.parent_path());
    Solved solved{read_problem(problem_in(solution.parent_path())), {}};
    solved.schedule = read_schedule(solution, solved.file);
    return solved;
}

void check_claims(const std::filesystem::path& path, const Schedule& schedule, const Replay& replay) {
    const auto document = JsonDocument::read_large(path);
    const Json root = document.root();
    check_list(root, "start_ns", replay.start, [](Duration time) { return time.count(); });
    check_list(root, "peak_bytes", replay.peak, [](Bytes size) { return size.count; });
    const auto makespan = root.find("makespan_ns");
    if (makespan && makespan->integer() != replay.makespan.count())
        makespan->fail(fmt::format("is {}, the replay gives {}", makespan->integer(), replay.makespan.count()));
    const auto bound = root.find("lower_bound_ns");
    if (bound && !bound->is_null() && bound->integer() > replay.makespan.count())
        bound->fail(fmt::format("is {}, above the makespan {}", bound->integer(), replay.makespan.count()));
    const std::string true_signature = signature(schedule, replay.makespan);
    const auto claimed = root.find("signature");
    if (claimed && !claimed->is_null() && claimed->text() != true_signature)
        claimed->fail(fmt::format("is '{}', the replay gives '{}'", claimed->text(), true_signature));
}

}  // namespace pipeweaver::schedule
