#include "base/yaml.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <vector>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace pipeweaver {

using nlohmann::json;

namespace {

constexpr std::size_t largest_text = std::size_t{1} << 20;
constexpr std::size_t most_values = 100'000;

// A value with its place; what is below it keeps the order of the file.
struct Value {
    json scalar;  // of an object or a list: empty, says which
    int line = 1;
    std::vector<std::string> keys;  // of an object: one for each value below
    std::vector<Value> below;
    std::size_t values = 1;  // with all below
    std::size_t levels = 0;  // of objects and lists
};

std::size_t digits(std::string_view text) {
    const auto other = std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; });
    return static_cast<std::size_t>(other - text.begin());
}

// [-+]? ( \.[0-9]+ | [0-9]+ ( \.[0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_decimal(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::size_t before = digits(text);
    text.remove_prefix(before);
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        const std::size_t after = digits(text);
        if (before + after == 0) return false;
        text.remove_prefix(after);
    } else if (before == 0) {
        return false;
    }
    if (text.empty()) return true;
    if (text[0] != 'e' && text[0] != 'E') return false;
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() && digits(text) == text.size();
}

template <class Number>
std::optional<json> whole(std::string_view text, int base) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return json(value);
}

// 0x1f or 0o17, without sign. One beyond 64 bits is a text, which no reader of numbers takes.
std::optional<json> prefixed(std::string_view text) {
    if (text.size() < 3 || text[0] != '0' || text[2] == '-') return std::nullopt;
    if (text[1] == 'x') return whole<std::uint64_t>(text.substr(2), 16);
    if (text[1] == 'o') return whole<std::uint64_t>(text.substr(2), 8);
    return std::nullopt;
}

bool is_not_finite(std::string_view text) {
    if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return text == ".inf" || text == ".Inf" || text == ".INF";
}

// An unquoted word under the core schema.
json resolved(const std::string& text) {
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    if (const auto number = prefixed(text)) return *number;
    if (!is_decimal(text)) return text;
    const std::string_view unsigned_text = std::string_view(text).substr(text[0] == '+' ? 1 : 0);
    if (const auto number = whole<std::int64_t>(unsigned_text, 10)) return *number;
    if (const auto number = whole<std::uint64_t>(unsigned_text, 10)) return *number;
    double value = 0;
    const auto done = std::from_chars(unsigned_text.data(), unsigned_text.data() + unsigned_text.size(), value);
    return done.ec == std::errc{} ? value : std::nan("");
}

// Builds the tree from the parser's events. yaml-cpp's own tree would accept repeated keys and share aliases.
class Builder : public YAML::EventHandler {
public:
    explicit Builder(const std::string& name) : name_(name) {}

    bool has_root() const { return root_.has_value(); }
    const Value& root() const { return *root_; }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) fail_at(mark, "a second document begins, only one is read");
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { scalar(mark, anchor, nullptr); }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        const bool plain = tag == "?";
        if (!plain && tag != "!") fail_at(mark, fmt::format("the tag '{}' is not read", tag));
        if (plain && text == "<<" && at_key()) fail_at(mark, "merge keys ('<<') are not read");
        json value = plain ? resolved(text) : json(text);
        if ((plain && is_not_finite(text)) || (value.is_number_float() && !std::isfinite(value.get<double>())))
            fail_at(mark, fmt::format("'{}' is no finite number", text));
        scalar(mark, anchor, std::move(value));
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto known = anchored_.find(anchor);
        if (known == anchored_.end()) fail_at(mark, "an alias stands inside its own anchor");
        if (open_.size() + known->second.levels > deepest_nesting) too_deep(mark);
        count(mark, known->second.values);
        Value copy = known->second;
        copy.line = line_of(mark);
        put(mark, std::move(copy));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        begin(mark, tag, anchor, json::array());
    }
    void OnSequenceEnd() override { end(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        begin(mark, tag, anchor, json::object());
    }
    void OnMapEnd() override { end(); }

private:
    struct Open {  // an object or list that is being read
        Value node;
        YAML::anchor_t anchor;
        std::optional<std::string> key;  // read, its value not yet
        std::map<std::string, int> lines_of_keys;
    };

    static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

    [[noreturn]] void fail_at(const YAML::Mark& mark, std::string_view message) const {
        fail(ErrorKind::input, "{}:{}: {}", name_, line_of(mark), message);
    }
    [[noreturn]] void too_deep(const YAML::Mark& mark) const {
        fail_at(mark, fmt::format("is nested deeper than {} levels", deepest_nesting));
    }

    void count(const YAML::Mark& mark, std::size_t more) {
        values_ += more;
        if (values_ > most_values)
            fail_at(mark, fmt::format("has more than {} values, aliases written out", most_values));
    }

    bool at_key() const { return !open_.empty() && open_.back().node.scalar.is_object() && !open_.back().key; }

    void scalar(const YAML::Mark& mark, YAML::anchor_t anchor, json value) {
        count(mark, 1);
        Value node;
        node.scalar = std::move(value);
        node.line = line_of(mark);
        if (anchor != YAML::NullAnchor) anchored_[anchor] = node;
        put(mark, std::move(node));
    }

    void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, json empty) {
        if (tag != "?" && tag != "!" && !tag.empty()) fail_at(mark, fmt::format("the tag '{}' is not read", tag));
        if (at_key()) fail_at(mark, "a key is an object or a list, allowed are texts");
        if (open_.size() >= deepest_nesting) too_deep(mark);
        count(mark, 1);
        Open opened{{}, anchor, std::nullopt, {}};
        opened.node.scalar = std::move(empty);
        opened.node.line = line_of(mark);
        opened.node.levels = 1;
        open_.push_back(std::move(opened));
    }

    void end() {
        Open closed = std::move(open_.back());
        open_.pop_back();
        if (closed.anchor != YAML::NullAnchor) anchored_[closed.anchor] = closed.node;
        YAML::Mark mark;
        mark.line = closed.node.line - 1;
        put(mark, std::move(closed.node));
    }

    // A finished value goes to its place: root, key, member or element.
    void put(const YAML::Mark& mark, Value node) {
        if (open_.empty()) {
            root_ = std::move(node);
            return;
        }
        if (at_key()) return key(mark, node);
        Open& into = open_.back();
        into.node.values += node.values;
        into.node.levels = std::max(into.node.levels, node.levels + 1);
        into.node.below.push_back(std::move(node));
        if (!into.key) return;
        into.node.keys.push_back(*std::move(into.key));
        into.key.reset();
    }

    void key(const YAML::Mark& mark, const Value& node) {
        if (node.scalar.is_structured()) fail_at(mark, "a key is an object or a list, allowed are texts");
        if (!node.scalar.is_string())
            fail_at(mark, fmt::format("the key {} is no text, put it in quotes", node.scalar.dump()));
        Open& into = open_.back();
        into.key = node.scalar.get<std::string>();
        const auto [first, is_new] = into.lines_of_keys.try_emplace(*into.key, line_of(mark));
        if (!is_new)
            fail_at(mark, fmt::format("the key '{}' occurs twice, first on line {}", *into.key, first->second));
    }

    const std::string& name_;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, Value> anchored_;
    std::optional<Value> root_;
    std::size_t values_ = 0;
    int documents_ = 0;
};

json to_json(const Value& node, const std::string& path, LinesOfValues& lines) {
    lines[path] = node.line;
    json value = node.scalar;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
        const std::string& key = node.keys[i];
        value[key] = to_json(node.below[i], path.empty() ? key : fmt::format("{}.{}", path, key), lines);
    }
    for (std::size_t i = 0; node.keys.empty() && i < node.below.size(); ++i)
        value.push_back(to_json(node.below[i], fmt::format("{}[{}]", path, i), lines));
    return value;
}

// What yaml-cpp would take in silence, or refuse in words that say little.
void check_characters(const std::string& name, std::string_view text) {
    if (text.size() > largest_text)
        fail(ErrorKind::input, "{}: has {} bytes, YAML is read up to {}; larger files are JSON", name, text.size(),
             largest_text);
    int line = 1;
    bool indentation = true;
    for (const char c : text) {
        if (c == '\t' && indentation)
            fail(ErrorKind::input, "{}:{}: is indented with a tab, YAML needs spaces", name, line);
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == '\x7f')
            fail(ErrorKind::input, "{}:{}: has the control character 0x{:02x}", name, line, c);
        indentation = c == '\n' || (indentation && c == ' ');
        line += c == '\n' ? 1 : 0;
    }
    if (!is_utf8(text)) fail(ErrorKind::input, "{}: is not UTF-8", name);
}

}  // namespace

json parse_yaml(const std::string& name, std::string_view text, LinesOfValues& lines) {
    check_characters(name, text);
    std::istringstream in{std::string(text)};
    Builder builder(name);
    try {
        YAML::Parser parser(in);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::Exception& error) {
        fail(ErrorKind::input, "{}:{}: is not YAML: {} (column {})", name, error.mark.line + 1, error.msg,
             error.mark.column + 1);
    }
    if (!builder.has_root()) fail(ErrorKind::input, "{}: is empty", name);
    return to_json(builder.root(), "", lines);
}

}  // namespace pipeweaver
