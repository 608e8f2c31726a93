// Bytes and lines of a file that may be larger than memory, through zlib, which reads plain files as well.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace pipeweaver {

namespace fs = std::filesystem;

struct ByteReader::Source {
    explicit Source(const fs::path& from) : path(from), file(gzopen(from.c_str(), "rb")) {}
    ~Source() {
        if (file != nullptr) gzclose_r(file);
    }
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    fs::path path;
    gzFile file;
};

ByteReader::ByteReader(const fs::path& path) {
    require_readable(path);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) fail(ErrorKind::io, "{}: is a folder, a file is needed", path.string());
    errno = 0;
    source_ = std::make_unique<Source>(path);
    if (source_->file == nullptr)
        fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), std::generic_category().message(errno));
    constexpr unsigned buffered = 1U << 17;
    gzbuffer(source_->file, buffered);
}

ByteReader::ByteReader(ByteReader&&) noexcept = default;
ByteReader& ByteReader::operator=(ByteReader&&) noexcept = default;
ByteReader::~ByteReader() = default;

std::size_t ByteReader::read(std::span<char> block) {
    const auto& path = source_->path;
    const int count = gzread(source_->file, block.data(), static_cast<unsigned>(block.size()));
    int error = Z_OK;
    gzerror(source_->file, &error);
    // At the end of a gzip file that misses its tail, zlib gives what there is and this error.
    if (error == Z_BUF_ERROR) fail(ErrorKind::input, "{}: gzip data is cut short", path.string());
    if (error == Z_ERRNO)
        fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), std::generic_category().message(errno));
    if (error != Z_OK || count < 0) fail(ErrorKind::input, "{}: gzip data is damaged", path.string());
    return static_cast<std::size_t>(count);
}

struct LineReader::Source {
    explicit Source(const fs::path& from) : path(from), bytes(from) {}

    // Reads the next block; false at the end.
    bool fill() {
        taken = 0;
        size = bytes.read(block);
        return size > 0;
    }

    fs::path path;
    ByteReader bytes;
    std::array<char, std::size_t{1} << 16> block{};
    std::size_t taken = 0;
    std::size_t size = 0;
};

LineReader::LineReader(const fs::path& path, std::size_t longest_line)
    : source_(std::make_unique<Source>(path)), longest_line_(longest_line) {}

LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
    line.clear();
    bool ended = false;
    bool any = false;
    while (!ended && (source_->taken < source_->size || source_->fill())) {
        any = true;
        const char* start = source_->block.data() + source_->taken;
        const std::size_t left = source_->size - source_->taken;
        const auto* end = static_cast<const char*>(std::memchr(start, '\n', left));
        ended = end != nullptr;
        const std::size_t length = ended ? static_cast<std::size_t>(end - start) : left;
        line.append(start, length);
        source_->taken += length + (ended ? 1 : 0);
        if (line.size() > longest_line_)
            fail(ErrorKind::input, "{}:{}: the line is longer than {} bytes", source_->path.string(), number_ + 1,
                 longest_line_);
    }
    if (!any) return false;
    ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
}

}  // namespace pipeweaver
