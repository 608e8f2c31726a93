#include "pipeweaver/base/json.hpp"

#include "base/yaml.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/file_limits.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace pipeweaver {

using nlohmann::json;

namespace {

// Path of `target` below `value`, found by address. Only errors ask, so a full walk does no harm.
bool find_path(const json& value, const json* target, std::string& path) {
    if (&value == target) return true;
    const std::size_t length = path.size();
    if (value.is_object()) {
        for (const auto& [key, member] : value.items()) {
            path += (path.empty() ? "" : ".") + key;
            if (find_path(member, target, path)) return true;
            path.resize(length);
        }
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
            path += fmt::format("[{}]", i);
            if (find_path(value[i], target, path)) return true;
            path.resize(length);
        }
    }
    return false;
}

// A short form of the value for messages.
std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    constexpr std::size_t most = 40;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

// Builds the value like nlohmann's own parser, but refuses keys that occur twice and deep nesting.
class StrictSax : public nlohmann::detail::json_sax_dom_parser<json> {
    using Base = nlohmann::detail::json_sax_dom_parser<json>;

public:
    StrictSax(json& into, std::string_view name) : Base(into, true), name_(name) {}

    bool start_object(std::size_t size) {
        enter();
        keys_.emplace_back();
        return Base::start_object(size);
    }
    bool end_object() {
        keys_.pop_back();
        --depth_;
        return Base::end_object();
    }
    bool start_array(std::size_t size) {
        enter();
        return Base::start_array(size);
    }
    bool end_array() {
        --depth_;
        return Base::end_array();
    }
    bool key(std::string& text) {
        if (!keys_.back().insert(text).second)
            fail(ErrorKind::input, "{}: the key '{}' occurs twice in one object", name_, text);
        return Base::key(text);
    }

private:
    void enter() {
        if (++depth_ > deepest_nesting)
            fail(ErrorKind::input, "{}: is nested deeper than {} levels", name_, deepest_nesting);
    }

    std::string_view name_;
    std::vector<std::set<std::string>> keys_;
    std::size_t depth_ = 0;
};

// "line 3, column 7" of a byte position.
std::string place(std::string_view text, std::size_t byte) {
    const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n');
    const std::size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
    return fmt::format("line {}, column {}", line, column);
}

// Whether a file has one of the extensions, perhaps followed by .gz.
bool is_named(std::string_view file, std::initializer_list<std::string_view> extensions) {
    if (file.ends_with(".gz")) file.remove_suffix(3);
    return std::any_of(extensions.begin(), extensions.end(), [&](std::string_view e) { return file.ends_with(e); });
}

}  // namespace

bool is_a_document(std::string_view text) { return text.starts_with('{'); }

JsonDocument JsonDocument::given(std::string name, const std::string& text) {
    return is_a_document(text) ? JsonDocument(std::move(name), text) : read(text);
}

bool names_a_document(std::string_view text) {
    return text.find('/') != std::string_view::npos || is_named(text, {".json", ".yaml", ".yml"});
}

JsonDocument::JsonDocument(std::string name, std::string_view text)
    : name_(std::move(name)), value_(std::make_unique<json>()) {
    StrictSax sax(*value_, name_);
    try {
        json::sax_parse(text.begin(), text.end(), &sax);
    } catch (const json::parse_error& error) {
        const bool cut = error.byte > text.size();
        fail(ErrorKind::input, "{}: is not JSON: {}{}", name_, place(text, error.byte),
             cut ? ": it ends too early" : "");
    } catch (const json::exception& error) {
        fail(ErrorKind::input, "{}: is not JSON that can be read: {}", name_, error.what());
    }
}

JsonDocument JsonDocument::yaml(std::string name, std::string_view text) {
    JsonDocument document;
    document.name_ = std::move(name);
    document.value_ = std::make_unique<json>(parse_yaml(document.name_, text, document.lines_));
    return document;
}

namespace {

JsonDocument read_up_to(const std::filesystem::path& path, std::size_t limit) {
    if (is_named(path.native(), {".yaml", ".yml"})) return JsonDocument::yaml(path.string(), read_file(path, limit));
    return {path.string(), read_file(path, limit)};
}

}  // namespace

JsonDocument JsonDocument::read(const std::filesystem::path& path) { return read_up_to(path, longest_by_hand); }

JsonDocument JsonDocument::read_large(const std::filesystem::path& path) {
    return read_up_to(path, longest_by_program);
}

JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Json JsonDocument::root() const { return {this, value_.get()}; }

void JsonDocument::require_format(std::string_view name, int version) const {
    const std::string format = root().at("format").text();
    if (format == fmt::format("{}/{}", name, version)) return;
    if (format.starts_with(fmt::format("{}/", name)))
        root().at("format").fail(fmt::format("is '{}', this program reads '{}/{}'", format, name, version));
    root().at("format").fail(fmt::format("is '{}', needed is '{}/{}'", format, name, version));
}

std::string JsonDocument::canonical() const { return value_->dump(); }

std::string Json::path() const {
    std::string path;
    find_path(*document_->value_, value_, path);
    return path;
}

std::string Json::where(const std::string& path_with_line) const {
    std::string place = document_->name();
    if (const auto line = document_->lines_.find(path_with_line); line != document_->lines_.end())
        place += fmt::format(":{}", line->second);
    if (const auto here = path(); !here.empty()) place += ": " + here;
    return place;
}

void Json::fail(std::string_view message) const { fail_as(ErrorKind::input, message); }

void Json::fail_as(ErrorKind kind, std::string_view message) const {
    pipeweaver::fail(kind, "{}: {}", where(path()), message);
}

bool Json::is_null() const { return value_->is_null(); }
bool Json::is_object() const { return value_->is_object(); }
bool Json::is_array() const { return value_->is_array(); }
bool Json::is_string() const { return value_->is_string(); }

void Json::only_keys(std::initializer_list<std::string_view> known) const {
    if (!is_object()) fail(fmt::format("is {}, an object is needed", shown(*value_)));
    for (const auto& item : value_->items())
        if (std::find(known.begin(), known.end(), item.key()) == known.end())
            only_keys(std::vector<std::string>(known.begin(), known.end()));  // names it
}

void Json::only_keys(std::span<const std::string> known) const {
    for (const auto& [key, member] : members())
        if (std::find(known.begin(), known.end(), key) == known.end())
            pipeweaver::fail(ErrorKind::input, "{}: {}", where(member.path()), unknown("key", key, known));
}

Json Json::at(std::string_view key) const {
    if (const auto member = find(key)) return *member;
    fail(fmt::format("the key '{}' is missing", key));
}

std::optional<Json> Json::find(std::string_view key) const {
    if (!is_object()) fail(fmt::format("is {}, an object is needed", shown(*value_)));
    const auto member = value_->find(std::string(key));
    if (member == value_->end()) return std::nullopt;
    return Json(document_, &*member);
}

std::vector<std::pair<std::string, Json>> Json::members() const {
    if (!is_object()) fail(fmt::format("is {}, an object is needed", shown(*value_)));
    std::vector<std::pair<std::string, Json>> all;
    for (const auto& item : value_->items()) all.emplace_back(item.key(), Json(document_, &item.value()));
    return all;
}

std::size_t Json::size() const {
    if (!is_array()) fail(fmt::format("is {}, a list is needed", shown(*value_)));
    return value_->size();
}

Json Json::operator[](std::size_t i) const { return {document_, &(*value_)[i]}; }

std::vector<Json> Json::elements() const {
    std::vector<Json> all;
    for (std::size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
    return all;
}

std::int64_t Json::integer(std::int64_t low, std::int64_t high) const {
    const bool fits =
        value_->is_number_integer() &&
        (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest));
    if (fits && value_->get<std::int64_t>() >= low && value_->get<std::int64_t>() <= high)
        return value_->get<std::int64_t>();
    fail(shown_must_be(shown(*value_), a_whole_number(low, high)));
}

double Json::number(double low, double high) const {
    if (value_->is_number()) {
        const auto value = value_->get<double>();
        if (std::isfinite(value) && value >= low && value <= high) return value;
    }
    fail(shown_must_be(shown(*value_), a_number(low, high)));
}

bool Json::boolean() const {
    if (!value_->is_boolean()) fail(shown_must_be(shown(*value_), "true or false"));
    return value_->get<bool>();
}

std::string Json::text() const {
    if (!is_string()) fail(fmt::format("is {}, a text is needed", shown(*value_)));
    return value_->get<std::string>();
}

std::string Json::one_of(std::initializer_list<std::string_view> allowed) const {
    std::string value = text();
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    const auto near = nearest(value, names);
    fail(must_be(value, pipeweaver::one_of(names)) + (near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
}

}  // namespace pipeweaver
