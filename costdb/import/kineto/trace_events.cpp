#include "pipeweaver/costdb/trace_events.hpp"

#include "costdb/import/decimal_time.hpp"
#include "costdb/import/kineto/kineto_stream.hpp"
#include "pipeweaver/base/error.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <string_view>

namespace pipeweaver::costdb {

namespace {

constexpr int deepest = 64;
constexpr std::size_t most_inputs = 64;  // of an operator; the rest is of no interest

/// Which list of an event's "args" is being read.
enum class List : std::uint8_t { none, dims, types, concrete };

/// Turns RapidJSON's calls into events. Depth counts the objects and arrays around the current place.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
public:
    Handler(TraceFacts& facts, const std::function<void(const TraceEvent&)>& take) : facts_(facts), take_(take) {}

    bool StartObject() {
        ++depth_;
        if (in_events_ && depth_ == events_depth_ + 1) begin_event();
        return depth_ <= deepest;
    }
    bool EndObject(rapidjson::SizeType) {
        if (in_events_ && depth_ == events_depth_ + 1) take_(event_);
        --depth_;
        return true;
    }
    bool StartArray() {
        ++depth_;
        if (depth_ == 1 || (depth_ == 2 && top_key_ == "traceEvents")) {
            in_events_ = has_events_ = true;
            events_depth_ = depth_;
        } else if (in_list(List::dims) && depth_ == list_depth() + 1 && event_.dims.size() < most_inputs) {
            event_.dims.emplace_back();
        }
        return depth_ <= deepest;
    }
    bool EndArray(rapidjson::SizeType) {
        if (in_events_ && depth_ == events_depth_) in_events_ = false;
        --depth_;
        return true;
    }

    bool Key(const char* text, rapidjson::SizeType length, bool) {
        const std::string_view key(text, length);
        if (depth_ == 1) top_key_ = key;
        if (!in_events_ && (depth_ == 2 || depth_ == 3)) key_ = key;
        target_ = nullptr;
        list_ = List::none;
        if (!in_events_) return true;
        if (depth_ == events_depth_ + 1) {
            in_args_ = key == "args";
            target_ = field(key);
        } else if (depth_ == events_depth_ + 2 && in_args_) {
            target_ = argument(key);
            list_ = list_named(key);
        }
        return true;
    }

    bool String(const char* text, rapidjson::SizeType length, bool) {
        value({text, length});
        return true;
    }
    bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
        const std::string_view digits(text, length);
        if (in_list(List::dims) && depth_ == list_depth() + 1 && !event_.dims.empty()) {
            std::int64_t size = 0;
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
            event_.dims.back().push_back(error == std::errc{} && end == digits.data() + digits.size() ? size : -1);
        } else {
            value(digits);
        }
        return true;
    }
    bool Default() { return true; }

    bool has_events() const { return has_events_; }

private:
    bool in_list(List list) const { return in_events_ && list_ == list; }
    int list_depth() const { return events_depth_ + 3; }  // events, event, args, list

    void begin_event() {
        const auto number = event_.number + 1;
        event_ = {};
        event_.number = facts_.events = number;
        target_ = nullptr;
        list_ = List::none;
        in_args_ = false;
    }

    void value(std::string_view text) {
        if (!in_events_ && depth_ == 3 && top_key_ == "deviceProperties" && key_ == "name" && facts_.product.empty())
            facts_.product = text;
        if (!in_events_ && depth_ == 2 && top_key_ == "distributedInfo" && key_ == "rank") facts_.rank = text;
        if (!in_events_ && depth_ == 2 && top_key_ == "distributedInfo" && key_ == "world_size") facts_.ranks = text;
        if (target_ != nullptr) *target_ = text;
        if (in_list(List::types) && depth_ == list_depth() && event_.types.size() < most_inputs)
            event_.types.emplace_back(text);
        if (in_list(List::concrete) && depth_ == list_depth() && event_.concrete.size() < most_inputs)
            event_.concrete.emplace_back(text);
    }

    std::string* field(std::string_view key) {
        if (key == "ph") return &event_.phase;
        if (key == "cat") return &event_.category;
        if (key == "name") return &event_.name;
        if (key == "ts") return &event_.start;
        if (key == "dur") return &event_.duration;
        if (key == "pid") return &event_.process;
        if (key == "tid") return &event_.thread;
        if (key == "id") return &event_.arrow;
        return nullptr;
    }

    std::string* argument(std::string_view key) {
        if (key == "External id" || key == "external id") return &event_.external_id;
        if (key == "correlation") return &event_.correlation;
        if (key == "device") return &event_.device;
        if (key == "stream") return &event_.stream;
        if (key == "Collective name") return &event_.collective;
        if (key == "dtype") return &event_.dtype;
        if (key == "In msg nelems") return &event_.in_elements;
        if (key == "Out msg nelems") return &event_.out_elements;
        if (key == "Group size") return &event_.group_size;
        if (key == "Process Group Ranks") return &event_.group_ranks;
        if (key == "In split size") return &event_.in_split;
        if (key == "Out split size") return &event_.out_split;
        if (key == "Process Group Name") return &event_.group_name;
        if (key == "Seq") return &event_.sequence;
        if (key == "Src Rank") return &event_.source;
        if (key == "Dst Rank") return &event_.target;
        if (key == "wait_on_stream") return &event_.awaited_stream;
        if (key == "wait_on_cuda_event_record_corr_id") return &event_.awaited_call;
        if (key == "name") return &event_.label;
        return nullptr;
    }

    static List list_named(std::string_view key) {
        if (key == "Input Dims" || key == "Input dims") return List::dims;
        if (key == "Input type") return List::types;
        if (key == "Concrete Inputs") return List::concrete;
        return List::none;
    }

    TraceFacts& facts_;
    const std::function<void(const TraceEvent&)>& take_;
    TraceEvent event_;
    std::string top_key_, key_;  // where we are outside events
    std::string* target_ = nullptr;
    int depth_ = 0, events_depth_ = 0;
    List list_ = List::none;
    bool in_events_ = false, has_events_ = false, in_args_ = false;
};

}  // namespace

TraceFacts read_trace_events(const std::filesystem::path& path, const std::function<void(const TraceEvent&)>& take) {
    TraceFacts facts;
    TraceStream stream(path);
    if (stream.Peek() == '\0') fail(ErrorKind::input, "{}: is empty", path.string());
    Handler handler(facts, take);
    rapidjson::Reader reader;
    constexpr unsigned flags = rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
    const auto result = reader.Parse<flags>(stream, handler);
    if (result.Code() == rapidjson::kParseErrorTermination)
        fail(ErrorKind::input, "{}: byte {}: is nested deeper than {} levels", path.string(), result.Offset(), deepest);
    if (result.IsError() && stream.Peek() == '\0')
        fail(ErrorKind::input, "{}: is cut short: it ends at byte {}, inside the JSON", path.string(), result.Offset());
    if (result.IsError())
        fail(ErrorKind::input, "{}: byte {}: is no JSON: {}", path.string(), result.Offset(),
             rapidjson::GetParseError_En(result.Code()));
    if (!handler.has_events())
        fail(ErrorKind::input, "{}: is no trace: it has no \"traceEvents\" and is no array of events", path.string());
    facts.bytes = static_cast<std::int64_t>(stream.Tell());
    facts.sha256 = stream.sha256();
    return facts;
}

std::int64_t time_of(const std::filesystem::path& path, const TraceEvent& event, std::string_view key,
                     const std::string& digits) {
    const auto time = nanoseconds(digits);
    if (!time || (key == "dur" && *time < 0))
        fail(ErrorKind::input, "{}: event {} '{}': {}: is '{}', which is no time in microseconds", path.string(),
             event.number, event.name, key, digits);
    return *time;
}

}  // namespace pipeweaver::costdb
