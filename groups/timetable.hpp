// When each pass of a step on groups runs.
#pragma once

#include "pipeweaver/groups/allocation.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::groups {

class Timetable {
public:
    /// Pre: as replay(). `split` must outlive it. With `longest` it ends as soon as the step is known to be longer.
    Timetable(const Split& split, std::span<const std::size_t> taken, std::optional<Duration> longest = {});

    /// Whether the step is longer than that, or does not run (Split::as_far); then the rest is not known.
    [[nodiscard]] bool is_longer() const { return is_longer_; }

    // Pre: not is_longer().
    [[nodiscard]] Duration step() const;
    [[nodiscard]] Replayed replayed() const;

private:
    struct Link {
        std::size_t stage = 0;
        Duration lag{};
    };
    struct Row {
        const Stage* times = nullptr;
        std::size_t group = 0;
        Duration tail{};
        std::vector<Link> before, after;
        std::size_t ahead = 1;  // forwards before the first backward
        std::size_t forwards = 0, backwards = 0;
        std::vector<Duration> forward_end, backward_end;
        Duration now{}, begins{}, rest{};  // rest: of its passes, what is to come
    };

    void add_group(const Split& split, std::size_t group, const Choice& choice);
    void link(std::size_t from, std::size_t to, Duration lag);
    void limit(const Split& split);
    void run(std::size_t rounds);
    bool advance(Row& row, std::size_t rounds);
    bool go_forward(Row& row);
    bool go_back(Row& row);
    void pass(Row& row, Duration start, Duration time);

    std::optional<Duration> longest_;
    bool is_longer_ = false;
    std::vector<Row> rows_;
    std::vector<std::size_t> first_, last_;  // per group: its rows
};

}  // namespace pipeweaver::groups
