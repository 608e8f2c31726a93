#include "pipeweaver/base/files.hpp"

#include "pipeweaver/base/error.hpp"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>
#include <unistd.h>

namespace pipeweaver {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t block = std::size_t{1} << 18;

std::string last_system_error() { return std::generic_category().message(errno); }

std::string read_plain(const fs::path& path, std::size_t limit) {
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

fs::path temporary_name(const fs::path& path) {
    return path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
}

void write_temporary(const FileToWrite& file, const fs::path& temporary) {
    const bool zipped = file.path.extension() == ".gz";
    const std::string packed = zipped ? gzip(file.content) : std::string();
    const std::string& bytes = zipped ? packed : file.content;
    errno = 0;
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) fail(ErrorKind::io, "{}: cannot be written: {}", file.path.string(), last_system_error());
}

// Makes the folder and those above it that are missing; returns which they were, inner ones first.
std::vector<fs::path> create_folders(const fs::path& folder) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path one = folder; !one.empty() && !fs::exists(one, error); one = one.parent_path())
        missing.push_back(one);
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) fail(ErrorKind::io, "{}: cannot be created: {}", folder.string(), error.message());
    return missing;
}

void remove_if_empty(const std::vector<fs::path>& folders) {
    std::error_code ignored;
    for (const fs::path& one : folders)
        if (fs::is_directory(fs::symlink_status(one, ignored))) fs::remove(one, ignored);
}

}  // namespace

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
    std::string out;
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

PendingFiles::~PendingFiles() {
    std::error_code ignored;
    for (const Pending& file : files_) fs::remove(file.temporary, ignored);
    if (!files_.empty()) remove_if_empty(folders_);
}

void PendingFiles::add(const FileToWrite& file) {
    const auto made = create_folders(file.path.parent_path());
    const fs::path temporary = temporary_name(file.path);
    {
        const std::scoped_lock lock(mutex_);
        std::erase_if(files_, [&](const Pending& one) {
            if (one.path != file.path) return false;
            std::error_code ignored;
            fs::remove(one.temporary, ignored);
            return true;
        });
        folders_.insert(folders_.begin(), made.begin(), made.end());
        files_.push_back({file.path, temporary});
    }
    write_temporary(file, temporary);
}

std::vector<fs::path> PendingFiles::finish() {
    std::sort(files_.begin(), files_.end(), [](const Pending& a, const Pending& b) { return a.path < b.path; });
    std::vector<fs::path> written;
    for (const Pending& file : files_) {
        std::error_code error;
        fs::rename(file.temporary, file.path, error);
        if (error) fail(ErrorKind::io, "{}: cannot be written: {}", file.path.string(), error.message());
        written.push_back(file.path);
    }
    files_.clear();
    return written;
}

OutputFolder::OutputFolder(const fs::path& folder) : made_(create_folders(folder)) {
    const std::string name = folder.empty() ? "." : folder.string();
    if (::access(name.c_str(), W_OK | X_OK) == 0) return;
    const std::string why = last_system_error();
    remove_if_empty(made_);
    fail(ErrorKind::io, "{}: cannot be written: {}", name, why);
}

OutputFolder::~OutputFolder() { remove_if_empty(made_); }

std::vector<fs::path> write_files(const std::vector<FileToWrite>& files) {
    PendingFiles pending;
    for (const FileToWrite& file : files) pending.add(file);
    return pending.finish();
}

void remove_files(const fs::path& folder, const std::vector<std::string>& names, const std::vector<fs::path>& kept) {
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(folder, error))) return;
    bool removed = false;
    for (const std::string& name : names) {
        const fs::path path = folder / name;
        if (std::binary_search(kept.begin(), kept.end(), path)) continue;
        if (!fs::is_regular_file(fs::symlink_status(path, error))) continue;
        fs::remove(path, error);
        if (error) fail(ErrorKind::io, "{}: cannot be removed: {}", path.string(), error.message());
        removed = true;
    }
    if (!removed || !fs::is_empty(folder, error)) return;
    fs::remove(folder, error);
    if (error) fail(ErrorKind::io, "{}: cannot be removed: {}", folder.string(), error.message());
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
