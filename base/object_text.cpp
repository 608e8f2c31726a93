#include "pipeweaver/base/object_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver {

namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

std::string json_text(std::string_view text) {
    if (!std::all_of(text.begin(), text.end(), is_plain)) return nlohmann::json(text).dump();
    std::string quoted;
    quoted.reserve(text.size() + 2);
    quoted += '"';
    quoted += text;
    quoted += '"';
    return quoted;
}

void ObjectText::clear() {
    fields_.clear();
    values_.clear();
}

ObjectText& ObjectText::raw(std::string_view key, std::string_view value) {
    fields_.push_back({key, values_.size(), values_.size() + value.size()});
    values_ += value;
    return *this;
}

ObjectText& ObjectText::number(std::string_view key, double value) { return raw(key, nlohmann::json(value).dump()); }

ObjectText& ObjectText::text(std::string_view key, std::string_view value) { return raw(key, json_text(value)); }

void ObjectText::append(std::string& out, const Field& field, bool first) const {
    out += first ? "\"" : ",\"";
    out += field.key;
    out += "\":";
    out.append(values_, field.begin, field.end - field.begin);
}

void ObjectText::append_to(std::string& out) const {
    out += '{';
    for (const Field& field : fields_) append(out, field, &field == fields_.data());
    out += '}';
}

void ObjectText::append_sorted_to(std::string& out) const {
    auto sorted = fields_;
    std::sort(sorted.begin(), sorted.end(), [](const Field& a, const Field& b) { return a.key < b.key; });
    out += '{';
    for (const Field& field : sorted) append(out, field, &field == sorted.data());
    out += '}';
}

}  // namespace pipeweaver
