// What the planner takes of base, and of its own data, where that cannot be WebAssembly or is fetched when it is needed:
// threads, zlib, OpenSSL, yaml-cpp, and the cost database of each device.
#include "base/yaml.hpp"
#include "costdb/embedded.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "tools/playground/stand_ins/gzip.hpp"
#include "tools/playground/stand_ins/sha256.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <emscripten.h>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

// clang-format off
EM_JS(void, pipeweaver_wants, (const char* file), { Module.wants(UTF8ToString(file)); });
// clang-format on

namespace pipeweaver {

int possible_threads(int) { return 1; }
Executor on_threads(int) { return in_order; }
Executor on_own_threads(int) { return in_order; }
std::size_t threads_of(const Executor&) { return 1; }

// ---- files: the page has unzipped costs

std::string gunzip(std::string_view bytes, std::size_t limit) {
    if (bytes.starts_with("\x1f\x8b")) fail(ErrorKind::input, "gzip data is not read in the browser: unzip it");
    if (bytes.size() > limit) fail(ErrorKind::input, "data is larger than {} bytes", limit);
    return std::string(bytes);
}

std::string gzip(std::string_view bytes, Zip) { return playground::stored_gzip(bytes); }

struct ByteReader::Source {
    std::ifstream file;
};

ByteReader::ByteReader(const std::filesystem::path& path) : source_(std::make_unique<Source>()) {
    require_readable(path);
    source_->file.open(path, std::ios::binary);
    if (!source_->file) fail(ErrorKind::io, "{}: cannot be read: it was not given", path.string());
}
ByteReader::ByteReader(ByteReader&&) noexcept = default;
ByteReader& ByteReader::operator=(ByteReader&&) noexcept = default;
ByteReader::~ByteReader() = default;

std::size_t ByteReader::read(std::span<char> block) {
    source_->file.read(block.data(), static_cast<std::streamsize>(block.size()));
    return static_cast<std::size_t>(source_->file.gcount());
}

nlohmann::json parse_yaml(const std::string& name, std::string_view, LinesOfValues&) {
    fail(ErrorKind::input, "{}: YAML is not read in the browser: give it as JSON, or ask the program", name);
}

struct Sha256::Digest : playground::Hasher {};

Sha256::Sha256() : digest_(std::make_unique<Digest>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;
void Sha256::add(std::string_view bytes) { digest_->add(bytes); }
std::string Sha256::hex() { return digest_->hex(); }

std::string sha256(std::string_view bytes) {
    playground::Hasher hasher;
    hasher.add(bytes);
    return hasher.hex();
}

}  // namespace pipeweaver

namespace pipeweaver::costdb {

std::vector<std::string> embedded_devices() {
    std::istringstream names(PIPEWEAVER_DEVICES);
    std::vector<std::string> all;
    for (std::string name; names >> name;) all.push_back(name);
    return all;
}

// Where the page has put it. Else the page fetches it, and asks the question again.
std::string_view embedded_store(std::string_view device) {
    static std::map<std::string, std::string, std::less<>> read;
    const auto known = embedded_devices();
    if (std::find(known.begin(), known.end(), device) == known.end()) return {};
    if (const auto found = read.find(device); found != read.end()) return found->second;
    const std::string name = fmt::format("{}.sqlite", device);
    if (!is_readable_file("/costdb/" + name)) {
        pipeweaver_wants(name.c_str());
        fail(ErrorKind::io, "{} is fetched first", name);
    }
    return read.emplace(device, read_file("/costdb/" + name)).first->second;
}

}  // namespace pipeweaver::costdb
