#include "search/policies/zero_bubble.hpp"

#include "search/policies/split_cells.hpp"

#include <algorithm>

namespace pipeweaver::search {

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
    return order_of_a_v(flat, [&](const Cells& cells, const SplitCells& split, Order& order) {
        for (std::size_t rank = 0; rank < flat.ranks(); ++rank) {
            const std::size_t stages[2] = {rank, 2 * flat.ranks() - 1 - rank};
            Table table(split, stages, cells.microbatches(), order.ranks[rank]);
            fill_v(table, rank, flat.ranks(), cells.microbatches());
        }
    });
}

}  // namespace pipeweaver::search
