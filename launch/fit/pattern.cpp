// Patterns of layers as Megatron-LM's arguments have them: a number, or a sum of lists.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/launch/model.hpp"

#include <cctype>

namespace pipeweaver::launch {

namespace {

constexpr std::size_t most_layers = 100'000;

class Pattern {
public:
    Pattern(const std::string& text, const std::string& name) : text_(text), name_(name) {}

    std::vector<bool> read() {
        auto all = added();
        if (peek() != '\0') bad();
        return all;
    }

private:
    [[noreturn]] void bad() const {
        fail(ErrorKind::input, "{}: {}", name_, must_be(text_, "a number, or lists like [0]*3+[1]*58"));
    }

    char peek() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    std::size_t number() {
        std::size_t value = 0;
        if (std::isdigit(static_cast<unsigned char>(peek())) == 0) bad();
        while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
            value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
            if (value > most_layers) bad();
        }
        return value;
    }

    std::vector<bool> added() {
        auto all = repeated();
        while (peek() == '+') {
            ++at_;
            const auto more = repeated();
            all.insert(all.end(), more.begin(), more.end());
        }
        return all;
    }

    std::vector<bool> repeated() {
        auto one = list();
        while (peek() == '*') {
            ++at_;
            const std::size_t times = number();
            std::vector<bool> all;
            if (one.size() * times > most_layers) bad();
            for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), one.begin(), one.end());
            one = std::move(all);
        }
        return one;
    }

    std::vector<bool> list() {
        const char open = peek();
        if (open != '(' && open != '[') bad();
        ++at_;
        std::vector<bool> all;
        if (open == '(') {
            all = added();
        } else {
            while (peek() != ']') {
                const std::size_t value = number();
                if (value > 1) bad();
                all.push_back(value == 1);
                if (peek() == ',') ++at_;
            }
        }
        if (peek() != (open == '(' ? ')' : ']')) bad();
        ++at_;
        return all;
    }

    const std::string& text_;
    const std::string& name_;
    std::size_t at_ = 0;
};

}  // namespace

std::vector<bool> layer_pattern(const std::string& text, std::int64_t layers, const std::string& name) {
    std::vector<bool> pattern;
    const bool is_number =
        !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 7;
    if (is_number) {
        const std::int64_t every = std::stoll(text);
        if (every == 0) fail(ErrorKind::input, "{}: {}", name, must_be(0, "1 or more"));
        pattern.reserve(static_cast<std::size_t>(layers));
        for (std::int64_t i = 0; i < layers; ++i) pattern.push_back(i % every == 0);
        return pattern;
    }
    pattern = Pattern(text, name).read();
    if (static_cast<std::int64_t>(pattern.size()) != layers)
        fail(ErrorKind::input, "{}: is of {} layers, the model has {}", name, pattern.size(), layers);
    return pattern;
}

}  // namespace pipeweaver::launch
