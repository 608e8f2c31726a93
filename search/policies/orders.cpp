#include "search/policies/orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace pipeweaver::search {

namespace {

void sort_and_unify(std::vector<std::int64_t>& numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

std::size_t index_in(const std::vector<std::int64_t>& numbers, std::int64_t number) {
    return static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
}

// Work of a whole step, before its chain or after it.
bool is_around_chain(const schedule::Task& task) { return !task.stage && !task.microbatch && !task.module.empty(); }

Order no_order(std::string why) { return {{}, std::move(why)}; }

void append(std::vector<std::uint32_t>& to, std::span<const std::uint32_t> tasks) {
    to.insert(to.end(), tasks.begin(), tasks.end());
}

}  // namespace

Cells::Cells(const Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (is_around_chain(tasks[i])) continue;
        if (!tasks[i].stage || !tasks[i].microbatch) {
            why_not_ =
                fmt::format("task {} '{}' has no {}", i, tasks[i].label, tasks[i].stage ? "microbatch" : "stage");
            return;
        }
        stage_.push_back(*tasks[i].stage);
        microbatch_.push_back(*tasks[i].microbatch);
    }
    sort_and_unify(stage_);
    sort_and_unify(microbatch_);
    cells_.resize(stage_.size() * microbatch_.size() * 2);
    stage_ranks_.resize(stage_.size());
    for (const std::uint32_t i : flat.reading) {
        if (is_around_chain(tasks[i])) continue;
        const std::size_t stage = index_in(stage_, *tasks[i].stage);
        const std::size_t microbatch = index_in(microbatch_, *tasks[i].microbatch);
        cells_[(stage * microbatch_.size() + microbatch) * 2 + flat.late[i]].push_back(i);
        auto& ranks = stage_ranks_[stage];
        if (std::find(ranks.begin(), ranks.end(), flat.rank_of[i]) == ranks.end()) ranks.push_back(flat.rank_of[i]);
    }
}

std::span<const std::uint32_t> Cells::forwards(std::size_t stage, std::size_t microbatch) const {
    return cell(stage, microbatch, false);
}

std::span<const std::uint32_t> Cells::backwards(std::size_t stage, std::size_t microbatch) const {
    return cell(stage, microbatch, true);
}

std::vector<std::size_t> Cells::present(std::size_t stage) const {
    std::vector<std::size_t> numbers;
    for (std::size_t m = 0; m < microbatches(); ++m)
        if (!forwards(stage, m).empty() || !backwards(stage, m).empty()) numbers.push_back(m);
    return numbers;
}

namespace {

// Per task: edges on the longest path to it.
std::vector<std::uint32_t> depths(const Flat& flat) {
    std::vector<std::uint32_t> depth(flat.tasks(), 0);
    for (const std::uint32_t i : flat.topological)
        for (const Arc& arc : flat.before[i]) depth[i] = std::max(depth[i], depth[arc.task] + 1);
    return depth;
}

// Per task: the largest depth of all tasks of its stage and direction, so that a stage's tasks stay together.
std::vector<std::uint32_t> stage_depths(const Flat& flat) {
    auto depth = depths(flat);
    std::map<std::pair<std::int64_t, std::uint8_t>, std::uint32_t> deepest;
    const auto& tasks = flat.problem().tasks;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        if (!tasks[i].stage) continue;
        auto& most = deepest[{*tasks[i].stage, flat.late[i]}];
        most = std::max(most, depth[i]);
    }
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        if (tasks[i].stage) depth[i] = deepest[{*tasks[i].stage, flat.late[i]}];
    return depth;
}

}  // namespace

Order gpipe_order(const Flat& flat) {
    const auto depth = stage_depths(flat);
    const auto key = [&](std::uint32_t i) { return std::tuple(flat.late[i], depth[i], flat.place[i]); };
    const auto keys = keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    Order order;
    order.ranks.resize(flat.ranks());
    for (const std::uint32_t i : sorted_by_key(flat.before, flat.after, keys))
        order.ranks[flat.rank_of[i]].push_back(i);
    return order;
}

namespace {

// Indices of the stages by the depth of their first forward along the edges, from the first of the chain on.
std::vector<std::size_t> stages_along_the_chain(const Flat& flat, const Cells& cells) {
    const auto depth = depths(flat);
    std::vector<std::pair<std::uint32_t, std::size_t>> found;
    for (std::size_t s = 0; s < cells.stages(); ++s) {
        std::uint32_t least = UINT32_MAX;
        for (std::size_t m = 0; m < cells.microbatches(); ++m) {
            for (const std::uint32_t i : cells.forwards(s, m)) least = std::min(least, depth[i]);
        }
        found.emplace_back(least, s);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> stages;
    stages.reserve(found.size());
    for (const auto& [least, s] : found) stages.push_back(s);
    return stages;
}

// Why it is not one stage a rank; empty if it is.
std::string two_stages_on_a_rank(const Flat& flat, const Cells& cells) {
    std::vector<std::size_t> owner(flat.ranks(), SIZE_MAX);
    for (std::size_t s = 0; s < cells.stages(); ++s) {
        if (cells.ranks(s).size() > 1)
            return fmt::format("the tasks of a stage are on ranks {} and {}", cells.ranks(s)[0], cells.ranks(s)[1]);
        std::size_t& mine = owner[cells.ranks(s).front()];
        if (mine != SIZE_MAX) return fmt::format("rank {} has tasks of more than one stage", cells.ranks(s).front());
        mine = s;
    }
    return {};
}

}  // namespace

void put_around(const Flat& flat, Order& order) {
    std::vector<std::vector<std::uint32_t>> first(flat.ranks());
    for (const std::uint32_t i : flat.reading) {
        if (!is_around_chain(flat.problem().tasks[i])) continue;
        (flat.late[i] ? order.ranks : first)[flat.rank_of[i]].push_back(i);
    }
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
        append(first[rank], order.ranks[rank]);
        order.ranks[rank] = std::move(first[rank]);
    }
}

Order order_along_the_chain(const Flat& flat, const Cells& cells,
                            const std::function<void(const ChainStage& at, std::vector<std::uint32_t>& mine)>& fill) {
    if (!cells.why_not().empty()) return no_order(cells.why_not());
    if (auto why = two_stages_on_a_rank(flat, cells); !why.empty()) return no_order(why);
    Order order;
    order.ranks.resize(flat.ranks());
    const auto chain = stages_along_the_chain(flat, cells);
    for (std::size_t position = 0; position < chain.size(); ++position) {
        ChainStage at{chain[position], position, cells.present(chain[position])};
        at.warm_up = std::min(chain.size() - 1 - position, at.microbatches.size());
        fill(at, order.ranks[cells.ranks(at.stage).front()]);
    }
    put_around(flat, order);
    return order;
}

Order one_forward_one_backward_order(const Flat& flat) {
    const Cells cells(flat);
    return order_along_the_chain(flat, cells, [&](const ChainStage& at, std::vector<std::uint32_t>& mine) {
        const auto& present = at.microbatches;
        for (std::size_t k = 0; k < at.warm_up; ++k) append(mine, cells.forwards(at.stage, present[k]));
        for (std::size_t k = 0; k < present.size(); ++k) {
            if (k + at.warm_up < present.size()) append(mine, cells.forwards(at.stage, present[k + at.warm_up]));
            append(mine, cells.backwards(at.stage, present[k]));
        }
    });
}

namespace {

// A row of the table: which of the rank's chunks runs which microbatch.
struct TableRow {
    std::size_t chunk, microbatch;
};

std::vector<TableRow> table(std::size_t chunks, std::size_t microbatches, std::size_t group) {
    std::vector<TableRow> rows;
    for (std::size_t first = 0; first < microbatches; first += group)
        for (std::size_t chunk = 0; chunk < chunks; ++chunk)
            for (std::size_t m = first; m < std::min(microbatches, first + group); ++m) rows.push_back({chunk, m});
    return rows;
}

std::string not_a_loop(const Flat& flat, const Cells& cells) {
    if (cells.stages() % flat.ranks() != 0 || cells.stages() < 2 * flat.ranks())
        return fmt::format("{} stages do not give each of {} ranks the same number, two or more", cells.stages(),
                           flat.ranks());
    for (std::size_t s = 0; s < cells.stages(); ++s) {
        const auto& ranks = cells.ranks(s);
        if (ranks.size() > 1 || ranks.front() != s % flat.ranks())
            return fmt::format("stage {} is on rank {}, a loop has it on rank {}", s, ranks.back(), s % flat.ranks());
    }
    return {};
}

}  // namespace

Order interleaved_order(const Flat& flat) {
    const Cells cells(flat);
    if (!cells.why_not().empty()) return no_order(cells.why_not());
    if (auto why = not_a_loop(flat, cells); !why.empty()) return no_order(why);
    const std::size_t ranks = flat.ranks(), chunks = cells.stages() / ranks;
    const auto rows = table(chunks, cells.microbatches(), ranks);
    Order order;
    order.ranks.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::size_t warm_up = std::min(2 * (ranks - 1 - rank) + (chunks - 1) * ranks, rows.size());
        const auto forward = [&](const TableRow& row) {
            append(order.ranks[rank], cells.forwards(row.chunk * ranks + rank, row.microbatch));
        };
        const auto backward = [&](const TableRow& row) {
            append(order.ranks[rank], cells.backwards((chunks - 1 - row.chunk) * ranks + rank, row.microbatch));
        };
        for (std::size_t k = 0; k < warm_up; ++k) forward(rows[k]);
        for (std::size_t k = 0; k < rows.size(); ++k) {
            if (k + warm_up < rows.size()) forward(rows[k + warm_up]);
            backward(rows[k]);
        }
    }
    put_around(flat, order);
    return order;
}

}  // namespace pipeweaver::search
