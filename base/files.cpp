#include "pipeweaver/base/files.hpp"

#include "base/places.hpp"
#include "pipeweaver/base/error.hpp"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <system_error>

namespace pipeweaver {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t block = std::size_t{1} << 18;

bool may_be_read(const fs::path& path) {
    const char* below = std::getenv("PIPEWEAVER_READS_BELOW");
    if (below == nullptr || *below == '\0') return true;
    std::error_code error, folder_error;
    const fs::path real = fs::weakly_canonical(path, error), folder = fs::canonical(below, folder_error);
    return !error && !folder_error &&
           std::mismatch(folder.begin(), folder.end(), real.begin(), real.end()).first == folder.end();
}

std::string read_plain(const fs::path& path, std::size_t limit) {
    require_readable(path);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) fail(ErrorKind::io, "{}: is a folder, a file is needed", path.string());
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), last_system_error());
    std::string content;
    std::string buffer(block, '\0');
    while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
        content.append(buffer, 0, static_cast<std::size_t>(in.gcount()));
        if (content.size() > limit) fail(ErrorKind::io, "{}: is larger than {} bytes", path.string(), limit);
    }
    if (in.bad()) fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), last_system_error());
    return content;
}

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

struct Inflater {
    z_stream stream{};
    Inflater() {
        constexpr int gzip_only = 16;
        if (inflateInit2(&stream, MAX_WBITS + gzip_only) != Z_OK) fail(ErrorKind::io, "zlib cannot be started");
    }
    ~Inflater() { inflateEnd(&stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

bool is_readable_file(const fs::path& path) {
    std::error_code ignored;
    return may_be_read(path) && fs::is_regular_file(path, ignored);
}

void require_readable(const fs::path& path) {
    if (!may_be_read(path))
        fail(ErrorKind::io, "{}: may not be read here: allowed are files that were given", path.string());
}

std::string read_file(const fs::path& path, std::size_t limit) {
    std::string content = read_plain(path, limit);
    if (!is_gzip(content)) return content;
    try {
        return gunzip(content, limit);
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

std::string gzip(std::string_view bytes, Zip zip) {
    z_stream stream{};
    constexpr int with_gzip_header = 16;
    const int level = zip == Zip::soon ? 1 : 6;  // the best one takes three times as long for 5 % less
    // No deflateSetHeader: zlib then writes no name and a zero time stamp.
    if (deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + with_gzip_header, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        fail(ErrorKind::io, "zlib cannot be started");
    std::string out;
    std::string buffer(block, '\0');
    std::size_t taken = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        const std::size_t size = std::min(bytes.size() - taken, std::size_t{std::numeric_limits<uInt>::max()});
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
        stream.avail_in = static_cast<uInt>(size);
        do {
            stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
            stream.avail_out = static_cast<uInt>(buffer.size());
            status = deflate(&stream, taken + size == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
            out.append(buffer, 0, buffer.size() - stream.avail_out);
        } while (stream.avail_out == 0);
        taken += size;
    }
    deflateEnd(&stream);
    return out;
}

std::string gunzip(std::string_view bytes, std::size_t limit) {
    Inflater inflater;
    z_stream& stream = inflater.stream;
    constexpr std::size_t usual_ratio = 8, most_at_once = std::size_t{64} << 20;
    std::string out;
    out.reserve(std::min({usual_ratio * bytes.size(), limit, most_at_once}));
    std::string buffer(block, '\0');
    std::size_t taken = 0;
    while (true) {
        const std::size_t size = std::min(bytes.size() - taken, block);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
        stream.avail_in = static_cast<uInt>(size);
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        const int status = inflate(&stream, Z_NO_FLUSH);
        taken += size - stream.avail_in;
        out.append(buffer, 0, buffer.size() - stream.avail_out);
        if (out.size() > limit) fail(ErrorKind::input, "gzip data is larger than {} bytes when unzipped", limit);
        if (status == Z_STREAM_END) {
            // gzip allows several members one after the other; what follows the last must be one too.
            if (taken == bytes.size()) return out;
            if (inflateReset(&stream) != Z_OK) fail(ErrorKind::input, "gzip data is damaged");
        } else if (status == Z_BUF_ERROR && taken == bytes.size()) {
            fail(ErrorKind::input, "gzip data is cut short");
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            fail(ErrorKind::input, "gzip data is damaged");
        }
    }
}

struct Sha256::Digest {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    Digest() {
        if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
            fail(ErrorKind::io, "SHA-256 is not available");
    }
    ~Digest() { EVP_MD_CTX_free(context); }
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;
};

Sha256::Sha256() : digest_(std::make_unique<Digest>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    if (EVP_DigestUpdate(digest_->context, bytes.data(), bytes.size()) != 1)
        fail(ErrorKind::io, "SHA-256 is not available");
}

std::string Sha256::hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(digest_->context, digest.data(), &size) != 1)
        fail(ErrorKind::io, "SHA-256 is not available");
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

std::string sha256(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.hex();
}

}  // namespace pipeweaver
