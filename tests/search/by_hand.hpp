// Small schedule problems whose schedules can be worked out by hand.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <string>
#include <vector>

namespace pipeweaver::search_tests {

/// A task that takes `ns` and holds nothing; its stage is its rank.
inline schedule::Task task_of(std::uint32_t rank, schedule::TaskKind kind, std::int64_t ns,
                              std::int64_t microbatch = 0) {
    return {RankId{rank},
            kind,
            Duration{ns},
            {},
            {},
            schedule::letter(kind) + std::to_string(microbatch),
            std::int64_t{rank},
            microbatch,
            std::optional<std::int64_t>{},
            "m"};
}

inline schedule::Edge edge_of(std::uint32_t from, std::uint32_t to, std::int64_t lag = 0) {
    return {TaskId{from}, TaskId{to}, Duration{lag}};
}

/// Every microbatch goes forwards over all ranks and back. Its tasks are numbered along this way, the microbatches one
/// after the other: with 2 ranks 0 F, 1 F, 2 B, 3 B, then 4 ... 7. A byte is held from a forward to its backward.
inline schedule::Problem chains(std::uint32_t ranks, std::uint32_t microbatches, std::int64_t forward_ns = 1,
                                std::int64_t backward_ns = 1) {
    schedule::Problem problem;
    problem.name = "chains";
    problem.ranks.resize(ranks);
    for (std::uint32_t m = 0; m < microbatches; ++m)
        for (std::uint32_t k = 0; k < 2 * ranks; ++k) {
            const bool forward = k < ranks;
            problem.tasks.push_back(task_of(forward ? k : 2 * ranks - 1 - k,
                                            forward ? schedule::TaskKind::forward : schedule::TaskKind::backward,
                                            forward ? forward_ns : backward_ns, m));
            (forward ? problem.tasks.back().acquire : problem.tasks.back().release) = Bytes{1};
            const auto task = static_cast<std::uint32_t>(problem.tasks.size() - 1);
            if (k > 0) problem.edges.push_back(edge_of(task - 1, task));
        }
    validate(problem);
    return problem;
}

/// A schedule as a picture: a row per rank, a column per ns, each task's label where it runs; labels have two letters.
inline std::vector<std::string> picture(const schedule::Problem& problem, const schedule::Schedule& schedule) {
    const auto replay = schedule::replay(problem, schedule);
    std::vector<std::string> rows(problem.ranks.size());
    for (std::size_t i = 0; i < replay.start.size(); ++i) {
        std::string& row = rows[index(problem.tasks[i].rank)];
        for (std::int64_t t = 0; t < problem.tasks[i].duration.count(); ++t) {
            const auto column = static_cast<std::size_t>(3 * (replay.start[i].count() + t));
            if (row.size() < column + 2) row.resize(column + 2, ' ');
            row.replace(column, 2, problem.tasks[i].label);
        }
    }
    for (std::string& row : rows)
        for (std::size_t column = 0; column < row.size(); column += 3)
            if (row[column] == ' ') row.replace(column, 2, "..");
    return rows;
}

}  // namespace pipeweaver::search_tests
