// Bytes of a file that may be larger than memory, through zlib, which reads plain files as well.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <zlib.h>

#include <cerrno>
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

}  // namespace pipeweaver
