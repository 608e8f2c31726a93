#include "search/improve/alternatives.hpp"

#include <algorithm>

namespace pipeweaver::search {

std::int64_t Alternatives::limit(std::int64_t makespan) const {
    return makespan + static_cast<std::int64_t>(wanted_.within * static_cast<double>(makespan));
}

// Two sequences may be the same schedule: what counts is each rank's order.
bool Alternatives::same(const Candidate& a, const Candidate& b) const {
    if (a.energy.makespan != b.energy.makespan || a.energy.ends != b.energy.ends || a.mode != b.mode) return false;
    return a.sequence == b.sequence ||
           as_schedule(flat_, a.sequence, a.mode).order == as_schedule(flat_, b.sequence, b.mode).order;
}

void Alternatives::offer(std::uint64_t line, const Candidate& candidate, std::string_view who) {
    if (wanted_.most == 0 || !candidate.valid()) return;
    if (!entries_.empty() && candidate.energy.makespan > limit(entries_.front().candidate.energy.makespan)) return;
    const auto older = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.line == line; });
    if (older != entries_.end() && !better(candidate, older->candidate)) return;
    for (const Entry& entry : entries_)
        if (same(entry.candidate, candidate)) return;
    if (older != entries_.end()) entries_.erase(older);
    const auto place = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return better(candidate, entry.candidate); });
    entries_.insert(place, {line, candidate, std::string(who)});
    const std::int64_t most = limit(entries_.front().candidate.energy.makespan);
    while (entries_.size() > wanted_.most + 1 || entries_.back().candidate.energy.makespan > most) entries_.pop_back();
}

std::vector<FoundSchedule> Alternatives::others(const Candidate& best) const {
    std::vector<FoundSchedule> all;
    for (const Entry& entry : entries_) {
        const Candidate& candidate = entry.candidate;
        if (all.size() == wanted_.most || candidate.energy.makespan > limit(best.energy.makespan)) break;
        if (same(candidate, best)) continue;
        all.push_back(
            {as_schedule(flat_, candidate.sequence, candidate.mode), Duration{candidate.energy.makespan}, entry.who});
    }
    return all;
}

}  // namespace pipeweaver::search
