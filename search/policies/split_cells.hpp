// What orders with split backwards share: tasks by stage, microbatch and kind, and the V, where ranks have two stages.
#pragma once

#include "search/policies/orders.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::search {

/// A stage's tasks of a microbatch by kind; I is all that comes late but W.
class SplitCells {
public:
    SplitCells(const Flat& flat, const Cells& cells) : flat_(flat), cells_(cells) {}

    void forward(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const;
    void input(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
        late(to, stage, microbatch, false);
    }
    void weight(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch) const {
        late(to, stage, microbatch, true);
    }

private:
    void late(std::vector<std::uint32_t>& to, std::size_t stage, std::size_t microbatch, bool weight) const;

    const Flat& flat_;
    const Cells& cells_;
};

/// Why a backward is not split that anything waits for; empty: all are.
[[nodiscard]] std::string not_split(const Flat& flat);

/// The order that `fill` writes, by rank, of a problem with split backwards and stages s < P and 2 P - 1 - s on rank s.
/// Not applicable to others.
[[nodiscard]] Order order_of_a_v(const Flat& flat,
                                 const std::function<void(const Cells&, const SplitCells&, Order&)>& fill);

}  // namespace pipeweaver::search
