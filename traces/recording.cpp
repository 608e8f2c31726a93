#include "traces/recording.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/costdb/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pipeweaver::traces {

using costdb::TraceEvent;

namespace {

constexpr std::int64_t largest_number = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_ranks = 1'000'000;
constexpr std::int64_t latest_ns = 2'000'000'000'000'000'000, longest_event_ns = 3'600'000'000'000;

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_call(const TraceEvent& event) {
    return is_any_of(event.category, {"cuda_runtime", "cuda_driver", "Runtime", "Driver"});
}

bool is_kernel(const TraceEvent& event) { return is_any_of(event.category, {"kernel", "Kernel"}); }

bool is_copy(const TraceEvent& event) {
    return is_any_of(event.category, {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"});
}

// Table: words in the name of a call that waits, or lets a stream wait.
constexpr std::array<std::pair<std::string_view, CallKind>, 5> waiting_calls{{
    {"StreamSynchronize", CallKind::stream_sync},
    {"EventSynchronize", CallKind::event_sync},
    {"DeviceSynchronize", CallKind::device_sync},
    {"CtxSynchronize", CallKind::device_sync},
    {"StreamWaitEvent", CallKind::wait_event},
}};

CallKind call_kind_of(std::string_view name) {
    const auto* found = std::find_if(waiting_calls.begin(), waiting_calls.end(),
                                     [&](const auto& one) { return contains(name, one.first); });
    return found == waiting_calls.end() ? CallKind::other : found->second;
}

// "[0, 1, 8]"; nothing where it is cut short ("...") or none.
std::vector<std::int64_t> ranks_in(std::string_view text) {
    std::vector<std::int64_t> ranks;
    if (contains(text, "...")) return ranks;
    for (std::size_t at = text.find_first_of("0123456789"); at != std::string_view::npos;) {
        const auto end = std::min(text.find_first_not_of("0123456789", at), text.size());
        if (const auto rank = integer_in(text.substr(at, end - at), 0, most_ranks)) ranks.push_back(*rank);
        at = text.find_first_of("0123456789", end);
    }
    return ranks;
}

// The rank that a process of a trace of our own is: "rank 3", "replica 0, rank 3".
std::optional<std::int64_t> rank_of_process(std::string_view label) {
    const auto at = label.rfind("rank ");
    if (at != 0 && (at == std::string_view::npos || !label.starts_with("replica "))) return std::nullopt;
    return integer_in(label.substr(at + 5), 0, most_ranks);
}

Kind kind_of_own(std::string_view thread, const TraceEvent& event) {
    if (thread.starts_with("transfers in")) return Kind::send_recv;
    if (thread == "copy") return Kind::copy;
    if (thread == "host") return Kind::host;
    if (is_any_of(thread, {"tensor", "context", "data"}) || event.category == "gradients")
        return kind_of_collective(event.name);
    return Kind::compute;
}

// Names, each once, by number.
class Numbers {
public:
    std::uint32_t of(const std::string& name) {
        return known_.try_emplace(name, static_cast<std::uint32_t>(known_.size())).first->second;
    }
    std::size_t size() const { return known_.size(); }
    std::vector<std::string> names() const {
        std::vector<std::string> all(known_.size());
        for (const auto& [name, number] : known_) all[number] = name;
        return all;
    }

private:
    std::unordered_map<std::string, std::uint32_t> known_;
};

struct OwnArrow {
    Arrow arrow;
    std::string process, thread;
};

// One file.
class FileReading {
public:
    FileReading(const std::string& path, Numbers& names) : path_(path), names_(names) {}

    /// Its ranks: one, or of a trace of our own several.
    std::vector<RankRecord> run() {
        record_.file = path_;
        facts_ = costdb::read_trace_events(path_, [&](const TraceEvent& event) { take_gpu(event); });
        if (!record_.works.empty()) {
            finish(record_, threads_);
        } else {
            record_.calls.clear();
            threads_ = {};
            costdb::read_trace_events(path_, [&](const TraceEvent& event) { take_other(event); });
            if (!own_.empty()) return own_ranks();
            keep_outermost();
            finish(record_, threads_);
        }
        if (record_.works.empty())
            fail(ErrorKind::input, "{}: holds no kernel and no operator: nothing can be replayed", path_);
        std::vector<RankRecord> one;
        one.push_back(std::move(record_));
        return one;
    }

    const costdb::TraceFacts& facts() const { return facts_; }
    bool is_own() const { return !own_.empty(); }
    std::vector<Arrow> arrows() const {
        std::vector<Arrow> known;
        for (const OwnArrow& one : arrows_) known.push_back(one.arrow);
        return known;
    }

private:
    std::int64_t start_of(const TraceEvent& event) const {
        const std::int64_t start = costdb::time_of(path_, event, "ts", event.start);
        if (start < -latest_ns || start > latest_ns)
            fail(ErrorKind::input, "{}: event {} '{}': ts: is '{}', must be within 63 years of 1970", path_,
                 event.number, event.name, event.start);
        return start;
    }
    std::int64_t duration_of(const TraceEvent& event) const {
        const std::int64_t duration = costdb::time_of(path_, event, "dur", event.duration);
        if (duration > longest_event_ns)
            fail(ErrorKind::input, "{}: event {} '{}': dur: is '{}', must be 0 to {}", path_, event.number, event.name,
                 event.duration, longest_event_ns / 1000);
        return duration;
    }

    static std::int64_t number_of(std::string_view digits) {
        return integer_in(digits, 0, largest_number).value_or(-1);
    }

    std::uint32_t stream_of(const TraceEvent& event, const std::string& stream) {
        return threads_.of("stream " + (event.device.empty() ? event.process : event.device) + " " + stream);
    }

    void take_gpu(const TraceEvent& event) {
        if (event.phase == "M") label(event);
        if (event.phase != "X") return;
        if (is_kernel(event) || is_copy(event))
            add_work(event);
        else if (is_call(event))
            record_.calls.push_back({start_of(event), duration_of(event),
                                     threads_.of("thread " + event.process + " " + event.thread),
                                     call_kind_of(event.name), number_of(event.correlation)});
        else if (event.category == "cuda_sync")
            add_sync(event);
    }

    void add_work(const TraceEvent& event) {
        Work work{start_of(event),
                  duration_of(event),
                  stream_of(event, event.stream.empty() ? event.thread : event.stream),
                  names_.of(event.name),
                  is_copy(event) ? Kind::copy : kind_of_kernel(event.name),
                  number_of(event.correlation)};
        if (is_communication(work.kind)) {
            if (!event.collective.empty()) work.kind = kind_of_collective(event.collective);
            add_collective(event, work);
        }
        record_.works.push_back(work);
    }

    void add_collective(const TraceEvent& event, Work& work) {
        work.collective = static_cast<std::uint32_t>(record_.collectives.size());
        Collective one;
        if (!event.group_name.empty() || !event.group_ranks.empty())
            one.group = event.group_name + " of " + event.group_ranks;
        one.ranks = ranks_in(event.group_ranks);
        one.sequence = integer_in(event.sequence, 0, largest_number);
        if (!event.in_elements.empty()) one.message = event.in_elements + " elements " + event.dtype;
        one.source = integer_in(event.source, 0, most_ranks);
        one.target = integer_in(event.target, 0, most_ranks);
        record_.collectives.push_back(std::move(one));
    }

    void add_sync(const TraceEvent& event) {
        const auto call = number_of(event.correlation);
        if (call < 0) return;
        Sync sync;
        if (number_of(event.stream) >= 0) sync.stream = stream_of(event, event.stream);
        if (number_of(event.awaited_stream) >= 0) sync.awaited = stream_of(event, event.awaited_stream);
        sync.recorded_by = number_of(event.awaited_call);
        record_.syncs[call] = sync;
    }

    void label(const TraceEvent& event) {
        if (event.name == "thread_name") labels_[event.process + " " + event.thread] = event.label;
        if (event.name != "process_name") return;
        if (const auto rank = rank_of_process(event.label)) own_.try_emplace(event.process, *rank);
    }

    void take_other(const TraceEvent& event) {
        if (!own_.empty())
            take_own(event);
        else if (event.phase == "X" && is_any_of(event.category, {"cpu_op", "user_annotation"}) &&
                 !event.name.starts_with("ProfilerStep"))
            add_cpu(event);
    }

    void add_cpu(const TraceEvent& event) {
        const bool is_collective = event.name.starts_with("gloo:") || event.name.starts_with("nccl:");
        const Kind kind = is_collective ? kind_of_collective(event.name) : Kind::compute;
        if (kind == Kind::send_recv) return;  // from when it was asked for on, whatever the thread does
        Work work{start_of(event), duration_of(event),
                  threads_.of(event.process + " " + event.thread + (is_collective ? " collectives" : "")),
                  names_.of(event.name), kind};
        if (is_collective) add_collective(event, work);
        if (event.name.starts_with("PP:")) passes_.insert(work.name);
        record_.works.push_back(work);
    }

    void take_own(const TraceEvent& event) {
        const auto owner = own_.find(event.process);
        if (owner == own_.end()) return;
        const bool is_arrow = event.category == "tensor" && is_any_of(event.phase, {"s", "t", "f"});
        if (is_arrow) arrows_.push_back({{event.arrow, 0, 0, start_of(event)}, event.process, event.thread});
        if (event.phase != "X") return;
        RankRecord& record = own_records_[owner->second];
        record.works.push_back({start_of(event), duration_of(event), own_threads_[owner->second].of(event.thread),
                                names_.of(event.name),
                                kind_of_own(labels_[event.process + " " + event.thread], event)});
    }

    std::vector<RankRecord> own_ranks() {
        std::vector<RankRecord> ranks;
        std::map<std::int64_t, std::size_t> place;
        for (auto& [rank, record] : own_records_) {
            record.file = path_;
            record.rank = rank;
            place.try_emplace(rank, ranks.size());
            finish(record, own_threads_[rank]);
            ranks.push_back(std::move(record));
        }
        if (ranks.empty()) fail(ErrorKind::input, "{}: holds no event of a rank: nothing can be replayed", path_);
        for (OwnArrow& one : arrows_) {
            const std::int64_t rank = own_.at(one.process);
            if (!place.contains(rank))
                fail(ErrorKind::input, "{}: an arrow leads to rank {}, which is empty", path_, rank);
            one.arrow.rank = place.at(rank);
            one.arrow.thread = own_threads_[rank].of(one.thread);
        }
        return ranks;
    }

    // Of operators inside each other on one thread the outermost.
    void keep_outermost() {
        std::stable_sort(record_.works.begin(), record_.works.end(), [](const Work& a, const Work& b) {
            return std::tuple(a.thread, a.start_ns, -a.duration_ns) < std::tuple(b.thread, b.start_ns, -b.duration_ns);
        });
        std::vector<Work> outer;
        bool is_first = false;  // operator inside a pass
        for (const Work& work : record_.works) {
            if (outer.empty() || outer.back().thread != work.thread || outer.back().end_ns() <= work.start_ns ||
                is_communication(work.kind)) {
                outer.push_back(work);
                is_first = passes_.contains(work.name);
            } else if (is_first) {
                outer.back().duration_ns = outer.back().end_ns() - work.start_ns;
                outer.back().start_ns = work.start_ns;
                is_first = false;
            }
        }
        record_.works = std::move(outer);
    }

    static void finish(RankRecord& record, const Numbers& threads) {
        record.threads = threads.size();
        std::stable_sort(record.works.begin(), record.works.end(), [](const Work& a, const Work& b) {
            return std::tuple(a.thread, a.start_ns) < std::tuple(b.thread, b.start_ns);
        });
        std::stable_sort(record.calls.begin(), record.calls.end(),
                         [](const Call& a, const Call& b) { return a.start_ns < b.start_ns; });
    }

    std::string path_;
    Numbers& names_;
    Numbers threads_;
    RankRecord record_;
    costdb::TraceFacts facts_;
    std::set<std::uint32_t> passes_;           // names
    std::map<std::string, std::int64_t> own_;  // rank by process
    std::map<std::string, std::string> labels_;
    std::map<std::int64_t, RankRecord> own_records_;
    std::map<std::int64_t, Numbers> own_threads_;
    std::vector<OwnArrow> arrows_;
};

void require_one_size(std::optional<std::int64_t>& world, const costdb::TraceFacts& facts, const RankRecord& record,
                      const Recording& all) {
    const auto size = integer_in(facts.ranks, 1, most_ranks);
    if (!size) return;
    if (world && *world != *size)
        fail(ErrorKind::input, "{}: is of a run of {} ranks, {} of one of {}: give traces of one run", record.file,
             *size, all.ranks.front().file, *world);
    world = size;
}

// By its own clock: sums of times of several clocks then have room.
void require_short(const Recording& all) {
    for (const RankRecord& record : all.ranks)
        if (span_of(record) > longest_step_ns)
            fail(ErrorKind::input, "{}: spans more than 100 hours: allowed is a step, or some", record.file);
}

void require_different_ranks(const Recording& all) {
    for (std::size_t r = 1; r < all.ranks.size(); ++r)
        if (all.ranks[r].rank == all.ranks[r - 1].rank)
            fail(ErrorKind::input, "{}: is of rank {}, as {} is: give one trace of each rank", all.ranks[r].file,
                 all.ranks[r].rank, all.ranks[r - 1].file);
}

void require_all_ranks(const Recording& all) {
    if (!all.world || all.ranks.size() < 2) return;
    std::vector<std::string> missing;
    std::size_t at = 0;
    for (std::int64_t rank = 0; rank < *all.world; ++rank) {
        while (at < all.ranks.size() && all.ranks[at].rank < rank) ++at;
        if (at == all.ranks.size() || all.ranks[at].rank != rank) missing.push_back(std::to_string(rank));
    }
    if (missing.empty()) return;
    const auto count = missing.size();
    if (count > 8) missing.resize(8);
    fail(ErrorKind::input, "--trace: of {} ranks {} missing: {}{}; give the traces of all, or of one alone", *all.world,
         count == 1 ? "one is" : fmt::format("{} are", count), joined(missing, ", "), count > 8 ? ", ..." : "");
}

// The rank that the trace says; where it says none, its place among the files.
std::int64_t rank_of_file(const costdb::TraceFacts& facts, std::size_t place) {
    return integer_in(facts.rank, 0, most_ranks).value_or(static_cast<std::int64_t>(place));
}

}  // namespace

std::int64_t span_of(const RankRecord& record) {
    std::int64_t begin = largest_number, end = -largest_number;
    const auto take = [&](const auto& one) {
        begin = std::min(begin, one.start_ns);
        end = std::max(end, one.end_ns());
    };
    std::for_each(record.works.begin(), record.works.end(), take);
    std::for_each(record.calls.begin(), record.calls.end(), take);
    return begin > end ? 0 : end - begin;
}

Recording read_recording(std::span<const std::string> files) {
    Recording all;
    Numbers names;
    for (std::size_t f = 0; f < files.size(); ++f) {
        FileReading reading(files[f], names);
        auto ranks = reading.run();
        if (reading.is_own()) {
            if (files.size() > 1)
                fail(ErrorKind::input, "{}: has all ranks of an emulated step: it goes alone", files[f]);
            all.is_emulated = true;
            all.arrows = reading.arrows();
            all.ranks = std::move(ranks);
        } else {
            ranks.front().rank = rank_of_file(reading.facts(), f);
            require_one_size(all.world, reading.facts(), ranks.front(), all);
            all.ranks.push_back(std::move(ranks.front()));
        }
    }
    std::stable_sort(all.ranks.begin(), all.ranks.end(),
                     [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
    require_short(all);
    require_different_ranks(all);
    require_all_ranks(all);
    all.names = names.names();
    return all;
}

}  // namespace pipeweaver::traces
