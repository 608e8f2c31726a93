#include "pipeweaver/rl/lengths.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipeweaver::rl {

namespace {

// "8192" or "8k".
std::optional<std::int64_t> tokens_of(std::string_view text) {
    const bool thousands = text.ends_with('k') || text.ends_with('K');
    if (thousands) text.remove_suffix(1);
    const auto number = integer_in(text, 1, thousands ? longest_answer / 1024 : longest_answer);
    return number && thousands ? std::optional(*number * 1024) : number;
}

Lengths quantiles_of(const std::string& text) {
    Lengths lengths;
    for (const std::string& part : parts_of(text)) {
        const auto colon = part.find(':');
        const auto percent = number_in(std::string_view(part).substr(0, colon), 0, 100);
        const auto tokens =
            colon == std::string::npos ? std::nullopt : tokens_of(std::string_view(part).substr(colon + 1));
        if (!percent || !tokens)
            fail(ErrorKind::input, "--lengths: {}", must_be(part, "PERCENT:TOKENS, like 50:2k, up to 1000000 tokens"));
        if (!lengths.empty() && (*percent <= lengths.back().percent || *tokens < lengths.back().tokens))
            fail(ErrorKind::input, "--lengths: {}", must_be(part, "above the one before it, in percent and tokens"));
        lengths.push_back({*percent, *tokens});
    }
    if (lengths.size() < 2 || lengths.front().percent != 0 || lengths.back().percent != 100)
        fail(ErrorKind::input, "--lengths: {}", must_be(text, "from 0 to 100 percent, like 0:256,50:2k,100:8k"));
    return lengths;
}

// "mean:3k,longest:8k".
Lengths of_mean(const std::string& text) {
    const auto parts = parts_of(text);
    const auto after = [](std::string_view part, std::string_view name) {
        return part.starts_with(name) ? tokens_of(part.substr(name.size())) : std::nullopt;
    };
    const auto mean = after(parts[0], "mean:");
    const auto longest = parts.size() == 2 ? after(parts[1], "longest:") : std::nullopt;
    if (!mean || !longest || *mean > *longest)
        fail(ErrorKind::input, "--lengths: {}", must_be(text, "mean:TOKENS,longest:TOKENS, the mean no more"));
    return lengths_with(static_cast<double>(*mean), *longest);
}

Lengths read_lengths(const std::string& path) {
    constexpr std::size_t most_bytes = std::size_t{64} << 20;
    const std::string text = read_file(path, most_bytes);
    std::vector<std::int64_t> all;
    std::size_t line_number = 0;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        std::string_view line = std::string_view(text).substr(from, end - from);
        if (line.ends_with('\r')) line.remove_suffix(1);
        from = end + 1;
        ++line_number;
        if (line.empty()) continue;
        const auto tokens = tokens_of(line);
        if (!tokens)
            fail(ErrorKind::input, "{}:{}: {}", path, line_number, must_be(line, a_whole_number(1, longest_answer)));
        all.push_back(*tokens);
    }
    if (all.empty()) fail(ErrorKind::input, "{}: has no line, needed are the tokens of an answer in each", path);
    std::sort(all.begin(), all.end());
    // The i-th of n is the middle of its share of all, and flat at both ends.
    Lengths lengths{{0, all.front()}};
    for (std::size_t i = 0; i < all.size(); ++i)
        lengths.push_back({100 * (static_cast<double>(i) + 0.5) / static_cast<double>(all.size()), all[i]});
    lengths.push_back({100, all.back()});
    return lengths;
}

}  // namespace

Lengths lengths_of(const std::string& text) {
    const bool is_file = text.find('/') != std::string::npos || text.find(':') == std::string::npos;
    if (is_file) return read_lengths(text);
    return text.starts_with("mean:") ? of_mean(text) : quantiles_of(text);
}

Lengths lengths_with(double mean, std::int64_t longest) {
    const double power = static_cast<double>(longest) / mean - 1;
    Lengths lengths;
    constexpr int lines = 1000;
    for (int i = 0; i <= lines; ++i) {
        const double left = 1 - static_cast<double>(i) / lines;
        const double below = 1 - left * left;  // the denser the nearer to the longest, where tokens rise most
        const auto tokens = std::llround(static_cast<double>(longest) * std::pow(below, power));
        lengths.push_back({100 * below, std::max<std::int64_t>(1, tokens)});
    }
    return lengths;
}

std::vector<std::int64_t> drawn(const Lengths& lengths, std::int64_t answers, std::uint64_t seed) {
    PIPEWEAVER_ASSERT(answers >= 1 && answers <= most_answers && lengths.size() >= 2);
    std::vector<std::int64_t> tokens;
    std::size_t above = 1;
    for (std::int64_t i = 0; i < answers; ++i) {
        const double percent = 100 * (static_cast<double>(i) + 0.5) / static_cast<double>(answers);
        while (above + 1 < lengths.size() && lengths[above].percent < percent) ++above;
        const Quantile &low = lengths[above - 1], &high = lengths[above];
        const double along = (percent - low.percent) / (high.percent - low.percent);
        tokens.push_back(low.tokens + std::llround(along * static_cast<double>(high.tokens - low.tokens)));
    }
    Random random(seed);
    for (std::size_t left = tokens.size(); left > 1; --left)
        std::swap(tokens[left - 1], tokens[static_cast<std::size_t>(random.below(left))]);
    return tokens;
}

}  // namespace pipeweaver::rl
