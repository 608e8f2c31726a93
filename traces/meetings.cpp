#include "traces/meetings.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "traces/passes.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace pipeweaver::traces {

namespace {

constexpr double largest_share_of_span = 0.05;  // that clocks may be uncertain by

// Collectives of one group in their order, on one rank.
struct InOrder {
    std::vector<std::uint32_t> works;
    bool all_numbered = true;
};
using ByGroup = std::map<std::string, InOrder>;

// Sends and receives, or what is no such, in their order.
std::vector<std::uint32_t> in_order(const RankRecord& record, bool sends) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t w = 0; w < record.works.size(); ++w)
        if (record.works[w].collective != none && (record.works[w].kind == Kind::send_recv) == sends)
            order.push_back(w);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return record.works[a].start_ns < record.works[b].start_ns;
    });
    return order;
}

ByGroup groups_of(const RankRecord& record) {
    ByGroup groups;
    for (const std::uint32_t w : in_order(record, false)) {
        const Collective& one = record.collectives[record.works[w].collective];
        InOrder& group = groups[one.group.empty() ? std::string(name_of(record.works[w].kind)) : one.group];
        group.works.push_back(w);
        group.all_numbered = group.all_numbered && one.sequence.has_value();
    }
    return groups;
}

const Collective& collective_at(const RankRecord& record, std::uint32_t work) {
    return record.collectives[record.works[work].collective];
}

void require_same(const Recording& all, const Meeting& meeting, std::string_view group) {
    const Member first = meeting.front();
    const RankRecord& its = all.ranks[first.rank];
    for (const Member& one : meeting) {
        const RankRecord& record = all.ranks[one.rank];
        const Kind kind = record.works[one.work].kind, expected = its.works[first.work].kind;
        const std::string &message = collective_at(record, one.work).message,
                          &its_message = collective_at(its, first.work).message;
        if (kind == expected && (kind != Kind::all_reduce || message == its_message)) continue;
        fail(ErrorKind::input,
             "{}: of group '{}' has {} {} where {} has {} {}: traces are of different runs, or of different steps",
             record.file, group, name_of(kind), message, its.file, name_of(expected), its_message);
    }
}

// Groups of all ranks, matched.
class Matching {
public:
    explicit Matching(const Recording& all) : all_(all) {
        for (const RankRecord& record : all.ranks) groups_.push_back(groups_of(record));
    }

    std::vector<Meeting> run() {
        match_sends();
        std::map<std::string, std::vector<std::size_t>> members;
        for (std::size_t r = 0; r < groups_.size(); ++r)
            for (const auto& [group, works] : groups_[r]) members[group].push_back(r);
        for (const auto& [group, ranks] : members) {
            require_members(group, ranks);
            if (ranks.size() < 2) continue;
            const bool numbered = std::all_of(ranks.begin(), ranks.end(),
                                              [&](std::size_t r) { return groups_[r].at(group).all_numbered; });
            if (numbered)
                by_number(group, ranks);
            else
                by_order(group, ranks);
        }
        return std::move(found_);
    }

private:
    // Everyone in the group was given, and has collectives of it.
    void require_members(const std::string& group, const std::vector<std::size_t>& ranks) const {
        const std::size_t first = ranks.front();
        const Collective& one = collective_at(all_.ranks[first], groups_[first].at(group).works.front());
        for (const std::int64_t rank : one.ranks) {
            const bool known =
                std::any_of(ranks.begin(), ranks.end(), [&](std::size_t r) { return all_.ranks[r].rank == rank; });
            if (!known)
                fail(ErrorKind::input, "{}: of group '{}' rank {} is missing, or its trace has no collective of it",
                     all_.ranks[first].file, group, rank);
        }
    }

    void by_order(const std::string& group, const std::vector<std::size_t>& ranks) {
        const std::size_t count = groups_[ranks.front()].at(group).works.size();
        for (const std::size_t r : ranks)
            if (groups_[r].at(group).works.size() != count)
                fail(ErrorKind::input,
                     "{}: has {} collectives of group '{}', {} has {}: traces are of different runs, or of different "
                     "steps",
                     all_.ranks[r].file, groups_[r].at(group).works.size(), group, all_.ranks[ranks.front()].file,
                     count);
        for (std::size_t i = 0; i < count; ++i) {
            Meeting meeting;
            for (const std::size_t r : ranks) meeting.push_back({r, groups_[r].at(group).works[i]});
            add(std::move(meeting), group);
        }
    }

    // Numbers that not all have lie before or behind what a rank recorded; several of one number are one call.
    void by_number(const std::string& group, const std::vector<std::size_t>& ranks) {
        std::map<std::pair<std::int64_t, std::size_t>, Meeting> numbered;
        for (const std::size_t r : ranks) {
            std::map<std::int64_t, std::size_t> seen;
            for (const std::uint32_t w : groups_[r].at(group).works) {
                const std::int64_t number = collective_at(all_.ranks[r], w).sequence.value_or(0);
                numbered[{number, seen[number]++}].push_back({r, w});
            }
        }
        bool any = false;
        for (auto& [number, meeting] : numbered)
            if (meeting.size() == ranks.size()) {
                any = true;
                add(std::move(meeting), group);
            }
        if (!any)
            fail(ErrorKind::input, "{}: has no collective of group '{}' that {} has: traces are of different steps",
                 all_.ranks[ranks.back()].file, group, all_.ranks[ranks.front()].file);
    }

    // By their order, from one rank to another in a group.
    void match_sends() {
        std::map<std::int64_t, std::size_t> place;
        for (std::size_t r = 0; r < all_.ranks.size(); ++r) place.try_emplace(all_.ranks[r].rank, r);
        std::map<std::tuple<std::size_t, std::size_t, std::string>, std::pair<Meeting, Meeting>> ways;
        for (std::size_t r = 0; r < all_.ranks.size(); ++r)
            for (const std::uint32_t w : in_order(all_.ranks[r], true)) {
                const Collective& one = collective_at(all_.ranks[r], w);
                const auto peer = place.find(one.target ? *one.target : one.source.value_or(-1));
                if (peer == place.end() || peer->second == r) continue;
                if (one.target)
                    ways[{r, peer->second, one.group}].first.push_back({r, w});
                else
                    ways[{peer->second, r, one.group}].second.push_back({r, w});
            }
        for (const auto& [way, both] : ways) {
            const auto& [sent, received] = both;
            if (sent.size() != received.size()) continue;
            for (std::size_t i = 0; i < sent.size(); ++i)
                found_.push_back(sent[i].rank < received[i].rank ? Meeting{sent[i], received[i]}
                                                                 : Meeting{received[i], sent[i]});
        }
    }

    void add(Meeting meeting, const std::string& group) {
        require_same(all_, meeting, group);
        found_.push_back(std::move(meeting));
    }

    const Recording& all_;
    std::vector<ByGroup> groups_;
    std::vector<Meeting> found_;
};

bool end_together(Kind kind) {
    return kind == Kind::all_reduce || kind == Kind::all_gather || kind == Kind::reduce_scatter ||
           kind == Kind::all_to_all;
}

// How much later by their own clocks ends of one rank are than those of another.
struct Apart {
    std::int64_t middle_ns = 0, varies_ns = 0;
};

Apart apart(std::vector<std::int64_t> differences) {
    std::sort(differences.begin(), differences.end());
    const std::size_t last = differences.size() - 1;
    return {differences[last / 2], (differences[last - last / 20] - differences[last / 20]) / 2};
}

// By two ranks, the first the smaller: how much later the second one's clock is.
using Pairs = std::map<std::pair<std::size_t, std::size_t>, Apart>;

Pairs pairs_of(const Recording& recording, const std::vector<Meeting>& meetings, bool (*counts)(Kind)) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> differences;
    for (const Meeting& meeting : meetings) {
        const Work& first = recording.ranks[meeting.front().rank].works[meeting.front().work];
        if (!counts(first.kind)) continue;
        for (std::size_t m = 1; m < meeting.size(); ++m) {
            const Work& other = recording.ranks[meeting[m].rank].works[meeting[m].work];
            differences[{meeting.front().rank, meeting[m].rank}].push_back(other.end_ns() - first.end_ns());
        }
    }
    Pairs pairs;
    for (auto& [pair, all] : differences) pairs[pair] = apart(std::move(all));
    return pairs;
}

// What one rank takes cannot begin, by a true clock, before another has made it: bounds from both sides.
Pairs pairs_of(const Recording& recording, const std::vector<Passage>& passages) {
    std::map<std::pair<std::size_t, std::size_t>, std::optional<std::int64_t>> most;  // made after it is taken
    for (const Passage& one : passages) {
        const std::int64_t made = recording.ranks[one.from.rank].works[one.from.work].end_ns();
        const std::int64_t taken = recording.ranks[one.to.rank].works[one.to.work].start_ns;
        auto& so_far = most[{one.from.rank, one.to.rank}];
        so_far = std::max(so_far.value_or(made - taken), made - taken);
    }
    Pairs pairs;
    for (const auto& [pair, there] : most) {
        const auto [a, b] = pair;
        const auto back = most.find({b, a});
        if (a > b || back == most.end()) continue;
        // The second one's clock is later by `back` at least, and by -`there` at most.
        const std::int64_t least = back->second.value_or(0), largest = -there.value_or(0);
        pairs[pair] = {(least + largest) / 2, std::abs(largest - least) / 2};
    }
    return pairs;
}

void require_alignable(const RankRecord& record, std::int64_t uncertainty_ns) {
    const auto most = largest_share_of_span * static_cast<double>(span_of(record));
    if (static_cast<double>(uncertainty_ns) > most)
        fail(ErrorKind::input,
             "{}: its clock cannot be aligned: ends of its collectives differ from the other ranks' by +- {}",
             record.file, human(Duration{uncertainty_ns}));
}

}  // namespace

std::vector<Meeting> meetings_of(const Recording& recording) {
    if (recording.is_emulated || recording.ranks.size() < 2) return {};
    return Matching(recording).run();
}

std::vector<ClockOffset> aligned(const Recording& recording, const std::vector<Meeting>& meetings,
                                 const std::vector<Passage>& passages) {
    const std::size_t ranks = recording.ranks.size();
    std::vector<ClockOffset> clocks(ranks);
    if (recording.is_emulated || ranks < 2) return clocks;
    Pairs pairs = pairs_of(recording, meetings, end_together);
    pairs.merge(pairs_of(recording, meetings, [](Kind kind) { return kind == Kind::send_recv; }));
    pairs.merge(pairs_of(recording, passages));
    std::vector<bool> known(ranks, false);
    known[0] = true;
    for (bool any = true; any;) {
        any = false;
        for (const auto& [pair, found] : pairs) {
            const auto [a, b] = pair;
            if (known[a] == known[b]) continue;
            const std::size_t from = known[a] ? a : b, to = known[a] ? b : a;
            clocks[to] = {clocks[from].offset_ns + (to == b ? -found.middle_ns : found.middle_ns),
                          clocks[from].uncertainty_ns + found.varies_ns};
            require_alignable(recording.ranks[to], clocks[to].uncertainty_ns);
            known[to] = any = true;
        }
    }
    for (std::size_t r = 0; r < ranks; ++r)
        if (!known[r])
            fail(ErrorKind::input, "{}: its clock cannot be aligned: it shares no collective with the other ranks",
                 recording.ranks[r].file);
    return clocks;
}

}  // namespace pipeweaver::traces
