#include "search/exact/exact.hpp"

#include "search/bounds/edge_finding.hpp"

#include <algorithm>
#include <tuple>

namespace pipeweaver::search {

namespace {

constexpr std::size_t slots = tuning.exact.slots;

}  // namespace

Exact::Exact(const Flat& flat, std::int64_t makespan, const ExactLimits& limits)
    : flat_(flat),
      limits_(limits),
      makespan_(makespan),
      windows_(tightened(flat)),
      space_(flat, windows_.head, windows_.tail),
      width_(limits.first_width) {
    slots_.reserve(slots);
    shards_.reserve(slots);
    for (std::size_t s = 0; s < slots; ++s) {
        slots_.emplace_back(space_);
        shards_.emplace_back(space_);
    }
    begin_pass();
}

bool Exact::suits(const Flat& flat) {
    const auto& pairs = flat.problem().pairs;
    return flat.tasks() <= ExactSpace::most_tasks && std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) {
               return pair.modes.size() <= ExactSpace::most_modes;
           });
}

void Exact::offer(std::int64_t makespan) { makespan_ = std::min(makespan_, makespan); }

void Exact::begin_pass() {
    std::uint64_t edge_work = tuning.exact.edge_work;
    if (!tighten_for(flat_, limit() - 1, windows_, edge_work)) {
        state_ = State::proven;
        return;
    }
    space_.set_windows(windows_.head, windows_.tail);
    for (Shard& shard : shards_) {
        shard.now.clear();
        shard.next.clear();
    }
    const auto root = space_.root();
    shards_[0].now.add(ExactLayer::hash(space_, root), root, {});
    layer_ = {{0, 0}};
    expanded_ = 0;
    cut_ = false;
    traces_ = {{ExactTrace{}}};
}

// All work so far, in units that take about as long everywhere.
std::uint64_t Exact::work() const {
    std::uint64_t sum = nodes_ * (flat_.tasks() + 20);
    for (const Shard& shard : shards_) sum += (shard.now.comparisons() + shard.next.comparisons()) / 2;
    return sum;
}

// States to expand for this much work.
std::size_t Exact::portion(std::uint64_t work_left) const {
    const std::uint64_t of_state = std::max<std::uint64_t>(work_of_state_, 1 + 2 * flat_.tasks());
    return std::min<std::size_t>(layer_.size() - expanded_, std::max<std::uint64_t>(slots, work_left / of_state / 2));
}

std::optional<Candidate> Exact::round(const Executor& execute) {
    const std::uint64_t begin = work();
    std::optional<Candidate> found;
    while (!found && state_ == State::working) {
        const std::uint64_t before = work();
        if (before - begin >= limits_.round_work) break;
        const std::size_t count = portion(limits_.round_work - (before - begin));
        found = step(execute, count);
        work_of_state_ = (work() - before) / std::max<std::size_t>(count, 1);
    }
    return found;
}

// Expands the next states of the layer; after the last of them goes on to the next layer, after the last layer to the
// next pass.
std::optional<Candidate> Exact::step(const Executor& execute, std::size_t count) {
    execute(slots,
            [&](std::size_t s) { expand(s, expanded_ + count * s / slots, expanded_ + count * (s + 1) / slots); });
    for (const Slot& slot : slots_) nodes_ += slot.children.size();
    execute(slots, [&](std::size_t s) { merge(s); });
    expanded_ += count;
    if (expanded_ < layer_.size()) return std::nullopt;
    end_layer();
    const bool last = traces_.size() == flat_.tasks() + 1;
    std::optional<Candidate> found = last ? best_complete() : std::nullopt;
    if (last || layer_.empty()) end_pass();
    return found;
}

void Exact::expand(std::size_t s, std::size_t first, std::size_t last) {
    Slot& slot = slots_[s];
    slot.words.clear();
    slot.children.clear();
    for (std::size_t k = first; k < last; ++k) {
        const ExactLayer& from = shards_[layer_[k].shard].now;
        slot.state.load(from.record(from.labels()[layer_[k].label]), traces_.back()[k].step);
        slot.state.steps(limit(), slot.steps);
        for (const ExactStep step : slot.steps) {
            Child child;
            child.begin = slot.words.size();
            slot.state.append_after(step, slot.words);
            child.end = slot.words.size();
            child.hash = ExactLayer::hash(space_, {slot.words.data() + child.begin, child.end - child.begin});
            child.trace = {static_cast<std::uint32_t>(k), step};
            slot.children.push_back(child);
        }
    }
}

// Takes the shard's children of all slots, in order.
void Exact::merge(std::size_t s) {
    Shard& shard = shards_[s];
    for (const Slot& slot : slots_)
        for (const Child& child : slot.children) {
            if (child.hash >> 60 != s) continue;
            const Record record{slot.words.data() + child.begin, child.end - child.begin};
            if (shard.next.dominated(child.hash, record)) continue;
            shard.state.load(record, child.trace.step);
            const std::int64_t bound = shard.state.bound(limit());
            if (bound >= limit()) continue;
            ExactLayer::Label& label = shard.next.add(child.hash, record, child.trace);
            label.bound = bound;
            label.lateness = shard.state.lateness();
        }
}

// What was reached becomes what is expanded next.
void Exact::end_layer() {
    layer_.clear();
    for (std::uint32_t s = 0; s < shards_.size(); ++s) {
        std::swap(shards_[s].now, shards_[s].next);
        shards_[s].next.clear();
        const auto& labels = shards_[s].now.labels();
        for (std::uint32_t l = 0; l < labels.size(); ++l)
            if (labels[l].alive && labels[l].bound < limit()) layer_.push_back({s, l});
    }
    if (layer_.size() > width_) select();
    expanded_ = 0;
    traces_.emplace_back();
    for (const LabelPosition& place : layer_)
        traces_.back().push_back(shards_[place.shard].now.labels()[place.label].trace);
}

void Exact::select() {
    cut_ = true;
    const auto key = [&](const LabelPosition& place) {
        const auto& label = shards_[place.shard].now.labels()[place.label];
        return std::tuple(label.bound, label.lateness, place.shard, place.label);
    };
    std::nth_element(layer_.begin(), layer_.begin() + static_cast<std::ptrdiff_t>(width_), layer_.end(),
                     [&](const LabelPosition& a, const LabelPosition& b) { return key(a) < key(b); });
    layer_.resize(width_);
    std::sort(layer_.begin(), layer_.end(), [](const LabelPosition& a, const LabelPosition& b) {
        return std::pair(a.shard, a.label) < std::pair(b.shard, b.label);
    });
}

// A bound of a complete state is its makespan.
std::optional<Candidate> Exact::best_complete() {
    std::int64_t best = makespan_;
    std::optional<std::uint32_t> number;
    for (std::uint32_t k = 0; k < layer_.size(); ++k) {
        const std::int64_t bound = shards_[layer_[k].shard].now.labels()[layer_[k].label].bound;
        if (bound >= best) continue;
        best = bound;
        number = k;
    }
    if (!number) return std::nullopt;
    makespan_ = best;
    return schedule_of(*number);
}

Candidate Exact::schedule_of(std::uint32_t number) const {
    Candidate found;
    found.mode.assign(flat_.problem().pairs.size(), 0);
    for (std::size_t layer = traces_.size(); layer-- > 1;) {
        const ExactTrace& trace = traces_[layer][number];
        found.sequence.push_back(trace.step.task);
        if (space_.role(trace.step.task) == ExactSpace::Role::backward)
            found.mode[flat_.pair_of[trace.step.task]] = trace.step.mode;
        number = trace.parent;
    }
    std::reverse(found.sequence.begin(), found.sequence.end());
    IncrementalSchedule current(flat_);
    current.load(found.sequence, found.mode);
    store(current, found);
    return found;
}

void Exact::end_pass() {
    if (!cut_) {
        state_ = State::proven;
        return;
    }
    if (width_ >= limits_.widest || nodes_ >= limits_.nodes) {
        state_ = State::gave_up;
        return;
    }
    width_ = std::min(limits_.widest, width_ * limits_.wider);
    begin_pass();
}

}  // namespace pipeweaver::search
