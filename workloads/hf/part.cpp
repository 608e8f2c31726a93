#include "workloads/hf/part.hpp"

#include "pipeweaver/base/text.hpp"
#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

// Keys of other configurations that have almost the letters of one of ours.
constexpr std::array<std::string_view, 4> others{"num_labels", "image_sizes", "num_codebooks", "hidden_act"};

bool is_known(std::string_view name) {
    const auto spells = [&](const Key& key) {
        const auto all = key.spellings();
        return std::find(all.begin(), all.end(), name) != all.end();
    };
    return std::any_of(key::all.begin(), key::all.end(), spells) ||
           std::find(others.begin(), others.end(), name) != others.end();
}

// Letters in small and without what joins words: "hiddenSize" and "hidden-size" are "hiddensize".
std::string letters(std::string_view name) {
    std::string plain;
    plain.reserve(name.size());
    for (const char c : name)
        if (c != '_' && c != '-') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return plain;
}

// Letters to change, leave out, add, or exchange with their neighbour.
std::size_t typing_errors(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before_last = last;
        last = row;
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
    }
    return row[b.size()];
}

bool misspells(std::string_view found, std::string_view wanted) {
    const std::string a = letters(found), b = letters(wanted);
    if (b.size() < 5) return a == b;
    return typing_errors(a, b) <= std::max<std::size_t>(1, b.size() / 7);
}

void check_spelling(const Part& part, const Key& key) {
    for (const auto& [name, value] : part.json.members()) {
        if (is_known(name)) continue;
        for (const auto spelling : key.spellings())
            if (!spelling.empty() && misspells(name, spelling))
                part.json.fail(fmt::format("there is '{}' but no '{}': is it misspelled?", name, spelling));
    }
}

const Default* default_of(const Part& part, const Key& key) {
    for (const Default& entry : part.defaults)
        for (const auto spelling : key.spellings())
            if (entry.key == spelling) return &entry;
    return nullptr;
}

void note(const Part& part, const Default& taken) {
    const std::string begin = fmt::format("{} lacks these, which are taken from '{}': ", part.name, part.type);
    const std::string entry = fmt::format("{} {}", taken.key, taken.value);
    for (std::string& line : part.reading->assumed) {
        if (!line.starts_with(begin)) continue;
        if (line.find(entry) == std::string::npos) line += ", " + entry;
        return;
    }
    part.reading->assumed.push_back(begin + entry);
}

// Also as null, which in these files says that there is none.
bool is_there(const Part& part, const Key& key) {
    const auto all = key.spellings();
    return std::any_of(all.begin(), all.end(),
                       [&](std::string_view spelling) { return !spelling.empty() && part.json.find(spelling); });
}

}  // namespace

std::optional<Json> given(const Part& part, const Key& key) {
    for (const auto spelling : key.spellings()) {
        if (spelling.empty()) continue;
        const auto member = part.json.find(spelling);
        if (member && !member->is_null()) return member;
    }
    if (!is_there(part, key)) check_spelling(part, key);
    return std::nullopt;
}

std::optional<std::int64_t> size(const Part& part, const Key& key) {
    if (const auto member = given(part, key)) return member->integer(1, most);
    const Default* taken = is_there(part, key) ? nullptr : default_of(part, key);
    if (!taken) return std::nullopt;
    note(part, *taken);
    return taken->value;
}

std::int64_t needed(const Part& part, const Key& key) {
    if (const auto value = size(part, key)) return *value;
    refuse(part, fmt::format("the key '{}' is missing", key.usual));
}

std::int64_t count(const Part& part, const Key& key) {
    const auto member = given(part, key);
    return member ? member->integer(0, most) : 0;
}

bool flag(const Part& part, const Key& key, bool otherwise) {
    const auto member = given(part, key);
    return member ? member->boolean() : otherwise;
}

std::int64_t square(const Part& part, const Key& key) {
    const auto side = given(part, key);
    if (!side || !side->is_array()) return needed(part, key);
    if (side->size() != 2 || (*side)[0].integer(1, most) != (*side)[1].integer(1, most))
        refuse(*side, *part.reading, "is no square, only squares are read");
    return (*side)[0].integer(1, most);
}

std::int64_t divided(const Part& part, Named a, Named b) {
    if (a.value % b.value != 0)
        part.json.fail(fmt::format("{} ({}) is no multiple of {} ({})", a.key, a.value, b.key, b.value));
    return a.value / b.value;
}

void assume(Reading& reading, const std::string& line) {
    auto& all = reading.assumed;
    std::string shown = printable(line);  // it may quote the file
    if (std::find(all.begin(), all.end(), shown) == all.end()) all.push_back(std::move(shown));
}

void refuse(const Part& part, std::string_view message) { refuse(part.json, *part.reading, message); }

void refuse(const Json& place, const Reading& reading, std::string_view message) {
    place.fail(fmt::format("{}; start from \"pipeweaver show {}\"", message, reading.start_from));
}

}  // namespace pipeweaver::workloads::hf
