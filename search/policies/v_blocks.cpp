#include "search/policies/v_blocks.hpp"

#include "search/policies/split_cells.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace pipeweaver::search {

namespace {

constexpr std::int64_t period = 6;  // slots: F, I and W of two stages

// Passes in the order in which a microbatch meets them. The first stages are passed down the ranks, the second up.
enum VPass : std::size_t { forward_down, forward_up, input_down, input_up, passes };
constexpr bool goes_down(std::size_t pass) { return pass == forward_down || pass == input_down; }
constexpr bool is_forward(std::size_t pass) { return pass <= forward_up; }
constexpr std::size_t half_of(std::size_t pass) { return pass == forward_down || pass == input_up ? 0 : 1; }

// Slots of microbatch 0 by pass and rank; microbatch m comes m periods later.
struct VBlock {
    std::array<std::vector<std::int64_t>, passes> at{};

    std::size_t ranks() const { return at[forward_down].size(); }
};

// What a V turns by: slots from a rank to the next on its way down and up, and slots that it waits at its turns.
struct VPace {
    std::int64_t down = 1, up = 1;
    std::array<std::int64_t, passes> waits{};
};

// None: two passes of a rank would be in one slot.
std::optional<VBlock> block_of(const VPace& pace, std::size_t ranks) {
    VBlock block;
    std::int64_t slot = 0;
    for (std::size_t pass = 0; pass < passes; ++pass) {
        block.at[pass].resize(ranks);
        slot += pace.waits[pass];
        const std::int64_t pass_on = goes_down(pass) ? pace.down : pace.up;
        for (std::size_t k = 0; k < ranks; ++k)
            block.at[pass][goes_down(pass) ? k : ranks - 1 - k] = slot + static_cast<std::int64_t>(k) * pass_on;
        slot += static_cast<std::int64_t>(ranks - 1) * pass_on + 1;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::array<bool, period> taken{};
        for (const auto& slots : block.at)
            if (std::exchange(taken[static_cast<std::size_t>(slots[rank] % period)], true)) return std::nullopt;
    }
    return block;
}

// Halves of a microbatch that a rank holds at once, at most, if each W came in the first free slot behind its I.
std::size_t most_held(const VBlock& block) {
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < block.ranks(); ++rank) {
        std::array<bool, period> taken{};
        for (const auto& slots : block.at) taken[static_cast<std::size_t>(slots[rank] % period)] = true;
        const auto weight_after = [&](std::int64_t slot) {
            while (std::exchange(taken[static_cast<std::size_t>(++slot % period)], true)) continue;
            return slot;
        };
        const std::int64_t second = weight_after(block.at[input_down][rank]);
        const std::int64_t first = weight_after(block.at[input_up][rank]);
        for (std::int64_t slot = first; slot < first + period; ++slot) {
            const auto held = [&](std::int64_t from, std::int64_t to) {  // of a stream of microbatches without ends
                return (slot - from) / period - (slot - to + period - 1) / period + 1;
            };
            most = std::max(most, held(block.at[forward_down][rank], first) + held(block.at[forward_up][rank], second));
        }
    }
    return static_cast<std::size_t>(most);
}

// A pass, or the weight gradient behind it, of a microbatch.
struct VRun {
    std::size_t pass = 0, microbatch = 0;
    bool is_weight = false;
};

struct VTable {
    std::vector<std::vector<VRun>> ranks{};
    std::int64_t slots = 0;
};

// Runs microbatches slot by slot: each rank its passes in the block's order, as early as what they wait for and `room`
// halves allow, and weight gradients where it would wait.
class VFilling {
public:
    VFilling(const VBlock& block, std::size_t microbatches, std::size_t room)
        : room_(room), microbatches_(microbatches), ranks_(block.ranks()) {
        for (auto& slots : ran_) slots.assign(block.ranks() * microbatches, never);
        for (std::size_t rank = 0; rank < block.ranks(); ++rank) ranks_[rank].todo = in_order(block, rank);
    }

    // None: they wait for each other, as there is too little room.
    std::optional<VTable> fill() {
        VTable table;
        table.ranks.resize(ranks_.size());
        for (std::size_t left = 6 * microbatches_ * ranks_.size(); left > 0; ++table.slots) {
            const std::size_t before = left;
            for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
                if (const auto run = next(rank, table.slots)) {
                    table.ranks[rank].push_back(*run);
                    --left;
                }
            if (left == before) return std::nullopt;
        }
        return table;
    }

private:
    static constexpr std::int64_t never = -1;
    struct Rank {
        std::vector<VRun> todo{}, weights{};
        std::size_t done = 0, done_weights = 0, held = 0;
    };

    std::vector<VRun> in_order(const VBlock& block, std::size_t rank) const {
        std::vector<VRun> all;
        for (std::size_t pass = 0; pass < passes; ++pass)
            for (std::size_t m = 0; m < microbatches_; ++m) all.push_back({pass, m});
        const auto slot = [&](const VRun& run) {
            return block.at[run.pass][rank] + static_cast<std::int64_t>(run.microbatch) * period;
        };
        std::sort(all.begin(), all.end(), [&](const VRun& a, const VRun& b) { return slot(a) < slot(b); });
        return all;
    }

    std::int64_t& ran(std::size_t pass, std::size_t rank, std::size_t microbatch) {
        return ran_[pass][rank * microbatches_ + microbatch];
    }

    // The pass that it waits for has run before the slot.
    bool is_ready(const VRun& run, std::size_t rank, std::int64_t slot) {
        const bool down = goes_down(run.pass), turns = rank == (down ? 0 : ranks_.size() - 1);
        if (turns && run.pass == forward_down) return true;
        const std::int64_t before = turns  ? ran(run.pass - 1, rank, run.microbatch)
                                    : down ? ran(run.pass, rank - 1, run.microbatch)
                                           : ran(run.pass, rank + 1, run.microbatch);
        return before != never && before < slot;
    }

    std::optional<VRun> next(std::size_t rank, std::int64_t slot) {
        Rank& mine = ranks_[rank];
        if (mine.done < mine.todo.size()) {
            const VRun run = mine.todo[mine.done];
            if (is_ready(run, rank, slot) && (!is_forward(run.pass) || mine.held < room_)) {
                ++mine.done;
                ran(run.pass, rank, run.microbatch) = slot;
                if (is_forward(run.pass))
                    ++mine.held;
                else
                    mine.weights.push_back({run.pass, run.microbatch, true});
                return run;
            }
        }
        if (mine.done_weights == mine.weights.size()) return std::nullopt;
        --mine.held;
        return mine.weights[mine.done_weights++];
    }

    std::size_t room_, microbatches_;
    std::vector<Rank> ranks_;
    std::array<std::vector<std::int64_t>, passes> ran_{};
};

// Blocks of a pace that waits at its turns in any way.
std::vector<VBlock> blocks_of(std::int64_t down, std::int64_t up, std::size_t ranks) {
    constexpr std::int64_t most_waits = 3;  // more repeat themselves or hold more
    std::vector<VBlock> blocks;
    VPace pace{down, up, {}};
    auto& [at_start, bottom, top, again] = pace.waits;
    static_cast<void>(at_start);
    for (bottom = 0; bottom <= most_waits; ++bottom)
        for (top = 0; top <= most_waits; ++top)
            for (again = 0; again <= most_waits; ++again)
                if (auto block = block_of(pace, ranks)) blocks.push_back(std::move(*block));
    return blocks;
}

// Of the block that is fastest with some microbatches in that room, the first of equals. More tell nothing new.
std::optional<VTable> fastest_table(const std::vector<VBlock>& blocks, std::size_t microbatches, std::size_t room) {
    const VBlock* best = nullptr;
    std::int64_t least = 0;
    for (const VBlock& block : blocks) {
        const auto table = VFilling(block, std::min({microbatches, 4 * block.ranks(), std::size_t{64}}), room).fill();
        if (!table || (best && least <= table->slots)) continue;
        best = &block;
        least = table->slots;
    }
    return best ? VFilling(*best, microbatches, room).fill() : std::nullopt;
}

void append_runs(const VTable& table, const SplitCells& split, Order& order) {
    for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
        for (const VRun& run : table.ranks[rank]) {
            const std::size_t stage = half_of(run.pass) == 0 ? rank : 2 * order.ranks.size() - 1 - rank;
            if (run.is_weight)
                split.weight(order.ranks[rank], stage, run.microbatch);
            else if (is_forward(run.pass))
                split.forward(order.ranks[rank], stage, run.microbatch);
            else
                split.input(order.ranks[rank], stage, run.microbatch);
        }
}

// Blocks to choose from, and halves of microbatches that a rank holds at most.
struct VChoice {
    std::vector<VBlock> blocks{};
    std::size_t room = 0;
};

Order order_of(const Flat& flat, VChoice (*choice_for)(std::size_t ranks)) {
    bool runs = true;
    Order order = order_of_a_v(flat, [&](const Cells& cells, const SplitCells& split, Order& to) {
        const VChoice choice = choice_for(flat.ranks());
        const auto table = fastest_table(choice.blocks, cells.microbatches(), choice.room);
        runs = table.has_value();
        if (runs) append_runs(*table, split, to);
    });
    return runs ? order : Order{{}, "no block of its passes runs on so many ranks"};
}

VChoice least_held(std::size_t ranks) {
    VChoice choice{blocks_of(1, 1, ranks), 2 * ranks};
    for (const VBlock& block : choice.blocks) choice.room = std::min(choice.room, most_held(block));
    return choice;
}

VChoice half_held(std::size_t ranks) {
    VChoice choice{blocks_of(1, 2, ranks), ranks + 2};
    for (VBlock& block : blocks_of(2, 1, ranks)) choice.blocks.push_back(std::move(block));
    return choice;
}

}  // namespace

Order v_min_order(const Flat& flat) { return order_of(flat, least_held); }

Order v_half_order(const Flat& flat) { return order_of(flat, half_held); }

}  // namespace pipeweaver::search
