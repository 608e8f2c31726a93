#include "search/construct/canonical_orders.hpp"

#include <tuple>

namespace pipeweaver::search {

namespace {

std::vector<std::uint32_t> places_of(const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> place(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    return place;
}

// Takes what became possible last: follows one item to the end before it begins the next.
std::vector<std::uint32_t> depth_first(const Flat& flat) {
    std::vector<std::uint32_t> missing(flat.tasks()), stack, order;
    for (auto i = flat.reading.rbegin(); i != flat.reading.rend(); ++i) {
        missing[*i] = static_cast<std::uint32_t>(flat.before[*i].size());
        if (missing[*i] == 0) stack.push_back(*i);
    }
    while (!stack.empty()) {
        const std::uint32_t task = stack.back();
        stack.pop_back();
        order.push_back(task);
        for (const Arc& arc : flat.after[task])
            if (--missing[arc.task] == 0) stack.push_back(arc.task);
    }
    return order;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> canonical_orders(const Flat& flat, std::span<const Cost> costs) {
    const auto sorted = [&](auto key) {
        const auto keys = keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
        return places_of(sorted_by_key(flat.before, flat.after, keys));
    };
    return {flat.place, sorted([&](std::uint32_t i) { return std::tuple(flat.late[i] == 0, flat.place[i]); }),
            sorted([&](std::uint32_t i) { return std::tuple(costs[i].net() > 0, flat.place[i]); }),
            sorted([&](std::uint32_t i) { return std::tuple(costs[i].net(), flat.place[i]); }),
            places_of(depth_first(flat))};
}

}  // namespace pipeweaver::search
