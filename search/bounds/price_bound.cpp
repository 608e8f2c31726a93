#include "search/bounds/price_bound.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::search {

namespace {

constexpr std::size_t price_cells = tuning.price.cells;
constexpr std::size_t padded =
    price_cells + 4;  // a start in the last slot may be a slot late; what comes then has no price

// Where a moment lies among the cells.
struct CellPosition {
    std::size_t cell = 0;
    double part = 0;  // of the cell

    CellPosition(double moment, double width) {
        const double before = moment / width;
        cell = static_cast<std::size_t>(before);
        part = before - static_cast<double>(cell);
    }
};

double between(const double* sums, double part) { return sums[0] + part * (sums[1] - sums[0]); }

double at(const std::vector<double>& sums, const CellPosition& place) {
    return between(sums.data() + std::min(place.cell, padded - 2), place.part);
}

// Adds `amount` from the place on, as changes from cell to cell.
void add_from(std::vector<double>& changes, const CellPosition& place, double amount) {
    if (place.cell >= price_cells) return;
    changes[place.cell] += amount * (1 - place.part);
    changes[place.cell + 1] += amount * place.part;
}

void sum_up(const std::vector<double>& prices, std::vector<double>& sums) {
    for (std::size_t c = 0; c < price_cells; ++c) sums[c + 1] = sums[c] + prices[c];
    std::fill(sums.begin() + price_cells + 1, sums.end(), sums[price_cells]);
}

// Prices times about exp(step * what is used).
void grow(std::vector<double>& prices, std::vector<double>& changes, double step) {
    double used = 0;
    for (std::size_t c = 0; c < price_cells; ++c) {
        used += changes[c];
        const double x = step * std::max(0.0, used);
        prices[c] *= 1 + x + x * x / 2;
    }
    std::fill(changes.begin(), changes.end(), 0.0);
}

}  // namespace

PriceBound::PriceBound(const Flat& flat, const Tightened& windows, std::span<const std::uint32_t> ranks,
                       std::int64_t bound)
    : forest_(price_forest(flat, windows, ranks)), longest_(longest_makespan(flat)), refuted_(bound - 1), row_(padded) {
    Rank rank;
    rank.machine.assign(price_cells, 1.0);
    rank.machine_sum.assign(padded, 0.0);
    rank.memory = rank.machine;
    rank.memory_sum = rank.busy = rank.used = rank.machine_sum;
    sum_up(rank.machine, rank.machine_sum);
    sum_up(rank.memory, rank.memory_sum);
    ranks_.assign(ranks.size(), rank);
    std::uint32_t largest = 0;
    for (std::size_t t = 0; t < forest_.trees(); ++t)
        largest = std::max(largest, forest_.first[t + 1] - forest_.first[t]);
    rows_.resize(largest * padded);
    slot_.resize(largest);
    start_.resize(forest_.nodes.size());
    try_limit(bound);
}

void PriceBound::try_limit(std::int64_t limit) {
    limit_ = limit;
    width_ = static_cast<double>(limit) / static_cast<double>(price_cells);
}

double PriceBound::worth() const {
    double sum = 0;
    for (const Rank& rank : ranks_) sum += rank.machine_sum.back() + rank.memory_sum.back();
    return sum;
}

std::size_t PriceBound::slots(const Node& node) const {
    return 1 + static_cast<std::size_t>(std::max(0.0, static_cast<double>(limit_) - node.path) / width_);
}

std::size_t PriceBound::slack_slots(const Node& node) const {
    return static_cast<std::size_t>(std::min(std::ceil(node.slack / width_), static_cast<double>(price_cells)));
}

double PriceBound::price(const Node& node, double start) const {
    const Rank& rank = ranks_[node.rank];
    const CellPosition begin(start, width_), end(start + node.duration, width_);
    const double all = rank.memory_sum.back();
    return at(rank.machine_sum, end) - at(rank.machine_sum, begin) + node.acquire * (all - at(rank.memory_sum, begin)) -
           node.release * (all - at(rank.memory_sum, end));
}

// Starts within a slot, as fractions of it, where the price may bend: its begin, and where start and end pass to the
// next cell.
std::array<double, 3> PriceBound::bends(const Node& node) const {
    return {0, 1 - CellPosition(node.head, width_).part, 1 - CellPosition(node.head + node.duration, width_).part};
}

// Starts in the slot, one of which is the cheapest. What is left of the last slot ends at the latest start.
std::array<double, 4> PriceBound::starts(const Node& node, std::size_t slot) const {
    const auto [border, first, second] = bends(node);
    const double latest = node.head + std::max(0.0, static_cast<double>(limit_) - node.path);
    const auto start = [&](double part) {
        return std::min(latest, node.head + (static_cast<double>(slot) + part) * width_);
    };
    return {start(border), start(first), start(second), start(border + 1)};
}

// Prices of `count` starts a slot apart, from `later` slots after the head, into row_.
void PriceBound::price_starts(const Node& node, double later, std::size_t count) {
    const Rank& rank = ranks_[node.rank];
    const double first = node.head + later * width_;
    CellPosition begin(first, width_), end(first + node.duration, width_);
    // What ends after the limit has one slot; after the last cell all sums are equal.
    begin.cell = std::min(begin.cell, padded - 1 - count);
    end.cell = std::min(end.cell, padded - 1 - count);
    const double* machine_begin = rank.machine_sum.data() + begin.cell;
    const double* machine_end = rank.machine_sum.data() + end.cell;
    const double* memory_begin = rank.memory_sum.data() + begin.cell;
    const double* memory_end = rank.memory_sum.data() + end.cell;
    const double acquire = node.acquire, release = node.release;
    const double constant = (acquire - release) * rank.memory_sum.back();
    double* out = row_.data();
    for (std::size_t k = 0; k < count; ++k)
        out[k] = between(machine_end + k, end.part) - between(machine_begin + k, begin.part) + constant -
                 acquire * between(memory_begin + k, begin.part) + release * between(memory_end + k, end.part);
}

// Per slot the smallest price of a start in it.
void PriceBound::price_slots(const Node& node, double* row) {
    const std::size_t count = slots(node);
    const auto [border, first, second] = bends(node);
    price_starts(node, border, count + 1);
    for (std::size_t k = 0; k < count; ++k) row[k] = std::min(row_[k], row_[k + 1]);
    for (const double later : {first, second}) {
        price_starts(node, later, count);
        for (std::size_t k = 0; k < count; ++k) row[k] = std::min(row[k], row_[k]);
    }
    row[count - 1] = INFINITY;
    for (const double start : starts(node, count - 1)) row[count - 1] = std::min(row[count - 1], price(node, start));
    work_ += count;
}

// The least the tree can pay. Rows hold, per slot of a node, the least for it and all below it.
double PriceBound::cheapest(std::size_t tree) {
    const std::size_t first = forest_.first[tree], last = forest_.first[tree + 1];
    const auto row = [&](std::size_t n) { return rows_.data() + (n - first) * padded; };
    for (std::size_t n = first; n < last; ++n) price_slots(forest_.nodes[n], row(n));
    for (std::size_t n = last; n-- > first + 1;) {
        const Node& node = forest_.nodes[n];
        const std::size_t count = slots(node), slack = slack_slots(node);
        const std::size_t parent_count = slots(forest_.nodes[node.parent]);
        double* parent = row(node.parent);
        std::copy(row(n), row(n) + count, row_.begin());
        if (node.after) {
            for (std::size_t k = count - 1; k-- > 0;) row_[k] = std::min(row_[k], row_[k + 1]);
            for (std::size_t k = 0; k < parent_count; ++k)
                parent[k] += row_[std::min(count - 1, k - std::min(k, slack))];
        } else {
            for (std::size_t k = 1; k < count; ++k) row_[k] = std::min(row_[k], row_[k - 1]);
            for (std::size_t k = 0; k < parent_count; ++k) parent[k] += row_[std::min(count - 1, k + slack)];
        }
    }
    return *std::min_element(row(first), row(first) + slots(forest_.nodes[first]));
}

// Finds the starts of cheapest(tree), from the root down. Pre: it was just called.
void PriceBound::choose(std::size_t tree) {
    const std::size_t first = forest_.first[tree], last = forest_.first[tree + 1];
    for (std::size_t n = first; n < last; ++n) {
        const Node& node = forest_.nodes[n];
        std::size_t begin = 0, end = slots(node);
        if (n > first) {
            const std::size_t k = slot_[node.parent - first], slack = slack_slots(node);
            if (node.after)
                begin = std::min(end - 1, k - std::min(k, slack));
            else
                end = std::min(end, k + slack + 1);
        }
        const double* row = rows_.data() + (n - first) * padded;
        const auto slot = static_cast<std::size_t>(std::min_element(row + begin, row + end) - row);
        slot_[n - first] = slot;
        double least = INFINITY;
        for (const double start : starts(node, slot)) {
            const double cost = price(node, start);
            if (cost >= least) continue;
            least = cost;
            start_[n] = start;
        }
    }
}

// Prices grow by what the tree uses.
void PriceBound::use(std::size_t tree, double step) {
    for (std::size_t n = forest_.first[tree]; n < forest_.first[tree + 1]; ++n) {
        const Node& node = forest_.nodes[n];
        Rank& rank = ranks_[node.rank];
        const CellPosition begin(start_[n], width_), end(start_[n] + node.duration, width_);
        add_from(rank.busy, begin, 1);
        add_from(rank.busy, end, -1);
        add_from(rank.used, begin, node.acquire);
        add_from(rank.used, end, -node.release);
        rank.touched = true;
    }
    for (Rank& rank : ranks_) {
        if (!rank.touched) continue;
        rank.touched = false;
        grow(rank.machine, rank.busy, step);
        grow(rank.memory, rank.used, step);
        sum_up(rank.machine, rank.machine_sum);
        sum_up(rank.memory, rank.memory_sum);
        work_ += 2 * price_cells;
    }
}

// T is worth about 1 again: only proportions count, and prices would grow for ever. What costs nothing would cost
// nothing for ever.
void PriceBound::scale() {
    const double factor = 1 / worth();
    for (Rank& rank : ranks_) {
        for (double& price : rank.machine) price = std::max(price * factor, tuning.price.least_price);
        for (double& price : rank.memory) price = std::max(price * factor, tuning.price.least_price);
        sum_up(rank.machine, rank.machine_sum);
        sum_up(rank.memory, rank.memory_sum);
        work_ += price_cells;
    }
}

void PriceBound::phase() {
    const double step = tuning.price.first_step / std::sqrt(1 + static_cast<double>(++phases_));
    for (std::size_t t = 0; t < forest_.trees(); ++t) {
        cheapest(t);
        choose(t);
        use(t, step);
        if ((t + 1) % tuning.price.trees_per_scale == 0) scale();
    }
    scale();
}

// What all trees must pay, as a fraction of what T is worth.
double PriceBound::evaluate() {
    double sum = 0;
    for (std::size_t t = 0; t < forest_.trees(); ++t) sum += cheapest(t);
    return sum / worth();
}

// Raises T as long as the prices refute it, a few times. Where nothing fits they may refute any.
void PriceBound::raise() {
    for (int times = 0; times < tuning.price.raises_per_check && refuted_ < longest_; ++times) {
        const double ratio = evaluate();
        if (ratio <= 1 + tuning.price.margin) return;
        refuted_ = limit_;
        const auto more = static_cast<std::int64_t>(std::min(ratio - 1, 1.0) * tuning.price.raise_share *
                                                    static_cast<double>(limit_));
        try_limit(limit_ + std::clamp<std::int64_t>(more, 1, std::max<std::int64_t>(1, longest_ - limit_)));
    }
}

void PriceBound::improve(std::uint64_t units) {
    const std::uint64_t end = work_ + units;
    do {
        phase();
        if (phases_ % tuning.price.phases_per_check == 0) raise();
    } while (work_ < end);
}

double PriceBound::memory_pressure() {
    auto priced = ranks_;
    for (Rank& rank : ranks_) {
        std::fill(rank.machine_sum.begin(), rank.machine_sum.end(), 0.0);
        std::fill(rank.memory.begin(), rank.memory.end(), 1.0);
        sum_up(rank.memory, rank.memory_sum);
    }
    const double pressure = evaluate();
    ranks_.swap(priced);
    return pressure;
}

}  // namespace pipeweaver::search
