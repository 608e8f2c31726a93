#include "pipeweaver/base/files.hpp"

#include "base/places.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
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

}  // namespace pipeweaver
