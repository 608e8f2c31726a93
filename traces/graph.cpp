#include "pipeweaver/traces/graph.hpp"

#include "pipeweaver/base/error.hpp"
#include "traces/meetings.hpp"
#include "traces/passes.hpp"
#include "traces/rank_graph.hpp"
#include "traces/recording.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pipeweaver::traces {

namespace {

class GraphBuild {
public:
    explicit GraphBuild(Recording recording)
        : recording_(std::move(recording)),
          meetings_(meetings_of(recording_)),
          passages_(passages_of(recording_)),
          clocks_(aligned(recording_, meetings_, passages_)),
          met_at_(recording_.ranks.size()) {}

    Graph run() {
        add_facts();
        if (!meetings_.empty()) find_meeting_times();
        for (std::uint32_t r = 0; r < recording_.ranks.size(); ++r)
            nodes_.push_back(
                add_rank(drafts_, recording_.ranks[r], r, clocks_[r].offset_ns, met_at_[r], recording_.is_emulated));
        for (const Meeting& meeting : meetings_) add_meeting(meeting);
        for (const Passage& one : passages_) add_passage(one);
        follow_arrows();
        if (recording_.is_emulated) follow_ends();
        put_in_order();
        graph_.names = std::move(recording_.names);
        return std::move(graph_);
    }

private:
    std::int64_t begin_of(const Member& one) const {
        return recording_.ranks[one.rank].works[one.work].start_ns + clocks_[one.rank].offset_ns;
    }

    void add_facts() {
        graph_.is_emulated = recording_.is_emulated;
        graph_.world = recording_.world.value_or(0);
        for (std::size_t r = 0; r < recording_.ranks.size(); ++r) {
            const RankRecord& record = recording_.ranks[r];
            GraphRank rank{record.rank, record.file, clocks_[r].offset_ns, clocks_[r].uncertainty_ns};
            for (const Work& work : record.works) {
                if (is_work(work.kind)) rank.work_ns += work.duration_ns;
                if (is_communication(work.kind)) rank.communication_ns += work.duration_ns;
                if (work.collective != none) ++graph_.unmatched;
            }
            graph_.ranks.push_back(std::move(rank));
        }
        for (const Meeting& meeting : meetings_) graph_.unmatched -= static_cast<std::int64_t>(meeting.size());
    }

    void find_meeting_times() {
        for (std::size_t r = 0; r < met_at_.size(); ++r) met_at_[r].resize(recording_.ranks[r].works.size());
        for (const Meeting& meeting : meetings_) {
            std::vector<std::pair<std::int64_t, std::size_t>> came;
            for (const Member& one : meeting) came.emplace_back(begin_of(one), one.rank);
            std::sort(came.begin(), came.end());
            const std::int64_t at = came.back().first;
            for (const Member& one : meeting) met_at_[one.rank][one.work] = at;
            const Member& first = meeting.front();
            if (recording_.ranks[first.rank].works[first.work].kind != Kind::send_recv) count_waits(came);
        }
    }

    // Of a collective; who sends in a pipeline comes last without being slow.
    void count_waits(const std::vector<std::pair<std::int64_t, std::size_t>>& came) {
        const auto [at, last] = came.back();
        for (const auto& [time, rank] : came) {
            graph_.ranks[rank].waits_ns += at - time;
            ++graph_.ranks[rank].meetings;
        }
        ++graph_.meetings;
        const std::int64_t later = at - came[came.size() - 2].first;
        if (later > 0) ++graph_.ranks[last].last;
        graph_.ranks[last].kept_waiting_ns += later;
    }

    void add_meeting(const Meeting& meeting) {
        const Member& first = meeting.front();
        Draft meet;
        meet.node = {met_at_[first.rank][first.work].value_or(0), 0, static_cast<std::uint32_t>(first.rank),
                     recording_.ranks[first.rank].works[first.work].name, Kind::idle};
        const auto number = static_cast<std::uint32_t>(drafts_.size());
        for (const Member& one : meeting) {
            const WorkNodes& its = nodes_[one.rank][one.work];
            if (its.begin == its.end) {  // it had ended before the last one came: the clocks are not that exact
                ++graph_.unmatched;
                continue;
            }
            meet.waits.push_back({its.begin, false, Kind::idle, 0});
            drafts_[its.end].waits.push_back({number, false, Kind::idle, 0});
        }
        drafts_.push_back(std::move(meet));
    }

    // What is done with the received before the pass follows it, too, where it came after the sending pass.
    void add_passage(const Passage& one) {
        const std::uint32_t sent = nodes_[one.from.rank][one.from.work].end;
        const std::uint32_t received = behind_the_wait(recording_, one.to);
        const bool is_after = begin_of({one.to.rank, received}) >= drafts_[sent].end_ns();
        drafts_[nodes_[one.to.rank][is_after ? received : one.to.work].begin].waits.push_back(
            {sent, false, Kind::idle, 0});
    }

    // Of a thread what began last at or before a moment.
    std::uint32_t work_at(const Arrow& arrow) const {
        const auto& works = recording_.ranks[arrow.rank].works;
        const auto behind = std::upper_bound(works.begin(), works.end(), std::pair(arrow.thread, arrow.at_ns),
                                             [](const std::pair<std::uint32_t, std::int64_t>& at, const Work& one) {
                                                 return at < std::pair(one.thread, one.start_ns);
                                             });
        if (behind == works.begin() || (behind - 1)->thread != arrow.thread) return none;
        return static_cast<std::uint32_t>(behind - works.begin() - 1);
    }

    void follow_arrows() {
        std::unordered_map<std::string_view, std::uint32_t> from;
        for (const Arrow& arrow : recording_.arrows) {
            const std::uint32_t work = work_at(arrow);
            if (work == none) continue;
            const WorkNodes& its = nodes_[arrow.rank][work];
            const auto [known, is_first] = from.try_emplace(arrow.id, its.end);
            if (is_first) continue;
            drafts_[its.begin].waits.push_back({known->second, false, Kind::idle, 0});
            known->second = its.end;
        }
    }

    // What nothing explains yet follows what ended on any rank in that very nanosecond.
    void follow_ends() {
        std::unordered_map<std::int64_t, std::vector<std::uint32_t>> ended;
        for (std::uint32_t n = 0; n < drafts_.size(); ++n) ended[drafts_[n].end_ns()].push_back(n);
        for (Draft& draft : drafts_) {
            const bool explained = std::any_of(draft.waits.begin(), draft.waits.end(), [&](const Wait& wait) {
                return drafts_[wait.on].end_ns() == draft.node.start_ns;
            });
            const auto found = ended.find(draft.node.start_ns);
            if (explained || found == ended.end()) continue;
            for (const std::uint32_t on : found->second) draft.waits.push_back({on, false, Kind::idle, 0});
        }
    }

    void put_in_order() {
        std::vector<std::uint32_t> order(drafts_.size()), place(drafts_.size());
        for (std::uint32_t n = 0; n < order.size(); ++n) order[n] = n;
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::tuple(drafts_[a].node.start_ns, drafts_[a].end_ns(), a) <
                   std::tuple(drafts_[b].node.start_ns, drafts_[b].end_ns(), b);
        });
        for (std::uint32_t p = 0; p < order.size(); ++p) place[order[p]] = p;
        const std::int64_t begin = drafts_[order.front()].node.start_ns;
        const auto placed = [&](std::uint32_t node) { return node == no_node ? no_node : place[node]; };
        for (const std::uint32_t n : order) {
            Node node = drafts_[n].node;
            node.start_ns -= begin;
            node.before = placed(node.before);
            node.call = placed(node.call);
            graph_.span_ns = std::max(graph_.span_ns, node.start_ns + node.duration_ns);
            graph_.first_wait.push_back(static_cast<std::uint32_t>(graph_.waits.size()));
            for (Wait& wait : drafts_[n].waits) wait.on = place[wait.on];
            graph_.nodes.push_back(node);
            settle(drafts_[n].waits);
        }
        graph_.first_wait.push_back(static_cast<std::uint32_t>(graph_.waits.size()));
        if (graph_.span_ns > longest_step_ns)
            fail(ErrorKind::input, "{}: spans more than 100 hours: allowed is a step, or some",
                 graph_.ranks.front().file);
    }

    std::int64_t ready_ns(const Wait& wait) const {
        const Node& on = graph_.nodes[wait.on];
        return on.start_ns + (wait.from_start ? 0 : on.duration_ns) + wait.lag_ns;
    }

    // Keeps what the last node can have waited for; what is left until its start comes behind the last of it.
    void settle(std::vector<Wait>& waits) {
        const auto self = static_cast<std::uint32_t>(graph_.nodes.size() - 1);
        const std::int64_t start = graph_.nodes.back().start_ns;
        std::erase_if(waits, [&](const Wait& wait) { return wait.on >= self || ready_ns(wait) > start; });
        const auto last = std::max_element(waits.begin(), waits.end(),
                                           [&](const Wait& a, const Wait& b) { return ready_ns(a) < ready_ns(b); });
        if (last != waits.end()) {
            const std::int64_t gap = start - ready_ns(*last);
            last->lag_ns += gap;
            if (last->kind != Kind::idle) last->kept_ns = gap;
        }
        graph_.waits.insert(graph_.waits.end(), waits.begin(), waits.end());
    }

    Recording recording_;
    std::vector<Meeting> meetings_;
    std::vector<Passage> passages_;
    std::vector<ClockOffset> clocks_;
    std::vector<std::vector<std::optional<std::int64_t>>> met_at_;  // by rank and work
    std::vector<std::vector<WorkNodes>> nodes_;                     // by rank and work
    std::vector<Draft> drafts_;
    Graph graph_;
};

}  // namespace

std::map<std::int64_t, std::size_t> Graph::places() const {
    std::map<std::int64_t, std::size_t> found;
    for (std::size_t r = 0; r < ranks.size(); ++r) found.try_emplace(ranks[r].rank, r);
    return found;
}

Graph read_graph(std::span<const std::string> files) { return GraphBuild(read_recording(files)).run(); }

}  // namespace pipeweaver::traces
