#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

// A letter for each module: its first letter that no other module has, else the next free one of the alphabet.
std::map<std::string, char> letters_of(const Problem& problem) {
    std::map<std::string, char> letters;
    std::string taken = "w";  // 'W' would read as a weight gradient
    for (const Task& task : problem.tasks) {
        if (letters.contains(task.module)) continue;
        std::string wishes;
        for (const char c : task.module)
            if (std::isalpha(static_cast<unsigned char>(c)))
                wishes += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        wishes += "fabcdeghijklmnopqrstuvxyz";
        const auto free =
            std::find_if(wishes.begin(), wishes.end(), [&](char c) { return taken.find(c) == std::string::npos; });
        const char chosen = free == wishes.end() ? '?' : *free;
        taken += chosen;
        letters[task.module] = chosen;
    }
    return letters;
}

char shown(const Task& task, char module_letter) {
    switch (task.kind) {
        case TaskKind::backward:
        case TaskKind::input_gradient:
            return static_cast<char>(std::toupper(static_cast<unsigned char>(module_letter)));
        case TaskKind::weight_gradient:
            return '+';
        default:
            return module_letter;
    }
}

// What a rank does in one column.
class PictureColumn {
public:
    void add(char letter, std::int64_t time) {
        const auto place =
            std::find_if(time_.begin(), time_.end(), [&](const auto& one) { return one.first == letter; });
        if (place == time_.end())
            time_.emplace_back(letter, time);
        else
            place->second += time;
    }

    // The letter with the most time, the earliest of equals; waiting unless the rank is busy for half of the column.
    char shown(std::int64_t width) const {
        std::int64_t busy = 0, most = 0;
        char letter = '.';
        for (const auto& [one, time] : time_) {
            busy += time;
            if (time <= most) continue;
            most = time;
            letter = one;
        }
        return 2 * busy >= width ? letter : '.';
    }

private:
    std::vector<std::pair<char, std::int64_t>> time_;
};

}  // namespace

std::string picture(const Replayer& replayer, const Schedule& schedule, const Replay& replay, std::size_t columns) {
    const Problem& problem = replayer.problem();
    const auto costs = replayer.costs(schedule.mode);
    const auto letters = letters_of(problem);
    const std::int64_t width = std::max<std::int64_t>(
        1, (replay.makespan.count() + static_cast<std::int64_t>(columns) - 1) / static_cast<std::int64_t>(columns));
    std::string text = fmt::format("makespan {}, one column = {}\n", human(replay.makespan), human(Duration{width}));
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        std::vector<PictureColumn> row(columns);
        for (const TaskId id : schedule.order[r]) {
            const Task& task = problem.tasks[index(id)];
            const char letter = shown(task, letters.at(task.module));
            const std::int64_t begin = replay.start[index(id)].count(), end = begin + costs[index(id)].duration.count();
            for (std::int64_t c = begin / width; c * width < end; ++c) {
                if (static_cast<std::size_t>(c) >= columns) break;
                row[static_cast<std::size_t>(c)].add(letter,
                                                     std::min(end, (c + 1) * width) - std::max(begin, c * width));
            }
        }
        std::string letters_shown;
        for (const PictureColumn& column : row) letters_shown += column.shown(width);
        text += fmt::format("rank {:<3}|{}|\n", r, letters_shown);
    }
    const auto legend = joined(letters, "; ", [](const auto& one) {
        return fmt::format("{} {} forward, {} backward", one.second, one.first.empty() ? "tasks" : one.first,
                           static_cast<char>(std::toupper(static_cast<unsigned char>(one.second))));
    });
    return text + legend + "; + weight gradient, . waiting\n";
}

}  // namespace pipeweaver::emit
