#include "search/exact/exact_space.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::search {

ExactSpace::ExactSpace(const Flat& flat, std::vector<std::int64_t> head, std::vector<std::int64_t> tail)
    : flat_(&flat) {
    PIPEWEAVER_ASSERT(flat.tasks() <= most_tasks);
    set_words_ = (flat.tasks() + 63) / 64;
    fill_sets();
    set_windows(std::move(head), std::move(tail));
    fill_pairs();
    unit_ = time_unit(flat);
}

void ExactSpace::set_windows(std::vector<std::int64_t> head, std::vector<std::int64_t> tail) {
    head_ = std::move(head);
    tail_ = std::move(tail);
    by_tail_.assign(flat_->tasks(), 0);
    for (std::uint32_t i = 0; i < flat_->tasks(); ++i)
        for (std::uint32_t j = 0; j < flat_->tasks(); ++j)
            if (flat_->rank_of[j] == flat_->rank_of[i] && std::pair(tail_[j], i) > std::pair(tail_[i], j))
                ++by_tail_[i];
}

void ExactSpace::fill_sets() {
    before_.assign(flat_->tasks() * set_words_, 0);
    after_ = before_;
    on_rank_.assign(flat_->ranks() * set_words_, 0);
    for (std::uint32_t i = 0; i < flat_->tasks(); ++i) {
        for (const Arc& arc : flat_->before[i]) insert(&before_[i * set_words_], arc.task);
        for (const Arc& arc : flat_->after[i]) insert(&after_[i * set_words_], arc.task);
        insert(&on_rank_[flat_->rank_of[i] * set_words_], i);
    }
}

void ExactSpace::fill_pairs() {
    const auto& pairs = flat_->problem().pairs;
    role_.assign(flat_->tasks(), Role::plain);
    closes_.assign(flat_->tasks(), 0);
    classes_.resize(pairs.size());
    bool gives_back = false;
    for (std::uint32_t i = 0; i < flat_->tasks(); ++i)
        gives_back = gives_back || (flat_->pair_of[i] == schedule::Replayer::unpaired && flat_->cost(i, 0).net() < 0);
    bool any = false;
    for (std::uint32_t p = 0; p < pairs.size(); ++p) {
        fill_classes(p, gives_back);
        if (classes_[p].size() == 1 && classes_[p].front().modes == std::vector<std::uint32_t>{0}) continue;
        any = true;
        role_[index(pairs[p].forward)] = Role::forward;
        role_[index(pairs[p].backward)] = Role::backward;
        if (pairs[p].weight) role_[index(*pairs[p].weight)] = Role::weight;
        closes_[index(pairs[p].weight.value_or(pairs[p].backward))] = 1;
    }
    mode_words_ = any ? (pairs.size() + 7) / 8 : 0;
}

// Is the mode in no number better than the other? With `only_equal`: are they equal?
bool ExactSpace::useless(std::uint32_t pair, std::uint32_t mode, std::uint32_t other, bool only_equal) const {
    const auto& a = flat_->problem().pairs[pair].modes[mode];
    const auto& b = flat_->problem().pairs[pair].modes[other];
    const auto numbers = [](const schedule::Mode& m) {
        return std::array{m.forward.count(),         m.backward.count(), m.weight.count(), m.held.count,
                          m.forward_transient.count, m.transient.count,  m.kept.count};
    };
    const auto left = numbers(a), right = numbers(b);
    if (left == right) return other < mode;
    for (std::size_t k = 0; k < left.size(); ++k)
        if (left[k] < right[k]) return false;
    return !only_equal;
}

void ExactSpace::fill_classes(std::uint32_t pair, bool one_by_one) {
    const auto& source = flat_->problem().pairs[pair];
    const std::uint32_t forward = static_cast<std::uint32_t>(source.forward);
    const auto modes = static_cast<std::uint32_t>(source.modes.size());
    for (std::uint32_t m = 0; m < modes; ++m) {
        bool needed = flat_->fits(forward, m);
        for (std::uint32_t other = 0; other < modes; ++other)
            needed = needed && (other == m || !useless(pair, m, other, one_by_one));
        if (!needed) continue;
        const Cost& cost = flat_->cost(forward, m);
        const auto alike = [&](const ExactClass& c) {
            const Cost& first = flat_->cost(forward, c.modes.front());
            return !one_by_one && first.duration == cost.duration && first.release == cost.release;
        };
        auto place = std::find_if(classes_[pair].begin(), classes_[pair].end(), alike);
        if (place == classes_[pair].end()) {
            classes_[pair].push_back({{}, INT64_MAX, 0, INT64_MAX, INT64_MAX});
            place = classes_[pair].end() - 1;
        }
        place->modes.push_back(m);
        place->least_held = std::min(place->least_held, cost.net());
        place->most_held = std::max(place->most_held, cost.net());
        place->shortest_backward = std::min(place->shortest_backward, source.modes[m].backward.count());
        place->shortest_weight = std::min(place->shortest_weight, source.modes[m].weight.count());
    }
}

std::vector<std::uint64_t> ExactSpace::root() const {
    return std::vector<std::uint64_t>(memory_begin() + flat_->ranks(), 0);
}

void ExactSpace::set_byte(std::uint64_t* record, std::uint32_t pair, std::uint8_t value) const {
    std::uint64_t& word = record[1 + set_words_ + pair / 8];
    const unsigned shift = pair % 8 * 8;
    word = (word & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{value} << shift;
}

bool ExactSpace::no_worse(Record a, Record b) const {
    for (std::size_t i = memory_begin() + 2 * a[0]; i < a.size(); ++i)
        if (a[i] > b[i]) return false;
    return a[0] == 0 || no_tighter(a, b);
}

// Budgets of `a` against those of `b`, rank by rank; the last of each rank, which is of all its pairs, first.
bool ExactSpace::no_tighter(Record a, Record b) const {
    const std::size_t begin = memory_begin(), end = begin + 2 * a[0];
    const auto rank_at = [&](std::size_t i) { return flat_->rank_of[forward(static_cast<std::uint32_t>(a[i]))]; };
    for (std::size_t first = begin; first < end;) {
        std::size_t last = first;
        bool same = true;
        for (; last < end && rank_at(last) == rank_at(first); last += 2) same = same && a[last] == b[last];
        if (a[last - 1] < b[last - 1]) return false;
        for (std::size_t j = first; j + 2 < last; j += 2)
            if (a[j + 1] < (same ? b[j + 1] : implied(a, b, first, j))) return false;
        first = last;
    }
    return true;
}

// What the smallest budget of `b` that covers the pairs in words first ... j of `a` implies for them; budgets are never
// negative. Pre: `first` begins a rank.
std::uint64_t ExactSpace::implied(Record a, Record b, std::size_t first, std::size_t j) const {
    std::size_t missing = (j - first) / 2 + 1, i = first;
    std::int64_t others = 0;
    for (;; i += 2) {
        bool wanted = false;
        for (std::size_t k = first; k <= j && !wanted; k += 2) wanted = a[k] == b[i];
        if (!wanted) others += class_in(b, static_cast<std::uint32_t>(b[i])).least_held;
        if (wanted && --missing == 0) return b[i + 1] - static_cast<std::uint64_t>(others);
    }
}

}  // namespace pipeweaver::search
