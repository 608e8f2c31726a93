// A database file that is replaced as a whole, by one process at a time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

/// Holds the right to replace an existing database; others wait for it, up to a minute. It ends with this or with the
/// process, however that ends: it is flock() on the file itself, not a file of its own.
class StoreFile {
public:
    /// Throws Error{io} if the file is not there, cannot be written, or another process holds it for a minute.
    explicit StoreFile(const std::filesystem::path& path);
    StoreFile(const StoreFile&) = delete;
    StoreFile& operator=(const StoreFile&) = delete;
    ~StoreFile();

    /// Its bytes now, unzipped. Throws as read_file() does.
    [[nodiscard]] std::string read() const;

    /// Puts `bytes` in its place (zipped if its name ends in .gz). Throws Error{io}; then the file is as it was.
    void replace(std::string_view bytes) const;

private:
    std::filesystem::path path_;  // where the file is, whatever links lead there
    int file_ = -1;
};

}  // namespace pipeweaver::costdb
