#include "search/dip/dip_tree.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::search {

DipTree::DipTree(std::uint32_t items) : items_(items), taken_(items) {
    nodes_.emplace_back();
    nodes_.front().done = items == 0;
}

bool DipTree::wants_child(const Node& node) const {
    if (node.children == items_ - node.depth) return false;
    // Without an open child there is nowhere else to go.
    return node.open_children == 0 ||
           static_cast<double>(node.children) < tuning.dip.widening * std::sqrt(static_cast<double>(node.visits));
}

std::uint32_t DipTree::best_child(std::uint32_t node) const {
    const double tries = std::log(static_cast<double>(std::max(1U, nodes_[node].visits)));
    const bool seen = best_ <= worst_;  // else every score below is 0
    const double range = seen ? static_cast<double>(std::max<std::int64_t>(1, worst_ - best_)) : 1;
    std::uint32_t best = none;
    double most = 0;
    for (std::uint32_t child = nodes_[node].first_child; child != none; child = nodes_[child].next) {
        const Node& mine = nodes_[child];
        if (mine.done) continue;
        const double score = mine.best == INT64_MAX ? 0 : static_cast<double>(worst_ - mine.best) / range;
        const double value = score + tuning.dip.beta * std::sqrt(tries / static_cast<double>(mine.visits));
        if (best == none || value > most) best = child, most = value;
    }
    return best;
}

std::uint32_t DipTree::expand(std::uint32_t node) {
    std::fill(taken_.begin(), taken_.end(), 0);
    for (const std::uint32_t item : beginning(node)) taken_[item] = 1;
    for (std::uint32_t child = nodes_[node].first_child; child != none; child = nodes_[child].next)
        taken_[nodes_[child].item] = 1;
    const auto item = static_cast<std::uint32_t>(std::find(taken_.begin(), taken_.end(), 0) - taken_.begin());
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    Node child;
    child.parent = node;
    child.item = item;
    child.depth = nodes_[node].depth + 1;
    child.next = nodes_[node].first_child;
    nodes_.push_back(child);
    nodes_[node].first_child = made;
    ++nodes_[node].children;
    ++nodes_[node].open_children;
    return made;
}

// A node all of whose sequences have been chosen; its parents may be, too.
void DipTree::close(std::uint32_t node) {
    while (true) {
        nodes_[node].done = true;
        const std::uint32_t parent = nodes_[node].parent;
        if (parent == none) return;
        Node& above = nodes_[parent];
        if (--above.open_children > 0 || above.children < items_ - above.depth) return;
        node = parent;
    }
}

std::optional<std::uint32_t> DipTree::select() {
    if (exhausted()) return std::nullopt;
    std::uint32_t node = 0;
    ++nodes_[node].visits;
    while (!wants_child(nodes_[node])) {
        node = best_child(node);
        ++nodes_[node].visits;
    }
    const std::uint32_t made = expand(node);
    ++nodes_[made].visits;
    if (nodes_[made].depth == items_) close(made);
    return made;
}

std::vector<std::uint32_t> DipTree::beginning(std::uint32_t node) const {
    std::vector<std::uint32_t> items;
    for (; nodes_[node].parent != none; node = nodes_[node].parent) items.push_back(nodes_[node].item);
    std::reverse(items.begin(), items.end());
    return items;
}

void DipTree::record(std::uint32_t node, std::int64_t makespan) {
    best_ = std::min(best_, makespan);
    worst_ = std::max(worst_, makespan);
    for (; node != none; node = nodes_[node].parent) nodes_[node].best = std::min(nodes_[node].best, makespan);
}

}  // namespace pipeweaver::search
