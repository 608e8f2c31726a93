#include "traces/rank_graph.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace pipeweaver::traces {

namespace {

// Between two calls for one operator the host takes tens of microseconds.
constexpr std::int64_t long_gap_ns = 100'000;

class RankGraph {
public:
    RankGraph(std::vector<Draft>& drafts, const RankRecord& record, std::uint32_t rank, std::int64_t offset_ns,
              std::span<const std::optional<std::int64_t>> met_at, bool is_emulated)
        : drafts_(drafts),
          record_(record),
          rank_(rank),
          offset_(offset_ns),
          met_at_(met_at),
          is_emulated_(is_emulated),
          call_nodes_(record.calls.size()),
          call_of_(record.works.size(), none),
          nodes_(record.works.size()) {
        for (std::uint32_t w = 0; w < record.works.size(); ++w) {
            if (w == 0 || record.works[w].thread != record.works[w - 1].thread) streams_.push_back({w, w});
            streams_.back().end = w + 1;
        }
    }

    std::vector<WorkNodes> run() {
        join_calls();
        for (std::uint32_t c = 0; c < record_.calls.size(); ++c) add_call(c);
        latency_ = usual_latency();
        for (std::uint32_t w = 0; w < record_.works.size(); ++w) add_work(w);
        for (const auto& [w, on] : others_)
            drafts_[nodes_[w].begin].waits.push_back({nodes_[on].end, false, Kind::idle, 0});
        for (std::uint32_t c = 0; c < record_.calls.size(); ++c) add_waiting(c);
        return std::move(nodes_);
    }

private:
    // Works of one stream or thread: [begin, end).
    struct Stream {
        std::uint32_t begin = 0, end = 0;
    };
    // Of a call where it begins, and where it returns; of one inside another those of the outer one.
    struct CallNodes {
        std::uint32_t begin = no_node, end = no_node;
        bool inside = false;
    };
    // The calls of a host's thread so far: ends of nodes rise.
    struct HostThread {
        std::vector<std::uint32_t> returned;
        std::vector<std::uint32_t> waits;  // calls that let the next launch's stream wait
    };

    const Work& work(std::uint32_t w) const { return record_.works[w]; }
    const Call& call(std::uint32_t c) const { return record_.calls[c]; }

    std::uint32_t add(std::int64_t start_ns, std::int64_t duration_ns, std::uint32_t name, Kind kind) {
        drafts_.push_back({{start_ns + offset_, duration_ns, rank_, name, kind}, {}});
        return static_cast<std::uint32_t>(drafts_.size() - 1);
    }

    void join_calls() {
        std::unordered_map<std::int64_t, std::uint32_t> by_correlation;
        for (std::uint32_t c = 0; c < record_.calls.size(); ++c)
            if (call(c).correlation >= 0) by_correlation.try_emplace(call(c).correlation, c);
        for (std::uint32_t w = 0; w < record_.works.size(); ++w) {
            const auto found = by_correlation.find(work(w).correlation);
            if (found == by_correlation.end()) continue;
            call_of_[w] = found->second;
            launched_by_[found->second].push_back(w);
        }
        by_correlation_ = std::move(by_correlation);
    }

    // Of a copy that had ended before its call returned, which then waited for it.
    std::optional<std::uint32_t> awaited_copy(std::uint32_t c) const {
        const auto launched = launched_by_.find(c);
        if (launched == launched_by_.end() || launched->second.size() != 1) return std::nullopt;
        const Work& one = work(launched->second.front());
        const bool waits =
            one.kind == Kind::copy && one.start_ns >= call(c).start_ns && one.end_ns() <= call(c).end_ns();
        return waits ? std::optional(launched->second.front()) : std::nullopt;
    }

    void add_call(std::uint32_t c) {
        HostThread& thread = host_[call(c).thread];
        CallNodes& nodes = call_nodes_[c];
        if (!thread.returned.empty() && call(c).start_ns + offset_ < drafts_[thread.returned.back()].end_ns()) {
            nodes = {thread.returned.back(), thread.returned.back(), true};
            return;
        }
        const bool launches = launched_by_.contains(c);
        const Kind kind = launches ? Kind::launch : Kind::host;
        const auto copy = awaited_copy(c);
        const std::int64_t first_part = copy ? work(*copy).start_ns - call(c).start_ns : call(c).duration_ns;
        nodes.begin = nodes.end = add(call(c).start_ns, first_part, none, kind);
        follow_host(nodes.begin, call(c).thread);
        if (copy) {
            nodes.end = add(work(*copy).end_ns(), call(c).end_ns() - work(*copy).end_ns(), none, Kind::host);
            drafts_[nodes.end].waits.push_back({nodes.begin, false, Kind::host, 0});
        }
        thread.returned.push_back(nodes.end);
    }

    // What the host did before: on its own thread, or after a long gap on the one that called last.
    void follow_host(std::uint32_t node, std::uint32_t thread) {
        const std::int64_t start = drafts_[node].node.start_ns;
        const HostThread& own = host_[thread];
        const auto before = own.returned.empty() ? no_node : own.returned.back();
        std::uint32_t other = no_node;
        if (before == no_node || start - drafts_[before].end_ns() >= long_gap_ns) {
            for (const auto& [key, one] : host_) {
                if (key == thread) continue;
                const auto last = std::find_if(one.returned.rbegin(), one.returned.rend(),
                                               [&](std::uint32_t n) { return drafts_[n].end_ns() <= start; });
                if (last == one.returned.rend()) continue;
                if (before != no_node && drafts_[*last].end_ns() <= drafts_[before].end_ns()) continue;
                if (other == no_node || drafts_[*last].end_ns() > drafts_[other].end_ns()) other = *last;
            }
        }
        auto& waits = drafts_[node].waits;
        if (before != no_node)
            waits.push_back({before, false, Kind::host, other == no_node ? start - drafts_[before].end_ns() : 0});
        if (other != no_node) waits.push_back({other, false, Kind::host, start - drafts_[other].end_ns()});
    }

    // From the beginning of a launch to its kernel, where the stream was free: the middle one.
    std::int64_t usual_latency() const {
        std::vector<std::int64_t> found;
        for (const Stream& stream : streams_)
            for (std::uint32_t w = stream.begin; w < stream.end; ++w) {
                if (call_of_[w] == none) continue;
                const std::int64_t launched = call(call_of_[w]).start_ns;
                if (work(w).start_ns >= launched && (w == stream.begin || work(w - 1).end_ns() <= launched))
                    found.push_back(work(w).start_ns - launched);
            }
        if (found.empty()) return 0;
        const auto middle = found.begin() + static_cast<std::ptrdiff_t>((found.size() - 1) / 2);
        std::nth_element(found.begin(), middle, found.end());
        return *middle;
    }

    void add_work(std::uint32_t w) {
        const Work& its = work(w);
        WorkNodes& nodes = nodes_[w];
        const auto met = met_at_.empty() ? std::nullopt : met_at_[w];
        const bool meets = met && *met <= its.end_ns() + offset_;
        nodes.begin = nodes.end = add(its.start_ns, meets ? 0 : its.duration_ns, its.name, its.kind);
        follow_stream(w);
        if (meets) {
            nodes.end = add(*met - offset_, its.end_ns() + offset_ - *met, its.name, its.kind);
            drafts_[nodes.end].waits.push_back({nodes.begin, false, Kind::idle, 0});
        }
    }

    void follow_stream(std::uint32_t w) {
        Draft& draft = drafts_[nodes_[w].begin];
        if (w > 0 && work(w - 1).thread == work(w).thread) {
            draft.node.before = nodes_[w - 1].end;
            const Draft& before = drafts_[draft.node.before];
            if (before.end_ns() <= draft.node.start_ns)
                draft.waits.push_back({draft.node.before, false, Kind::idle, 0});
            else  // overlapped: it began while that one ran
                draft.waits.push_back({nodes_[w - 1].begin, true, Kind::idle,
                                       draft.node.start_ns - drafts_[nodes_[w - 1].begin].node.start_ns});
        }
        if (call_of_[w] == none) {
            if (record_.calls.empty()) follow_others(w);
            return;
        }
        draft.node.call = call_nodes_[call_of_[w]].begin;
        const std::int64_t after = work(w).start_ns + offset_ - drafts_[draft.node.call].node.start_ns;
        if (after >= 0) draft.waits.push_back({draft.node.call, true, Kind::launch, std::min(latency_, after)});
    }

    // Without calls: what ended last on other threads, since the one before on its own ended.
    void follow_others(std::uint32_t w) {
        const std::int64_t start = work(w).start_ns;
        const bool has_before = w > 0 && work(w - 1).thread == work(w).thread;
        const bool is_short = has_before && start - work(w - 1).end_ns() < long_gap_ns;
        if (!is_emulated_ && is_short && !is_communication(work(w).kind)) return;
        std::vector<std::uint32_t> last;
        for (const Stream& stream : streams_) {
            if (work(stream.begin).thread == work(w).thread) continue;
            const auto begin = record_.works.begin() + stream.begin, end = record_.works.begin() + stream.end;
            const auto behind =
                std::upper_bound(begin, end, start, [](std::int64_t at, const Work& one) { return at < one.end_ns(); });
            if (behind == begin) continue;
            const auto found = static_cast<std::uint32_t>(behind - record_.works.begin() - 1);
            if (has_before && work(found).end_ns() <= work(w - 1).end_ns()) continue;
            if (!last.empty() && work(found).end_ns() > work(last.front()).end_ns()) last.clear();
            if (last.empty() || work(found).end_ns() == work(last.front()).end_ns()) last.push_back(found);
        }
        for (const std::uint32_t one : last) others_.emplace_back(w, one);
    }

    std::int64_t launched_ns(std::uint32_t w) const {
        return call_of_[w] == none ? work(w).start_ns : call(call_of_[w]).start_ns;
    }

    // The last work of a stream that was launched before a moment.
    std::uint32_t last_launched(const Stream& stream, std::int64_t before) const {
        std::uint32_t w = stream.begin, end = stream.end;
        while (w < end) {
            const std::uint32_t middle = w + (end - w) / 2;
            if (launched_ns(middle) < before)
                w = middle + 1;
            else
                end = middle;
        }
        return w == stream.begin ? none : w - 1;
    }

    const Stream* stream_numbered(std::uint32_t thread) const {
        const auto found = std::find_if(streams_.begin(), streams_.end(),
                                        [&](const Stream& one) { return work(one.begin).thread == thread; });
        return found == streams_.end() ? nullptr : &*found;
    }

    // Of what was launched before, elsewhere than on `but`, what ended last at or before a moment.
    std::uint32_t last_ended(std::int64_t launched_before, std::int64_t ended_by, std::uint32_t but) const {
        std::uint32_t found = none;
        for (const Stream& stream : streams_) {
            if (work(stream.begin).thread == but) continue;
            const std::uint32_t w = last_launched(stream, launched_before);
            if (w == none || work(w).end_ns() > ended_by) continue;
            if (found == none || work(w).end_ns() > work(found).end_ns()) found = w;
        }
        return found;
    }

    void add_waiting(std::uint32_t c) {
        const auto told = record_.syncs.find(call(c).correlation);
        const Sync* const sync = told == record_.syncs.end() ? nullptr : &told->second;
        HostThread& thread = host_[call(c).thread];
        if (call(c).kind == CallKind::wait_event && sync != nullptr && sync->stream != none && sync->awaited != none)
            await_told_event(c, *sync);
        else if (call(c).kind == CallKind::wait_event)
            thread.waits.push_back(c);
        else if (call(c).kind != CallKind::other)
            await_on_host(c, sync);
        const auto launched = launched_by_.find(c);
        if (launched == launched_by_.end()) return;
        for (const std::uint32_t wait : thread.waits) await_event(launched->second.front(), call(wait).start_ns);
        thread.waits.clear();
        if (const auto copy = awaited_copy(c); copy && !call_nodes_[c].inside)
            drafts_[call_nodes_[c].end].waits.push_back({nodes_[*copy].end, false, Kind::idle, 0});
    }

    void wait_for(std::uint32_t w, std::uint32_t awaited) {
        if (awaited == none || work(awaited).end_ns() > work(w).start_ns) return;
        drafts_[nodes_[w].begin].waits.push_back({nodes_[awaited].end, false, Kind::idle, 0});
    }

    void await_event(std::uint32_t w, std::int64_t launched_before) {
        wait_for(w, last_ended(launched_before, work(w).start_ns, work(w).thread));
    }

    void await_told_event(std::uint32_t c, const Sync& sync) {
        const Stream* const waiting = stream_numbered(sync.stream);
        const Stream* const awaited = stream_numbered(sync.awaited);
        if (waiting == nullptr || awaited == nullptr) return;
        const std::uint32_t before = last_launched(*waiting, call(c).start_ns);
        const std::uint32_t next = before == none ? waiting->begin : before + 1;
        if (next == waiting->end) return;
        wait_for(next, last_launched(*awaited, recorded_ns(sync, c)));
    }

    // When the event that is waited for was recorded; where nobody says, at the latest as the wait was called.
    std::int64_t recorded_ns(const Sync& sync, std::uint32_t c) const {
        const auto recorded = by_correlation_.find(sync.recorded_by);
        return recorded == by_correlation_.end() ? call(c).start_ns : call(recorded->second).start_ns;
    }

    void await_on_host(std::uint32_t c, const Sync* sync) {
        if (call_nodes_[c].inside) return;
        if (call(c).kind == CallKind::device_sync) {
            for (const Stream& stream : streams_) return_after(c, last_launched(stream, call(c).start_ns));
            return;
        }
        const bool of_event = call(c).kind == CallKind::event_sync;
        const std::uint32_t stream = sync == nullptr ? none : of_event ? sync->awaited : sync->stream;
        const Stream* const told = stream == none ? nullptr : stream_numbered(stream);
        if (told != nullptr)
            return_after(c, last_launched(*told, of_event ? recorded_ns(*sync, c) : call(c).start_ns));
        else
            return_after(c, last_ended(call(c).start_ns, call(c).end_ns(), none));
    }

    // What is left of the call begins when the work has ended.
    void return_after(std::uint32_t c, std::uint32_t awaited) {
        if (awaited == none || work(awaited).end_ns() > call(c).end_ns()) return;
        Draft& draft = drafts_[call_nodes_[c].begin];
        const std::int64_t end = draft.end_ns();
        draft.node.start_ns = std::max(draft.node.start_ns, work(awaited).end_ns() + offset_);
        draft.node.duration_ns = end - draft.node.start_ns;
        draft.waits.push_back({nodes_[awaited].end, false, Kind::idle, 0});
    }

    std::vector<Draft>& drafts_;
    const RankRecord& record_;
    std::uint32_t rank_;
    std::int64_t offset_;
    std::span<const std::optional<std::int64_t>> met_at_;
    bool is_emulated_;
    std::vector<CallNodes> call_nodes_;
    std::vector<std::uint32_t> call_of_;  // by work
    std::vector<WorkNodes> nodes_;        // by work
    std::vector<Stream> streams_;
    std::unordered_map<std::int64_t, std::uint32_t> by_correlation_;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> launched_by_;  // works by call
    std::map<std::uint32_t, HostThread> host_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> others_;  // works, and what they follow on other threads
    std::int64_t latency_ = 0;
};

}  // namespace

std::vector<WorkNodes> add_rank(std::vector<Draft>& drafts, const RankRecord& record, std::uint32_t rank,
                                std::int64_t offset_ns, std::span<const std::optional<std::int64_t>> met_at,
                                bool is_emulated) {
    return RankGraph(drafts, record, rank, offset_ns, met_at, is_emulated).run();
}

}  // namespace pipeweaver::traces
