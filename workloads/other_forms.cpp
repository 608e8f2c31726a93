#include "workloads/other_forms.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace pipeweaver::workloads {

namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array<Row, 5> by_ending{{{".parquet", "a Parquet table"},
                                        {".arrow", "an Arrow table"},
                                        {".tar", "a shard"},
                                        {".tar.gz", "a shard"},
                                        {".tgz", "a shard"}}};

// The first key that a line has decides.
constexpr std::array<Row, 8> by_key{{{"messages", "a chat (key 'messages')"},
                                     {"conversations", "a conversation (key 'conversations')"},
                                     {"instruction", "an instruction with its answer (key 'instruction')"},
                                     {"query", "a query with its response (key 'query')"},
                                     {"file_name", "a caption of a file (key 'file_name')"},
                                     {"caption", "a caption (key 'caption')"},
                                     {"text", "a text (key 'text')"},
                                     {"image", "an annotation of a file (key 'image')"}}};

// {"my-set":{"annotation":...}}, {"my-set":{"file_name":...}}.
bool lists_data_sets(const Json& line) {
    const auto members = line.members();
    return !members.empty() && std::all_of(members.begin(), members.end(), [](const auto& member) {
        const Json& set = member.second;
        return set.is_object() && (set.find("annotation") || set.find("file_name") || set.find("hf_hub_url"));
    });
}

}  // namespace

std::string_view form_of_name(std::string_view name) {
    const auto* const row =
        std::find_if(by_ending.begin(), by_ending.end(), [&](const Row& one) { return name.ends_with(one.first); });
    return row == by_ending.end() ? std::string_view() : row->second;
}

std::string_view form_of_line(const Json& line) {
    if (line.is_array()) return line.size() > 0 ? "a list" : std::string_view();
    if (!line.is_object() || line.find("text_tokens")) return {};
    const auto* const row =
        std::find_if(by_key.begin(), by_key.end(), [&](const Row& one) { return line.find(one.first).has_value(); });
    if (row != by_key.end()) return row->second;
    return lists_data_sets(line) ? "a list of data sets" : std::string_view();
}

void refuse_form(std::string_view place, std::string_view form, const std::string& file) {
    fail(ErrorKind::input,
         "{}: is {}, no sample of a batch file; `python3 -m pipeweaver.data.convert {} --out batch.jsonl` makes one of "
         "it",
         place, form, file);
}

}  // namespace pipeweaver::workloads
