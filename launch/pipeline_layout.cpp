// Megatron-LM's --pipeline-model-parallel-layout, both ways, and the rules under which Megatron Core constructs it.
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::launch {

namespace {

constexpr std::string_view layout_flag = "--pipeline-model-parallel-layout";
constexpr std::size_t most_letters = 100'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string letters(std::int64_t layers) {
    constexpr std::int64_t few = 3;
    if (layers > few) return fmt::format("t*{}", layers);
    return std::string(static_cast<std::size_t>(layers), 't');
}

// A text multiplied out, up to the first thing that is wrong with it.
class Multiplied {
public:
    // "(...)*n" first, then "x*n", as Megatron Core does.
    explicit Multiplied(std::string text) : text_(std::move(text)) {
        multiply_groups();
        multiply_letters();
    }

    const std::string& text() const { return text_; }
    const std::string& why_not() const { return why_not_; }  // empty: nothing is wrong

private:
    // "*n": n and the place behind it.
    struct Times {
        std::size_t count = 0, end = 0;
    };

    // None: there is no such thing at `at`, or its number is too large.
    std::optional<Times> times_at(std::size_t at) {
        if (at + 1 >= text_.size() || text_[at] != '*' || !is_digit(text_[at + 1])) return std::nullopt;
        Times times{0, at + 1};
        for (; times.end < text_.size() && is_digit(text_[times.end]); ++times.end) {
            times.count = times.count * 10 + static_cast<std::size_t>(text_[times.end] - '0');
            if (times.count <= most_letters) continue;
            refuse(fmt::format("'{}' has a number above {}", text_.substr(at, times.end - at + 1), most_letters));
            return std::nullopt;
        }
        return times;
    }

    // What is in parentheses ends at the first that closes: they do not nest.
    void multiply_groups() {
        std::string out;
        for (std::size_t at = 0; at < text_.size() && why_not_.empty(); ++at) {
            const std::size_t close = text_[at] == '(' ? text_.find(')', at) : std::string::npos;
            const auto times = close == std::string::npos || close == at + 1 ? std::nullopt : times_at(close + 1);
            if (times) {
                append(out, text_.substr(at + 1, close - at - 1), times->count);
                at = times->end - 1;
            } else {
                append(out, text_.substr(at, 1), 1);
            }
        }
        text_ = std::move(out);
    }

    void multiply_letters() {
        std::string out;
        for (std::size_t at = 0; at < text_.size() && why_not_.empty(); ++at) {
            const auto times = times_at(at + 1);
            append(out, text_.substr(at, 1), times ? times->count : 1);
            if (times) at = times->end - 1;
        }
        text_ = std::move(out);
    }

    void append(std::string& out, const std::string& part, std::size_t times) {
        if (out.size() + part.size() * times > most_letters)
            return refuse(fmt::format("has more than {} letters, multiplied out", most_letters));
        for (std::size_t i = 0; i < times; ++i) out += part;
    }

    void refuse(const std::string& why) {
        if (why_not_.empty()) why_not_ = fmt::format("{}: {}", layout_flag, why);
    }

    std::string text_, why_not_;
};

std::int64_t count(const LayoutStages& stages, char letter) {
    return std::accumulate(stages.begin(), stages.end(), std::int64_t{0},
                           [letter](std::int64_t sum, const std::string& stage) {
                               return sum + std::count(stage.begin(), stage.end(), letter);
                           });
}

std::string joined(const LayoutStages& stages) { return std::accumulate(stages.begin(), stages.end(), std::string()); }

// Of multi-token prediction.
std::optional<std::string> why_no_mtp(const LayoutStages& stages, const LayoutFor& wanted) {
    if (count(stages, 'm') != wanted.mtp_layers)
        return fmt::format("has {} m, but --mtp-num-layers is {}", count(stages, 'm'), wanted.mtp_layers);
    const std::string all = joined(stages);
    const auto ranks = static_cast<std::size_t>(wanted.ranks);
    const std::size_t first = all.find('m');
    if (first != std::string::npos && all.find('t', first) != std::string::npos)
        return "has t behind m; decoder layers come first";
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const auto here = std::count(stages[s].begin(), stages[s].end(), 'm');
        if (here == 0) continue;
        if (s + ranks < stages.size())
            return fmt::format("stage {} has m; they belong to the last chunk of their rank", s);
        if (here != wanted.mtp_layers)
            return fmt::format("stage {} has {} of {} m; all belong to one stage", s, here, wanted.mtp_layers);
    }
    return std::nullopt;
}

}  // namespace

Spelled spell_pipeline_layout(const Split& split) {
    if (auto why = why_not_usual(split)) return {{}, std::move(*why)};
    std::string text = "E";
    const std::size_t last = split.layers.size() - 1;
    for (std::size_t s = 0; s < last;) {
        std::size_t end = s + 1;
        while (end < last && split.layers[end] == split.layers[s]) ++end;
        // The first stage has the embedding in front of its layers.
        if (s == 0) end = 1;
        const std::string stage = letters(split.layers[s]) + "|";
        text += end - s == 1 ? stage : fmt::format("({})*{}", stage, end - s);
        s = end;
    }
    return {{{std::string(layout_flag), text + letters(split.layers[last]) + "L"}}, {}};
}

ReadStages parse_pipeline_layout(const std::string& text) {
    std::string plain = text;
    std::erase(plain, ',');
    const Multiplied multiplied(std::move(plain));
    if (!multiplied.why_not().empty()) return {{}, multiplied.why_not()};
    LayoutStages stages(1);
    for (const char c : multiplied.text()) {
        if (c == '|')
            stages.emplace_back();
        else if (c == 'E' || c == 't' || c == 'm' || c == 'L')
            stages.back() += c;
        else
            return {{},
                    fmt::format("{}: stage {} of '{}' has '{}' behind '{}', allowed are E (embedding), t (decoder "
                                "layer), m (multi-token prediction), L (loss), '|', ',', x*n and (...)*n, which does "
                                "not nest",
                                layout_flag, stages.size() - 1, text, c, stages.back())};
    }
    return {std::move(stages), {}};
}

std::optional<std::string> why_not_constructed(const LayoutStages& stages, const LayoutFor& wanted) {
    const auto count_of_stages = static_cast<std::int64_t>(stages.size());
    if (count_of_stages % wanted.ranks != 0)
        return fmt::format("has {} stages, no multiple of --pipeline-model-parallel-size {}", count_of_stages,
                           wanted.ranks);
    const std::string all = joined(stages);
    if (all.empty() || all.front() != 'E') return "begins with no E: the embedding comes first";
    if (all.back() != 'L') return "ends with no L: the loss comes last";
    if (count(stages, 'E') != 1) return fmt::format("has {} E, allowed is one", count(stages, 'E'));
    if (count(stages, 'L') != 1) return fmt::format("has {} L, allowed is one", count(stages, 'L'));
    if (count(stages, 't') != wanted.depth)
        return fmt::format("has {} decoder layers (t), but --num-layers is {}", count(stages, 't'), wanted.depth);
    return why_no_mtp(stages, wanted);
}

Split split_of(const LayoutStages& stages, std::int64_t ranks) {
    Split split{.ranks = ranks};
    split.layers.reserve(stages.size());
    for (const std::string& stage : stages) split.layers.push_back(std::count(stage.begin(), stage.end(), 't'));
    return split;
}

}  // namespace pipeweaver::launch
