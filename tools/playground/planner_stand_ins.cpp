// What the planner takes of base, and of its own data, where that cannot be WebAssembly or is fetched when it is needed:
// threads, zlib, OpenSSL, yaml-cpp, and the cost database of each device.
#include "base/yaml.hpp"
#include "costdb/embedded.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// ---- files: the page unzips what it is given

std::string gunzip(std::string_view bytes, std::size_t limit) {
    if (bytes.size() > limit) fail(ErrorKind::input, "data is larger than {} bytes", limit);
    return std::string(bytes);
}

namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xedb88320U ^ value >> 1U : value >> 1U;
        table[i] = value;
    }
    return table;
}();

void add_little_endian(std::string& text, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xffU);
}

}  // namespace

// Stored, not deflated (RFC 1951, 3.2.4): a download may be larger, and is read by the same programs.
std::string gzip(std::string_view bytes, Zip) {
    std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    std::uint32_t crc = ~0U;
    for (const char one : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(one)) & 0xffU] ^ crc >> 8U;
    constexpr std::size_t longest = 65535;
    std::string_view rest = bytes;
    do {
        const auto part = rest.substr(0, longest);
        rest.remove_prefix(part.size());
        out += rest.empty() ? '\1' : '\0';
        add_little_endian(out, static_cast<std::uint32_t>(part.size()), 2);
        add_little_endian(out, ~static_cast<std::uint32_t>(part.size()), 2);
        out += part;
    } while (!rest.empty());
    add_little_endian(out, ~crc, 4);
    add_little_endian(out, static_cast<std::uint32_t>(bytes.size()), 4);
    return out;
}

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

// ---- SHA-256 (FIPS 180-4)

namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::uint32_t turned(std::uint32_t value, unsigned by) { return value >> by | value << (32U - by); }

using Hash = std::array<std::uint32_t, 8>;

void add_block(Hash& hash, std::string_view block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block.size(); ++i) w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
    for (std::size_t i = 16; i < w.size(); ++i) {
        const std::uint32_t low = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3U;
        const std::uint32_t high = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10U;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const std::uint32_t first =
            h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const std::uint32_t second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = std::exchange(g, std::exchange(f, std::exchange(e, d + first)));
        d = std::exchange(c, std::exchange(b, std::exchange(a, first + second)));
    }
    const Hash more{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += more[i];
}

}  // namespace

struct Sha256::Digest {
    Hash hash{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::string rest{};
    std::uint64_t size = 0;
};

Sha256::Sha256() : digest_(std::make_unique<Digest>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    constexpr std::size_t block = 64;
    digest_->size += bytes.size();
    digest_->rest += bytes;
    std::size_t at = 0;
    for (; at + block <= digest_->rest.size(); at += block)
        add_block(digest_->hash, std::string_view(digest_->rest).substr(at, block));
    digest_->rest.erase(0, at);
}

std::string Sha256::hex() {
    const std::uint64_t bits = 8 * digest_->size;
    std::string end(1, '\x80');
    while ((digest_->rest.size() + end.size()) % 64 != 56) end += '\0';
    for (int i = 7; i >= 0; --i) end += static_cast<char>(bits >> 8 * i & 0xffU);
    add(end);
    std::string text;
    for (const std::uint32_t word : digest_->hash) text += fmt::format("{:08x}", word);
    return text;
}

std::string sha256(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.hex();
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
