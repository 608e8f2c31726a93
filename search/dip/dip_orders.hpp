// Which orders of the items a search of dip.hpp tries, and in what turn: what dip, dip-random and dip-dfs differ in.
//
//   tree         the published search: dip_tree.hpp; of each new node random completions
//   random       orders drawn one by one, each as likely as any other, again and again
//   depth_first  all orders, each once: depth first, of the children the one first in the items' given order first,
//                which is the lexicographic order
//
// The last two are what the paper (arXiv 2504.14145) compares its tree with, over the same space. The given order
// itself is tried before all of them (Dip::start), so depth_first begins with the second.
//
// Threads      a wave is begun and ended by one thread; in between, next() may run for several slots at once.
// Determinism  what a slot gets is a function of what was begun and ended before, and of `random`.
#pragma once

#include "pipeweaver/base/random.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pipeweaver::search {

enum class DipOrder : std::uint8_t { tree, random, depth_first };

class DipOrders {
public:
    DipOrders() = default;
    DipOrders(const DipOrders&) = delete;
    DipOrders& operator=(const DipOrders&) = delete;
    virtual ~DipOrders() = default;

    /// No further wave would have an order.
    virtual bool exhausted() const = 0;

    /// Gives the slot its part of a new wave, slot 0 first; false: none is left for it.
    virtual bool begin(std::size_t slot) = 0;

    /// The slot's next order, asked for tuning.dip.completions times at most; false: its part has no more.
    /// Pre: begin() gave it a part.
    virtual bool next(std::size_t slot, Random& random, std::vector<std::uint32_t>& order) = 0;

    /// The wave is over: the slot's best makespan in it. Pre: begin() gave it a part.
    virtual void end(std::size_t, std::int64_t) {}
};

/// `parts`: into so many slots' parts a wave is divided.
[[nodiscard]] std::unique_ptr<DipOrders> make_orders(DipOrder order, std::uint32_t items, std::size_t parts);

}  // namespace pipeweaver::search
