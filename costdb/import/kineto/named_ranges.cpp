#include "pipeweaver/costdb/named_ranges.hpp"

#include "costdb/import/decimal_time.hpp"
#include "pipeweaver/costdb/trace_events.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

namespace pipeweaver::costdb {

namespace {

// A range as the trace has it.
struct Found {
    NamedRange range;
    std::string process, thread, external_id;
    bool on_gpu = false;
    std::optional<std::int64_t> first_work_ns{};
};

bool is_range(const TraceEvent& event) {
    return event.phase == "X" && (event.category == "user_annotation" || event.category == "gpu_user_annotation");
}

std::vector<Found> found_ranges(const std::filesystem::path& path, std::string_view prefix, NamedRanges& facts) {
    std::vector<Found> all;
    const auto read = read_trace_events(path, [&](const TraceEvent& event) {
        if (!is_range(event) || !event.name.starts_with(prefix)) return;
        const std::int64_t start = time_of(path, event, "ts", event.start);
        const std::int64_t end = start + time_of(path, event, "dur", event.duration);
        all.push_back({{event.name, start, end},
                       event.process,
                       event.thread,
                       event.external_id,
                       event.category == "gpu_user_annotation"});
    });
    std::int64_t rank = 0;
    const char* const end = read.rank.data() + read.rank.size();
    if (!read.rank.empty() && std::from_chars(read.rank.data(), end, rank).ptr == end) facts.rank = rank;
    return all;
}

// Of ranges of one launch on several streams the longest.
std::vector<NamedRange> on_gpu(const std::vector<Found>& all) {
    std::map<std::pair<std::string, std::string>, NamedRange> longest;
    std::vector<NamedRange> ranges;
    for (const Found& one : all) {
        if (!one.on_gpu) continue;
        if (one.external_id.empty()) {
            ranges.push_back(one.range);
            continue;
        }
        auto [known, added] = longest.try_emplace({one.range.name, one.external_id}, one.range);
        NamedRange& so_far = known->second;
        if (!added && one.range.end_ns - one.range.start_ns > so_far.end_ns - so_far.start_ns) so_far = one.range;
    }
    for (auto& [key, range] : longest) ranges.push_back(std::move(range));
    return ranges;
}

using ByThread = std::map<std::pair<std::string, std::string>, std::vector<Found*>>;

// The range of the thread that holds a moment; null: none.
Found* holding(const ByThread& threads, const TraceEvent& event, std::int64_t at) {
    const auto thread = threads.find({event.process, event.thread});
    if (thread == threads.end()) return nullptr;
    const auto after = std::upper_bound(thread->second.begin(), thread->second.end(), at,
                                        [](std::int64_t time, const Found* one) { return time < one->range.start_ns; });
    if (after == thread->second.begin()) return nullptr;
    Found* const one = *(after - 1);
    return at < one->range.end_ns ? one : nullptr;
}

void find_first_work(const std::filesystem::path& path, std::vector<Found>& all) {
    ByThread threads;
    for (Found& one : all) threads[{one.process, one.thread}].push_back(&one);
    for (auto& [thread, ranges] : threads)
        std::sort(ranges.begin(), ranges.end(),
                  [](const Found* a, const Found* b) { return a->range.start_ns < b->range.start_ns; });
    read_trace_events(path, [&](const TraceEvent& event) {
        if (event.phase != "X" || event.category != "cpu_op") return;
        const auto at = nanoseconds(event.start);
        if (!at) return;
        Found* const one = holding(threads, event, *at);
        if (one != nullptr && (!one->first_work_ns || *at < *one->first_work_ns)) one->first_work_ns = *at;
    });
}

}  // namespace

NamedRanges read_named_ranges(const std::filesystem::path& path, std::string_view prefix) {
    NamedRanges answer;
    auto all = found_ranges(path, prefix, answer);
    answer.on_gpu = std::any_of(all.begin(), all.end(), [](const Found& one) { return one.on_gpu; });
    if (answer.on_gpu) {
        answer.ranges = on_gpu(all);
    } else {
        find_first_work(path, all);
        answer.ranges.reserve(all.size());
        for (Found& one : all) {
            if (one.first_work_ns) one.range.start_ns = *one.first_work_ns;
            answer.ranges.push_back(std::move(one.range));
        }
    }
    std::sort(answer.ranges.begin(), answer.ranges.end(), [](const NamedRange& a, const NamedRange& b) {
        return std::tie(a.start_ns, a.end_ns, a.name) < std::tie(b.start_ns, b.end_ns, b.name);
    });
    return answer;
}

}  // namespace pipeweaver::costdb
