#include "search/policies/split_cells.hpp"

#include <fmt/format.h>

namespace pipeweaver::search {

namespace {

using schedule::TaskKind;

// A whole backward that nothing waits for comes as late as a weight gradient may: as a first stage's, where there is no
// input gradient to send.
bool is_weight(const Flat& flat, std::uint32_t task) {
    const TaskKind kind = flat.problem().tasks[task].kind;
    return kind == TaskKind::weight_gradient || (kind == TaskKind::backward && flat.after[task].empty());
}

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

}  // namespace

void SplitCells::forward(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
    const auto tasks = cells_.forwards(stage, microbatch);
    to.insert(to.end(), tasks.begin(), tasks.end());
}

void SplitCells::late(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch, bool weight) const {
    for (const std::uint32_t task : cells_.backwards(stage, microbatch))
        if (is_weight(flat_, task) == weight) to.push_back(task);
}

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

Order order_of_a_v(const Flat& flat, const std::function<void(const Cells&, const SplitCells&, Order&)>& fill) {
    if (auto why = not_split(flat); !why.empty()) return {{}, why};
    const Cells cells(flat);
    if (!cells.why_not().empty()) return {{}, cells.why_not()};
    if (auto why = not_a_v(flat, cells); !why.empty()) return {{}, why};
    Order order;
    order.ranks.resize(flat.ranks());
    fill(cells, SplitCells(flat, cells), order);
    put_around(flat, order);
    return order;
}

}  // namespace pipeweaver::search
