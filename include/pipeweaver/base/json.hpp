// Strict reading of JSON, and of YAML as the same values: a value that knows its file and its place, for errors such as
// "plan.json: ranks[2].base_bytes: is -1, must be a whole number from 0 to 9223372036854775807"; in YAML with the
// line, "plan.yaml:7: ranks[2].base_bytes: ...".
//
// Ownership    a Json is a view into its JsonDocument, which must outlive it.
// Threads      any number of readers at once.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

enum class ErrorKind;
class JsonDocument;

/// A value inside a document. Every accessor throws Error{input} naming file and path where the value is not as asked.
class Json {
public:
    static constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

    bool is_null() const;
    bool is_object() const;
    bool is_array() const;
    bool is_string() const;

    /// Requires an object whose keys are all among `known`; an unknown one is named with the nearest known.
    void only_keys(std::initializer_list<std::string_view> known) const;
    void only_keys(std::span<const std::string> known) const;

    Json at(std::string_view key) const;                        ///< the member; an error if it is missing
    std::optional<Json> find(std::string_view key) const;       ///< the member, or nothing if it is missing
    std::vector<std::pair<std::string, Json>> members() const;  ///< of an object, sorted by key

    std::size_t size() const;              ///< of an array
    Json operator[](std::size_t i) const;  ///< element of an array. Pre: i < size()
    std::vector<Json> elements() const;    ///< of an array

    std::int64_t integer(std::int64_t low = 0, std::int64_t high = largest) const;  ///< a whole number in [low, high]
    double number(double low, double high) const;                                   ///< a finite number in [low, high]
    bool boolean() const;
    std::string text() const;

    /// The text, which must be one of `allowed`; the error names the nearest.
    std::string one_of(std::initializer_list<std::string_view> allowed) const;

    /// Throws Error{input}: file, path, message.
    [[noreturn]] void fail(std::string_view message) const;
    /// The same with an error of another kind.
    [[noreturn]] void fail_as(ErrorKind kind, std::string_view message) const;

    /// The value as nlohmann's, for what this view does not offer.
    const nlohmann::json& raw() const { return *value_; }

private:
    friend class JsonDocument;
    Json(const JsonDocument* document, const nlohmann::json* value) : document_(document), value_(value) {}

    std::string path() const;
    /// The file, the line that the path has there, and this value's own path.
    std::string where(const std::string& path_with_line) const;

    const JsonDocument* document_;
    const nlohmann::json* value_;
};

/// A parsed file.
class JsonDocument {
public:
    /// Parses `text`. Throws Error{input} with `name`, line and column for what is not JSON, for a key that occurs
    /// twice in one object, for invalid UTF-8 and for nesting deeper than 64.
    JsonDocument(std::string name, std::string_view text);

    /// Parses YAML (1.2, core schema; docs/formats.md). Throws Error{input} with `name` and line for what is not YAML,
    /// and for what JSON cannot say or the constructor above refuses.
    static JsonDocument yaml(std::string name, std::string_view text);

    /// Reads and parses a file, gzip allowed: YAML if its name ends in .yaml or .yml (before .gz), else JSON. Throws as
    /// read_file() and the two above. Unzipped it may have longest_by_hand bytes (file_limits.hpp).
    static JsonDocument read(const std::filesystem::path& path);

    /// The same of a file that a program wrote: it may have longest_by_program bytes.
    static JsonDocument read_large(const std::filesystem::path& path);

    /// A document as a user gives it: a file as read() reads it, or JSON itself, `name` in errors.
    static JsonDocument given(std::string name, const std::string& text);

    JsonDocument(JsonDocument&&) noexcept;
    JsonDocument& operator=(JsonDocument&&) noexcept;
    ~JsonDocument();

    Json root() const;

    /// Requires an object whose "format" is `name`/`version` ("pipeweaver-problem", 1). A newer version is refused by
    /// name.
    void require_format(std::string_view name, int version) const;

    /// The document's canonical bytes: sorted keys, no spaces, UTF-8.
    std::string canonical() const;

    const std::string& name() const { return name_; }

private:
    friend class Json;
    JsonDocument() = default;

    std::string name_;
    std::unique_ptr<nlohmann::json> value_;
    std::map<std::string, int> lines_;  // of YAML: line of each value by its path
};

/// Whether `text` names a file rather than something known by name: it has a '/' or ends as JSON and YAML files do.
[[nodiscard]] bool names_a_document(std::string_view text);

/// Whether `text` is a JSON object itself: it begins with '{'.
[[nodiscard]] bool is_a_document(std::string_view text);

}  // namespace pipeweaver
