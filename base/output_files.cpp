// Files out: whole or not at all, and only where a file may be.
#include "base/places.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace pipeweaver {

namespace fs = std::filesystem;

namespace {

// Makes the folder and those above it that are missing; returns which they were, inner ones first.
std::vector<fs::path> create_folders(const fs::path& folder) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path one = folder; !one.empty() && !fs::exists(one, error) && !error; one = one.parent_path())
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

// The file's bytes, in `zipped` where they are not its content.
std::string_view packed(const FileToWrite& file, std::string& zipped) {
    if (file.path.extension() != ".gz") return file.content;
    zipped = gzip(file.content, Zip::soon);
    return zipped;
}

// A file that is being written, known to its user by the name `path`.
class OpenFile {
public:
    // Made under another name, which no file has.
    OpenFile(const fs::path& path, const fs::path& made, mode_t mode)
        : path_(path), descriptor_(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)) {
        require_open();
    }
    // A stream.
    OpenFile(const fs::path& path, const Place& place)
        : path_(path),
          descriptor_(place.open ? ::dup(*place.open) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)) {
        require_open();
    }
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    void write(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) fail_writing(path_, last_system_error());
            bytes.remove_prefix(static_cast<std::size_t>(written));
        }
    }

    // What a file system says only at the end is heard.
    void close() {
        const int descriptor = std::exchange(descriptor_, -1);
        if (::close(descriptor) != 0) fail_writing(path_, last_system_error());
    }

private:
    void require_open() const {
        if (descriptor_ < 0) fail_writing(path_, last_system_error());
    }

    const fs::path& path_;
    int descriptor_;
};

void replace(const fs::path& path, const Place& place, const fs::path& by) {
    std::error_code error;
    if (place.mode) fs::permissions(by, static_cast<fs::perms>(*place.mode), error);
    if (!error) fs::rename(by, place.path, error);
    if (error) fail_writing(path, error.message());
}

}  // namespace

bool is_same_file(const fs::path& a, const fs::path& b) {
    std::error_code error;
    if (fs::equivalent(a, b, error)) return true;
    const auto whole = [](const fs::path& path) {
        std::error_code ignored;
        return fs::weakly_canonical(fs::absolute(behind_links(path), ignored), ignored);
    };
    return whole(a) == whole(b);
}

struct PendingFiles::Pending {
    fs::path path;  // as asked
    Place place;
    fs::path temporary{};  // none: a stream
    std::string bytes{};   // of a stream
    std::string hash{};    // of a file
};

PendingFiles::PendingFiles() = default;

PendingFiles::~PendingFiles() {
    std::error_code ignored;
    for (const auto& [path, file] : files_) fs::remove(file->temporary, ignored);
    if (!files_.empty()) remove_if_empty(folders_);
}

void PendingFiles::add(const FileToWrite& file) {
    const auto made = create_folders(file.path.parent_path());
    auto pending = std::make_unique<Pending>(Pending{file.path, place_of(file.path)});
    const fs::path folder = pending->place.path.parent_path();
    fs::path temporary;
    std::string zipped;
    const mode_t mode = pending->place.mode ? 0600 : 0666;  // what replaces a private file is never open to others
    {
        const std::scoped_lock lock(mutex_);
        folders_.insert(folders_.begin(), made.begin(), made.end());
        if (pending->place.is_stream) {
            pending->bytes = packed(file, zipped);
        } else {
            if (cleaned_.insert(folder).second) remove_abandoned(folder);
            temporary = pending->temporary = temporary_name(pending->place.path, added_++);
        }
        auto& place = files_[file.path];
        std::error_code ignored;
        if (place != nullptr) fs::remove(place->temporary, ignored);
        place = std::move(pending);
    }
    if (temporary.empty()) return;
    OpenFile out(file.path, temporary, mode);
    const std::string_view bytes = packed(file, zipped);
    out.write(bytes);
    out.close();
    std::string hash = sha256(bytes);
    const std::scoped_lock lock(mutex_);
    files_[file.path]->hash = std::move(hash);
}

std::map<fs::path, std::string> PendingFiles::hashes() const {
    const std::scoped_lock lock(mutex_);
    std::map<fs::path, std::string> all;
    for (const auto& [path, file] : files_)
        if (!file->place.is_stream) all.emplace(path, file->hash);
    return all;
}

std::vector<fs::path> PendingFiles::finish(const fs::path& seal) {
    std::map<fs::path, const Pending*> by_place;
    std::vector<fs::path> written;
    for (const auto& [path, file] : files_) {
        if (file->place.is_stream) continue;
        std::error_code ignored;
        const auto [other, is_first] = by_place.emplace(fs::weakly_canonical(file->place.path, ignored), file.get());
        if (!is_first)
            fail(ErrorKind::input, "{}: is the same file as {}", path.string(), other->second->path.string());
        static_cast<void>(place_of(path));  // also now, before anything is replaced
    }
    for (const auto& [path, file] : files_) {
        written.push_back(path);
        if (!file->place.is_stream) continue;
        OpenFile out(path, file->place);
        out.write(file->bytes);
        out.close();
    }
    const auto sealed = files_.find(seal);
    if (sealed != files_.end() && ::unlink(sealed->second->place.path.c_str()) != 0 && errno != ENOENT)
        fail_writing(seal, last_system_error());
    for (const auto& [path, file] : files_)
        if (!file->place.is_stream && path != seal) replace(path, file->place, file->temporary);
    if (sealed != files_.end()) replace(seal, sealed->second->place, sealed->second->temporary);
    files_.clear();
    return written;
}

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) continue;
}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);  // lets go
}

struct FileWriter::Target {
    explicit Target(const fs::path& asked)
        : path(asked),
          place(place_of(path)),
          temporary(place.is_stream ? fs::path() : temporary_name(place.path, 0)),
          mode(place.mode ? 0600 : 0666) {
        if (place.is_stream)
            out.emplace(path, place);
        else
            out.emplace(path, temporary, mode);
    }
    ~Target() {
        std::error_code ignored;
        if (!temporary.empty()) fs::remove(temporary, ignored);
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    fs::path path;
    Place place;
    fs::path temporary;
    mode_t mode;
    std::optional<OpenFile> out{};
    std::string waiting{};
};

FileWriter::FileWriter(const fs::path& path) : target_(std::make_unique<Target>(path)) {}
FileWriter::~FileWriter() = default;

void FileWriter::write(std::string_view bytes) {
    constexpr std::size_t most_waiting = std::size_t{1} << 16;
    target_->waiting += bytes;
    if (target_->waiting.size() < most_waiting) return;
    target_->out->write(target_->waiting);
    target_->waiting.clear();
}

void FileWriter::finish() {
    target_->out->write(target_->waiting);
    target_->out->close();
    if (!target_->temporary.empty()) replace(target_->path, target_->place, target_->temporary);
}

OutputFolder::OutputFolder(const fs::path& folder) : made_(create_folders(folder)) {
    const std::string name = folder.empty() ? "." : folder.string();
    if (::access(name.c_str(), W_OK | X_OK) == 0) return;
    const std::string why = last_system_error();
    remove_if_empty(made_);
    fail_writing(name, why);
}

OutputFolder::~OutputFolder() { remove_if_empty(made_); }

std::vector<fs::path> write_files(const std::vector<FileToWrite>& files) {
    PendingFiles pending;
    for (std::size_t i = 0; i < files.size(); ++i) {
        for (std::size_t before = 0; before < i; ++before)
            if (files[before].path == files[i].path)
                fail(ErrorKind::input, "{}: would be written twice", files[i].path.string());
        pending.add(files[i]);
    }
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

}  // namespace pipeweaver
