#include "costdb/store/store_file.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace pipeweaver::costdb {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const fs::path& path, const char* what) {
    fail(ErrorKind::io, "{}: {}: {}", path.string(), what, std::generic_category().message(errno));
}

/// Whether `path` still leads to the open file, which another process may have replaced.
bool is_still(const fs::path& path, int file) {
    struct stat by_file {
    }, by_path{};
    return ::fstat(file, &by_file) == 0 && ::stat(path.c_str(), &by_path) == 0 && by_file.st_ino == by_path.st_ino &&
           by_file.st_dev == by_path.st_dev;
}

/// Writes all of it and waits until the disk has it.
bool write_and_flush(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::write(file, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return ::fsync(file) == 0;
}

}  // namespace

StoreFile::StoreFile(const fs::path& path) {
    std::error_code error;
    path_ = fs::canonical(path, error);
    if (error) fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), error.message());
    constexpr int most_tries = 1200;
    for (int tries = 0; tries < most_tries; ++tries) {
        file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        if (file_ < 0) refuse(path_, "cannot be written");
        if (::flock(file_, LOCK_EX | LOCK_NB) == 0 && is_still(path_, file_)) return;
        ::close(file_);
        file_ = -1;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    fail(ErrorKind::io, "{}: another import has been adding to it for a minute; try again when that has ended",
         path_.string());
}

StoreFile::~StoreFile() {
    if (file_ >= 0) ::close(file_);
}

std::string StoreFile::read() const { return read_file(path_); }

void StoreFile::replace(std::string_view bytes) const {
    const auto packed = path_.extension() == ".gz" ? gzip(bytes) : std::string();
    // One name for all: only who holds the database writes it, and what a killed import left is written over.
    const auto temporary = path_.parent_path() / fmt::format(".{}.import.tmp", path_.filename().string());
    struct stat old {};
    if (::fstat(file_, &old) != 0) refuse(path_, "cannot be read");
    const int out = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, old.st_mode & 07777);
    if (out < 0) refuse(path_, "cannot be replaced");
    const bool written =
        write_and_flush(out, packed.empty() ? bytes : packed) && ::fchmod(out, old.st_mode & 07777) == 0;
    const int why = errno;
    const bool closed = ::close(out) == 0;
    errno = written ? errno : why;
    if (!written || !closed || ::rename(temporary.c_str(), path_.c_str()) != 0) {
        const int reason = errno;
        ::unlink(temporary.c_str());
        errno = reason;
        refuse(path_, "cannot be replaced");
    }
}

}  // namespace pipeweaver::costdb
