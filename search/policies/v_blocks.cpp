#include "search/policies/v_blocks.hpp"

#include "search/policies/split_cells.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
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

// The weight gradients behind the two input gradients are kinds of their own, after the passes.
constexpr std::uint32_t kinds = passes + 2;
constexpr bool is_weight(std::uint32_t kind) { return kind >= passes; }
constexpr std::uint32_t weight_of(std::uint32_t kind) { return kind + 2; }
constexpr std::uint32_t input_of(std::uint32_t kind) { return kind - 2; }

struct VRun {
    std::uint32_t kind = 0, microbatch = 0;
};

struct VTable {
    std::vector<std::vector<VRun>> ranks{};
    std::size_t slots = 0;
};

// A block for each microbatch, a period after the one before, with each weight gradient in the first free slot behind
// its input gradient; then squeezed.
class VTiling {
public:
    VTiling(const VBlock& block, std::size_t microbatches, std::size_t room)
        : room_(static_cast<std::int64_t>(room)), microbatches_(microbatches), ranks_(block.ranks()) {
        for (auto& slots : slot_of_) slots.resize(block.ranks() * microbatches);
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            for (std::uint32_t pass = 0; pass < passes; ++pass)
                for (std::uint32_t m = 0; m < microbatches; ++m)
                    put(rank, {pass, m}, static_cast<std::size_t>(block.at[pass][rank] + m * period));
            add_weights(rank);
            count_held(rank);
        }
    }

    // Every run as early as what it waits for and the room allow, at the end input gradients before weight gradients.
    // None: its ranks hold more than there is room for.
    std::optional<VTable> squeezed() {
        move_up();
        put_input_gradients_first();
        move_up();
        VTable table;
        for (const Rank& rank : ranks_) {
            if (*std::max_element(rank.held.begin(), rank.held.end()) > room_) return std::nullopt;
            std::vector<VRun>& runs = table.ranks.emplace_back();
            for (std::size_t slot = 0; slot < rank.at.size(); ++slot)
                if (rank.at[slot]) {
                    runs.push_back(*rank.at[slot]);
                    table.slots = std::max(table.slots, slot + 1);
                }
        }
        return table;
    }

private:
    struct Rank {
        std::vector<std::optional<VRun>> at{};  // by slot
        std::vector<std::int64_t> held{};       // halves of microbatches at the end of each
    };

    static std::int64_t change_of(const VRun& run) { return is_weight(run.kind) ? -1 : is_forward(run.kind) ? 1 : 0; }

    std::size_t& slot_of(std::uint32_t kind, std::size_t rank, std::uint32_t microbatch) {
        return slot_of_[kind][rank * microbatches_ + microbatch];
    }

    void put(std::size_t rank, const VRun& run, std::size_t slot) {
        auto& at = ranks_[rank].at;
        if (slot >= at.size()) at.resize(slot + 1);
        at[slot] = run;
        slot_of(run.kind, rank, run.microbatch) = slot;
    }

    // At most `end`: all slots behind it may be full.
    std::size_t free_from(std::size_t rank, std::size_t slot, std::size_t end) const {
        const auto& at = ranks_[rank].at;
        while (slot < end && at[slot]) ++slot;
        return slot;
    }

    void add_weights(std::size_t rank) {
        const auto& at = ranks_[rank].at;
        std::vector<VRun> weights;
        std::size_t done = 0;
        for (std::size_t slot = 0; slot < at.size() || done < weights.size(); ++slot)
            if (slot >= at.size() || !at[slot]) {
                if (done < weights.size()) put(rank, weights[done++], slot);
            } else if (const VRun run = *at[slot]; !is_forward(run.kind)) {
                weights.push_back({weight_of(run.kind), run.microbatch});
            }
    }

    void count_held(std::size_t rank) {
        Rank& mine = ranks_[rank];
        mine.held.assign(mine.at.size(), 0);
        std::int64_t held = 0;
        for (std::size_t slot = 0; slot < mine.at.size(); ++slot) {
            if (mine.at[slot]) held += change_of(*mine.at[slot]);
            mine.held[slot] = held;
        }
    }

    // Behind all that it waits for: the pass before, or its input gradient, and the microbatch before.
    std::size_t earliest(std::size_t rank, const VRun& run) {
        const auto [kind, m] = run;
        const std::size_t slot = m > 0 ? slot_of(kind, rank, m - 1) + 1 : 0;
        if (is_weight(kind)) return std::max(slot, slot_of(input_of(kind), rank, m) + 1);
        const bool down = goes_down(kind), turns = rank == (down ? 0 : ranks_.size() - 1);
        if (turns && kind == forward_down) return slot;
        const std::size_t before = turns  ? slot_of(kind - 1, rank, m)
                                   : down ? slot_of(kind, rank - 1, m)
                                          : slot_of(kind, rank + 1, m);
        return std::max(slot, before + 1);
    }

    template <class Visit>
    void for_each_run(const Visit& visit) {
        std::size_t slots = 0;
        for (const Rank& rank : ranks_) slots = std::max(slots, rank.at.size());
        for (std::size_t slot = 0; slot < slots; ++slot)
            for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
                if (slot < ranks_[rank].at.size() && ranks_[rank].at[slot]) visit(rank, *ranks_[rank].at[slot], slot);
    }

    void move(std::size_t rank, const VRun& run, std::size_t from, std::size_t to) {
        ranks_[rank].at[from].reset();
        put(rank, run, to);
    }

    void move_up() {
        for_each_run([this](std::size_t rank, const VRun run, std::size_t slot) {
            Rank& mine = ranks_[rank];
            const std::int64_t change = change_of(run);
            std::size_t to = slot;
            for (const std::size_t first = earliest(rank, run); to > first; --to)
                if (change > 0 && mine.held[to - 1] + change > room_) break;
            to = free_from(rank, to, slot);
            if (to >= slot) return;
            for (std::size_t between = to; between < slot; ++between) mine.held[between] += change;
            move(rank, run, slot, to);
        });
    }

    // Behind a rank's last forward: ranks before it wait for input gradients, and for no weight gradient.
    void put_input_gradients_first() {
        std::vector<std::size_t> behind;
        std::vector<std::vector<VRun>> weights(ranks_.size());
        const auto last = static_cast<std::uint32_t>(microbatches_ - 1);
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            behind.push_back(1 + std::max(slot_of(forward_down, rank, last), slot_of(forward_up, rank, last)));
            auto& at = ranks_[rank].at;
            for (std::size_t slot = behind[rank]; slot < at.size(); ++slot)
                if (at[slot] && is_weight(at[slot]->kind)) weights[rank].push_back(*std::exchange(at[slot], {}));
        }
        for_each_run([&](std::size_t rank, const VRun run, std::size_t slot) {
            if (slot < behind[rank]) return;
            const std::size_t to = free_from(rank, std::max(earliest(rank, run), behind[rank]), slot);
            if (to < slot) move(rank, run, slot, to);
        });
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            for (const VRun& run : weights[rank]) {
                const std::size_t input = slot_of(input_of(run.kind), rank, run.microbatch);
                put(rank, run, free_from(rank, std::max(input + 1, behind[rank]), ranks_[rank].at.size()));
            }
            count_held(rank);
        }
    }

    std::int64_t room_;
    std::size_t microbatches_;
    std::vector<Rank> ranks_;
    std::array<std::vector<std::size_t>, kinds> slot_of_{};
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
    std::size_t least = 0;
    for (const VBlock& block : blocks) {
        const std::size_t some = std::min({microbatches, 4 * block.ranks(), std::size_t{64}});
        const auto table = VTiling(block, some, room).squeezed();
        if (!table || (best && least <= table->slots)) continue;
        best = &block;
        least = table->slots;
    }
    return best ? VTiling(*best, microbatches, room).squeezed() : std::nullopt;
}

void append_runs(const VTable& table, const SplitCells& split, Order& order) {
    for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
        for (const VRun& run : table.ranks[rank]) {
            const std::uint32_t pass = is_weight(run.kind) ? input_of(run.kind) : run.kind;
            const std::size_t stage = half_of(pass) == 0 ? rank : 2 * order.ranks.size() - 1 - rank;
            if (is_weight(run.kind))
                split.weight(order.ranks[rank], stage, run.microbatch);
            else if (is_forward(pass))
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
