#include "search/dip/dip_orders.hpp"

#include "search/dip/dip_tree.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::search {

namespace {

// `beginning`, then all other items in random order.
void complete(const std::vector<std::uint32_t>& beginning, std::uint32_t items, Random& random,
              std::vector<std::uint32_t>& order) {
    order = beginning;
    std::vector<char> taken(items, 0);
    for (const std::uint32_t item : order) taken[item] = 1;
    for (std::uint32_t item = 0; item < items; ++item)
        if (taken[item] == 0) order.push_back(item);
    for (std::size_t k = order.size(); k > beginning.size() + 1; --k)
        std::swap(order[k - 1], order[beginning.size() + random.below(k - beginning.size())]);
}

class TreeOrders final : public DipOrders {
public:
    TreeOrders(std::uint32_t items, std::size_t parts) : items_(items), tree_(items), part_(parts) {}

    bool exhausted() const override { return tree_.exhausted(); }

    bool begin(std::size_t slot) override {
        const auto node = tree_.select();
        if (node) part_[slot] = {*node, tree_.beginning(*node)};
        return node.has_value();
    }

    bool next(std::size_t slot, Random& random, std::vector<std::uint32_t>& order) override {
        complete(part_[slot].beginning, items_, random, order);
        return true;
    }

    void end(std::size_t slot, std::int64_t best) override { tree_.record(part_[slot].node, best); }

private:
    struct Part {
        std::uint32_t node = 0;
        std::vector<std::uint32_t> beginning;
    };

    std::uint32_t items_;
    DipTree tree_;
    std::vector<Part> part_;
};

class RandomOrders final : public DipOrders {
public:
    explicit RandomOrders(std::uint32_t items) : items_(items) {}

    bool exhausted() const override { return items_ < 2; }
    bool begin(std::size_t) override { return !exhausted(); }

    bool next(std::size_t, Random& random, std::vector<std::uint32_t>& order) override {
        complete({}, items_, random, order);
        return true;
    }

private:
    std::uint32_t items_;
};

class DepthFirstOrders final : public DipOrders {
public:
    DepthFirstOrders(std::uint32_t items, std::size_t parts) : coming_(items), part_(parts) {
        std::iota(coming_.begin(), coming_.end(), 0U);
        advance();
    }

    bool exhausted() const override { return exhausted_; }

    bool begin(std::size_t slot) override {
        if (exhausted_) return false;
        Part& part = part_[slot];
        part = {coming_, 0};
        for (; part.left < tuning.dip.completions && !exhausted_; ++part.left) advance();
        return true;
    }

    bool next(std::size_t slot, Random&, std::vector<std::uint32_t>& order) override {
        Part& part = part_[slot];
        if (part.left == 0) return false;
        --part.left;
        order = part.coming;
        std::next_permutation(part.coming.begin(), part.coming.end());
        return true;
    }

private:
    struct Part {
        std::vector<std::uint32_t> coming;
        std::uint64_t left = 0;
    };

    void advance() { exhausted_ = !std::next_permutation(coming_.begin(), coming_.end()); }

    std::vector<std::uint32_t> coming_;  // the first order that no slot has been given
    bool exhausted_ = false;
    std::vector<Part> part_;
};

}  // namespace

std::unique_ptr<DipOrders> make_orders(DipOrder order, std::uint32_t items, std::size_t parts) {
    switch (order) {
        case DipOrder::random:
            return std::make_unique<RandomOrders>(items);
        case DipOrder::depth_first:
            return std::make_unique<DepthFirstOrders>(items, parts);
        case DipOrder::tree:
            break;
    }
    return std::make_unique<TreeOrders>(items, parts);
}

}  // namespace pipeweaver::search
