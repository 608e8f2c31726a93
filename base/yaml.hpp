// YAML as JSON values, for the files that people write. Private to base/: everyone else reads through JsonDocument.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace pipeweaver {

constexpr std::size_t deepest_nesting = 64;  ///< of objects and lists, also in JSON

/// Line (from 1) of each value, by its path as errors write it: "", "modules[2].layers".
using LinesOfValues = std::map<std::string, int>;

/// Parses one YAML 1.2 document by the core schema: of unquoted words only null, true, false and numbers (also 0x1f and
/// 0o17) are no texts, so "no", "on" and "80GiB" are, and 010 is ten. Fills `lines`.
///
/// Throws Error{input} "name:line: ..." for what is not YAML, keys that occur twice or are no texts, tags, merge keys,
/// infinities, tabs as indentation, control characters and a second document; and where the document is larger than
/// 1 MiB, deeper than 64 levels or, with aliases written out, has more than 100,000 values.
[[nodiscard]] nlohmann::json parse_yaml(const std::string& name, std::string_view text, LinesOfValues& lines);

}  // namespace pipeweaver
