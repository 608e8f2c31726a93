#include "search/bounds/price_forest.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace pipeweaver::search {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

struct WindowLink {
    std::uint32_t from, to;  // indices in `tasks`
    std::int64_t slack;
};

// What a task takes and gives back at least.
struct Memory {
    std::int64_t acquire = 0, release = 0;
};

class Builder {
public:
    Builder(const Flat& flat, const Tightened& windows, std::span<const std::uint32_t> ranks)
        : flat_(flat), windows_(windows), rank_index_(flat.ranks(), none), index_of_(flat.tasks(), none) {
        for (std::size_t r = 0; r < ranks.size(); ++r) rank_index_[ranks[r]] = static_cast<std::uint32_t>(r);
        for (const std::uint32_t i : flat.topological) {
            if (rank_index_[flat.rank_of[i]] == none) continue;
            index_of_[i] = static_cast<std::uint32_t>(tasks_.size());
            tasks_.push_back(i);
        }
    }

    PriceForest run() {
        fill_memory();
        fill_links();
        keep_a_forest();
        fill_nodes();
        return std::move(forest_);
    }

private:
    // A pair's level while its tasks run and between them, in the mode where it is smallest.
    void fill_memory() {
        for (const std::uint32_t i : tasks_) memory_.push_back({flat_.cost(i, 0).acquire, flat_.cost(i, 0).release});
        for (const auto& pair : flat_.problem().pairs) {
            const std::uint32_t forward = index_of_[index(pair.forward)], backward = index_of_[index(pair.backward)];
            if (forward == none || pair.modes.size() == 1) continue;
            std::int64_t in_forward = INT64_MAX, held = INT64_MAX, in_backward = INT64_MAX, kept = INT64_MAX;
            for (std::uint32_t m = 0; m < pair.modes.size(); ++m) {
                if (!flat_.fits(static_cast<std::uint32_t>(pair.forward), m)) continue;
                const auto& mode = pair.modes[m];
                in_forward = std::min(in_forward, (mode.held + mode.forward_transient).count);
                held = std::min(held, mode.held.count);
                in_backward = std::min(in_backward, (mode.held + mode.transient).count);
                kept = std::min(kept, mode.kept.count);
            }
            memory_[forward] = {in_forward, in_forward - held};
            memory_[backward] = {in_backward - held, in_backward - kept};
            if (pair.weight) memory_[index_of_[index(*pair.weight)]] = {0, kept};
        }
    }

    // From each task to the next ones on the ranks, the longest paths over tasks on others.
    void fill_links() {
        place_.resize(flat_.tasks());
        for (std::uint32_t i = 0; i < flat_.tasks(); ++i) place_[flat_.topological[i]] = i;
        length_.assign(flat_.tasks(), -1);
        // Where few tasks are on the ranks, their pasts and futures may together be quadratic; then links are left out.
        for (const std::uint32_t from : tasks_)
            if (budget_ > 0) links_from(from);
    }

    void links_from(std::uint32_t from) {
        length_[from] = 0;
        seen_ = {from};
        open_ = {place_[from]};
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end(), std::greater<>());
            const std::uint32_t i = flat_.topological[open_.back()];
            open_.pop_back();
            if (i == from || index_of_[i] == none)
                go_on(i);
            else
                links_.push_back({index_of_[from], index_of_[i], windows_.head[i] - windows_.head[from] - length_[i]});
        }
        for (const std::uint32_t i : seen_) length_[i] = -1;
    }

    void go_on(std::uint32_t i) {
        budget_ -= std::min(budget_, flat_.after[i].size());
        for (const Arc& arc : flat_.after[i]) {
            if (length_[arc.task] < 0) {
                seen_.push_back(arc.task);
                open_.push_back(place_[arc.task]);
                std::push_heap(open_.begin(), open_.end(), std::greater<>());
            }
            length_[arc.task] = std::max(length_[arc.task], length_[i] + flat_.shortest[i] + arc.lag_ns);
        }
    }

    void keep_a_forest() {
        std::stable_sort(links_.begin(), links_.end(),
                         [](const WindowLink& a, const WindowLink& b) { return a.slack < b.slack; });
        std::vector<std::uint32_t> root(tasks_.size());
        std::iota(root.begin(), root.end(), 0U);
        const auto root_of = [&](std::uint32_t i) {
            while (root[i] != i) i = root[i] = root[root[i]];
            return i;
        };
        neighbours_.resize(tasks_.size());
        for (const WindowLink& link : links_) {
            const std::uint32_t a = root_of(link.from), b = root_of(link.to);
            if (a == b) continue;
            root[a] = b;
            neighbours_[link.from].push_back({link.to, true, link.slack});
            neighbours_[link.to].push_back({link.from, false, link.slack});
        }
    }

    void fill_nodes() {
        reached_.assign(tasks_.size(), 0);
        for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
            if (reached_[i] != 0) continue;
            forest_.first.push_back(static_cast<std::uint32_t>(forest_.nodes.size()));
            add(0, {i, false, 0});
            for (std::size_t n = forest_.first.back(); n < forest_.nodes.size(); ++n)
                for (const Neighbour& next : neighbours_[of_node_[n]])
                    if (reached_[next.task] == 0) add(static_cast<std::uint32_t>(n), next);
        }
        forest_.first.push_back(static_cast<std::uint32_t>(forest_.nodes.size()));
    }

    struct Neighbour {
        std::uint32_t task;  // index in `tasks`
        bool after;
        std::int64_t slack;
    };

    void add(std::uint32_t parent, const Neighbour& which) {
        const std::uint32_t i = tasks_[which.task], r = flat_.rank_of[i];
        const auto of_room = [&](std::int64_t bytes) {
            return bytes == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(flat_.room[r]);
        };
        PriceForest::Node node;
        node.task = i;
        node.rank = rank_index_[r];
        node.head = static_cast<double>(windows_.head[i]);
        node.duration = static_cast<double>(flat_.shortest[i]);
        node.path = static_cast<double>(windows_.head[i] + flat_.shortest[i] + windows_.tail[i]);
        node.acquire = of_room(memory_[which.task].acquire);
        node.release = of_room(memory_[which.task].release);
        node.parent = parent;
        node.after = which.after;
        node.slack = static_cast<double>(which.slack);
        reached_[which.task] = 1;
        forest_.nodes.push_back(node);
        of_node_.push_back(which.task);
    }

    const Flat& flat_;
    const Tightened& windows_;
    std::vector<std::uint32_t> rank_index_, index_of_, tasks_;
    std::vector<Memory> memory_;  // per index in `tasks`
    std::vector<WindowLink> links_;
    std::size_t budget_ = tuning.root.most_forest_arcs;
    std::vector<std::uint32_t> place_, seen_, open_;
    std::vector<std::int64_t> length_;
    std::vector<std::vector<Neighbour>> neighbours_;
    std::vector<char> reached_;
    std::vector<std::uint32_t> of_node_;
    PriceForest forest_;
};

}  // namespace

PriceForest price_forest(const Flat& flat, const Tightened& windows, std::span<const std::uint32_t> ranks) {
    return Builder(flat, windows, ranks).run();
}

}  // namespace pipeweaver::search
