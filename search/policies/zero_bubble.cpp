#include "search/policies/zero_bubble.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::search {

namespace {

using schedule::TaskKind;

// A whole backward that nothing waits for comes as late as a weight gradient may: as a first stage's, where there is no
// input gradient to send.
bool is_weight(const Flat& flat, std::uint32_t task) {
    const TaskKind kind = flat.problem().tasks[task].kind;
    return kind == TaskKind::weight_gradient || (kind == TaskKind::backward && flat.after[task].empty());
}

// A stage's tasks of a microbatch by kind; I is all that comes late but W.
class SplitCells {
public:
    SplitCells(const Flat& flat, const Cells& cells) : flat_(flat), cells_(cells) {}

    void forward(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
        const auto tasks = cells_.forwards(stage, microbatch);
        to.insert(to.end(), tasks.begin(), tasks.end());
    }
    void input(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
        late(to, stage, microbatch, false);
    }
    void weight(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
        late(to, stage, microbatch, true);
    }

private:
    void late(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch, bool weight) const {
        for (const std::uint32_t task : cells_.backwards(stage, microbatch))
            if (is_weight(flat_, task) == weight) to.push_back(task);
    }

    const Flat& flat_;
    const Cells& cells_;
};

std::string not_split(const Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    bool split = false;
    std::size_t whole = tasks.size();
    for (std::size_t i = tasks.size(); i-- > 0;) {
        if (tasks[i].kind == TaskKind::backward && !is_weight(flat, static_cast<std::uint32_t>(i))) whole = i;
        split = split || tasks[i].kind == TaskKind::weight_gradient;
    }
    if (!split) return "no backward is split into I and W";
    if (whole == tasks.size()) return {};
    return fmt::format("the backward of task {} '{}' is not split into I and W", whole, tasks[whole].label);
}

}  // namespace

Order zb_h1_order(const Flat& flat) {
    if (auto why = not_split(flat); !why.empty()) return {{}, why};
    const Cells cells(flat);
    const SplitCells split(flat, cells);
    return order_along_the_chain(flat, cells, [&](const ChainStage& at, std::vector<std::uint32_t>& mine) {
        const auto& present = at.microbatches;
        const std::size_t stage = at.stage, count = present.size(), warm_up = at.warm_up;
        const std::size_t postponed = std::min(at.position, count);
        for (std::size_t k = 0; k < warm_up; ++k) split.forward(mine, stage, present[k]);
        for (std::size_t k = 0; k < count; ++k) {
            if (k + warm_up < count) split.forward(mine, stage, present[k + warm_up]);
            split.input(mine, stage, present[k]);
            if (k >= postponed) split.weight(mine, stage, present[k - postponed]);
        }
        for (std::size_t k = count - postponed; k < count; ++k) split.weight(mine, stage, present[k]);
    });
}

namespace {

std::string not_a_v(const Flat& flat, const Cells& cells) {
    const std::size_t ranks = flat.ranks();
    if (cells.stages() != 2 * ranks)
        return fmt::format("{} stages are not two for each of {} ranks", cells.stages(), ranks);
    for (std::size_t s = 0; s < cells.stages(); ++s) {
        const std::size_t expected = s < ranks ? s : 2 * ranks - 1 - s;
        if (cells.ranks(s).size() > 1 || cells.ranks(s).front() != expected)
            return fmt::format("stage {} is on rank {}, a V has it on rank {}", s, cells.ranks(s).back(), expected);
    }
    return {};
}

// One rank's table: two stages, each with a count of what it has run of each kind. Rows beyond the microbatches, which
// the table has where they are few, are left out.
class Table {
public:
    Table(const SplitCells& split, const std::size_t (&stages)[2], std::size_t microbatches,
          std::vector<std::uint32_t>& tasks)
        : split_(split), stages_{stages[0], stages[1]}, microbatches_(microbatches), tasks_(tasks) {}

    void forward(int half) { next(half, forwards, &SplitCells::forward); }
    void input(int half) { next(half, inputs, &SplitCells::input); }
    void weight(int half) { next(half, weights, &SplitCells::weight); }

    std::size_t forwards[2] = {}, inputs[2] = {}, weights[2] = {};

private:
    using Append = void (SplitCells::*)(std::vector<std::uint32_t>&, std::size_t, std::size_t) const;
    void next(int half, std::size_t (&count)[2], Append append) {
        if (count[half] < microbatches_) (split_.*append)(tasks_, stages_[half], count[half]);
        ++count[half];
    }

    const SplitCells& split_;
    std::size_t stages_[2];
    std::size_t microbatches_;
    std::vector<std::uint32_t>& tasks_;
};

void fill_v(Table& table, std::size_t rank, std::size_t ranks, std::size_t microbatches) {
    const std::size_t rows = std::max(2 * ranks - 1, microbatches);
    for (std::size_t k = 0; k < 2 * (ranks - rank) - 1; ++k) table.forward(0);
    for (std::size_t k = 0; k < rank; ++k) {
        table.forward(1);
        table.forward(0);
    }
    for (std::size_t k = 0; k < ranks - rank; ++k) {
        table.forward(1);
        table.input(1);
        table.weight(1);
    }
    while (table.forwards[1] < table.forwards[0] || table.forwards[0] < rows) {
        if (table.forwards[0] < rows) table.forward(0);
        table.input(0);
        table.weight(0);
        table.forward(1);
        table.input(1);
        table.weight(1);
    }
    for (std::size_t k = 0; k < rank; ++k) {
        table.input(0);
        table.input(1);
    }
    for (std::size_t k = 0; k < ranks - rank; ++k) {
        table.input(0);
        table.weight(0);
    }
    for (const int half : {1, 0})
        while (table.weights[half] < table.inputs[half]) table.weight(half);
}

}  // namespace

Order zb_v_order(const Flat& flat) {
    if (auto why = not_split(flat); !why.empty()) return {{}, why};
    const Cells cells(flat);
    if (!cells.why_not().empty()) return {{}, cells.why_not()};
    if (auto why = not_a_v(flat, cells); !why.empty()) return {{}, why};
    const SplitCells split(flat, cells);
    Order order;
    order.ranks.resize(flat.ranks());
    for (std::size_t rank = 0; rank < flat.ranks(); ++rank) {
        const std::size_t stages[2] = {rank, 2 * flat.ranks() - 1 - rank};
        Table table(split, stages, cells.microbatches(), order.ranks[rank]);
        fill_v(table, rank, flat.ranks(), cells.microbatches());
    }
    put_around(flat, order);
    return order;
}

}  // namespace pipeweaver::search
