#include "launch/read/shell/arithmetic.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>

namespace pipeweaver::launch {

namespace {

bool may_be_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Sum {
    const std::string& text;
    const std::function<std::string(const std::string&)>& value_of;
    std::size_t at = 0;
    bool right = true;
    int depth = 0;

    static constexpr std::int64_t most = 1'000'000'000'000;
    static constexpr int deepest = 100;

    char peek() {
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
        return at < text.size() ? text[at] : '\0';
    }

    bool takes(std::string_view operation) {
        peek();
        const bool is_next = std::string_view(text).substr(at).starts_with(operation);
        if (is_next) at += operation.size();
        return is_next;
    }

    // "a ? b : c"
    std::int64_t whole() {
        const std::int64_t value = either();
        if (!right || !takes("?")) return value;
        right = ++depth < deepest;
        const std::int64_t then = right ? whole() : 0;
        right = right && takes(":");
        const std::int64_t otherwise = right ? whole() : 0;
        --depth;
        return value != 0 ? then : otherwise;
    }

    std::int64_t either() {
        std::int64_t value = both();
        while (right && takes("||")) {
            const std::int64_t other = both();
            value = value != 0 || other != 0 ? 1 : 0;
        }
        return value;
    }

    std::int64_t both() {
        std::int64_t value = compared();
        while (right && takes("&&")) {
            const std::int64_t other = compared();
            value = value != 0 && other != 0 ? 1 : 0;
        }
        return value;
    }

    // Not "<<" and ">>", which shift.
    std::int64_t compared() {
        const std::int64_t value = added();
        if (!right) return 0;
        if (takes("==")) return value == added() ? 1 : 0;
        if (takes("!=")) return value != added() ? 1 : 0;
        if (takes("<=")) return value <= added() ? 1 : 0;
        if (takes(">=")) return value >= added() ? 1 : 0;
        if (takes("<")) return value < added() ? 1 : 0;
        if (takes(">")) return value > added() ? 1 : 0;
        return value;
    }

    std::int64_t added() {
        std::int64_t value = multiplied();
        while (right && (peek() == '+' || peek() == '-')) {
            const bool minus = text[at++] == '-';
            const std::int64_t other = multiplied();
            right = right && std::abs(value) < most && std::abs(other) < most;
            if (!right) return 0;
            value += minus ? -other : other;
        }
        return value;
    }

    std::int64_t multiplied() {
        std::int64_t value = one();
        while (right && (peek() == '*' || peek() == '/' || peek() == '%')) {
            const char by = text[at++];
            const std::int64_t other = one();
            right = right && std::abs(value) < most && std::abs(other) < most && (by == '*' || other != 0) &&
                    !(by == '*' && other != 0 && std::abs(value) > most / std::abs(other));
            if (!right) return 0;
            value = by == '*' ? value * other : by == '/' ? value / other : value % other;
        }
        return value;
    }

    std::int64_t one() {
        if (peek() == '!') {
            ++at;
            right = ++depth < deepest;
            const std::int64_t value = right ? one() : 0;
            --depth;
            return value == 0 ? 1 : 0;
        }
        if (peek() == '(') {
            ++at;
            ++depth;
            right = right && depth < deepest;
            const std::int64_t value = right ? whole() : 0;
            right = right && peek() == ')';
            ++at;
            --depth;
            return value;
        }
        std::string word;
        const std::size_t begin = at;
        while (peek() == '$' || peek() == '{' || peek() == '}') ++at;
        const bool is_number = at == begin && std::isdigit(static_cast<unsigned char>(peek())) != 0;  // "$1" is none
        while (at < text.size() && may_be_in_name(text[at])) word += text[at++];
        while (at < text.size() && text[at] == '}') ++at;
        if (!is_number) word = value_of(word);
        std::int64_t value = 0;
        const auto [after, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        right = right && error == std::errc{} && after == word.data() + word.size() && !word.empty();
        right = right && value > std::numeric_limits<std::int64_t>::min();  // which has no absolute value
        return value;
    }
};

}  // namespace

std::optional<std::int64_t> worked_out(const std::string& text,
                                       const std::function<std::string(const std::string&)>& value_of) {
    Sum sum{text, value_of};
    const std::int64_t value = sum.whole();
    return sum.right && sum.at >= text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace pipeweaver::launch
