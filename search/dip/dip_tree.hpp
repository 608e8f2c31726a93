// The search tree of DIP's first phase (arXiv 2504.14145, segment reordering): sequences of items, best first. A node
// is the beginning of a sequence and keeps the *best* makespan among all completions tried below it (not their mean).
//
//   select   the child with the largest score^alpha + beta * sqrt(ln visits(parent) / visits(child)), down to a node
//            that has room for another child
//   expand   one child: the first item, in their given order, that it does not have yet
//   record   the best makespan of the completions tried, up to the root
//
// Left open by the paper, decided here by what did best in trials: score = (worst - makespan) / (worst - best) over
// makespans recorded so far, so between 0 and 1; alpha = 1, beta = 0.02. A node gets a child more when its children are
// fewer than 2 * sqrt(its visits) (progressive widening, R. Coulom, "Computing Elo ratings of move patterns in the game
// of Go", 2007): with all of 256 children first, as the plain rule has it, the tree would hardly be deeper than one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::search {

class DipTree {
public:
    explicit DipTree(std::uint32_t items);

    /// A new node to complete at random and record; counts its visit. Nothing if all sequences have been chosen.
    std::optional<std::uint32_t> select();

    /// The items that the node fixes, first to last.
    std::vector<std::uint32_t> beginning(std::uint32_t node) const;

    /// The best of the node's completions. Once per node that select() gave, in any order.
    void record(std::uint32_t node, std::int64_t makespan);

    bool exhausted() const { return nodes_.front().done; }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct Node {
        std::uint32_t parent = none, item = none, depth = 0;
        std::uint32_t first_child = none, next = none, children = 0, open_children = 0;
        std::uint32_t visits = 0;
        std::int64_t best = INT64_MAX;
        bool done = false;  // nothing below is left to choose
    };

    std::uint32_t best_child(std::uint32_t node) const;
    bool wants_child(const Node& node) const;
    std::uint32_t expand(std::uint32_t node);
    void close(std::uint32_t node);

    std::uint32_t items_;
    std::vector<Node> nodes_;
    std::int64_t best_ = INT64_MAX, worst_ = INT64_MIN;
    std::vector<char> taken_;
};

}  // namespace pipeweaver::search
