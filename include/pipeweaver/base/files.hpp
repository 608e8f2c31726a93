// Whole files in and out: gzip by name or by content, and never half a file.
#pragma once

#include "pipeweaver/base/file_limits.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// Whether `path` is a file that may be read. Where the environment's PIPEWEAVER_READS_BELOW names a folder, no file
/// elsewhere may be: who runs this program for others gives it their files, which may name any of the machine's.
[[nodiscard]] bool is_readable_file(const std::filesystem::path& path);

/// Throws Error{io} for a path outside of that folder.
void require_readable(const std::filesystem::path& path);

/// The file's content, unzipped if it is gzip (recognised by its first two bytes).
/// Throws Error{io} if it cannot be read or exceeds `limit` bytes, Error{input} if its gzip data is damaged or cut
/// short.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::size_t limit = longest_of_any);

/// The bytes of a file, plain or gzip, one block after the other in bounded memory.
class ByteReader {
public:
    /// Throws Error{io} if the file cannot be opened.
    explicit ByteReader(const std::filesystem::path& path);
    ByteReader(ByteReader&&) noexcept;
    ByteReader& operator=(ByteReader&&) noexcept;
    ~ByteReader();

    /// Fills the front of `block` and says how much of it; 0 only at the end. Throws as read_file() does.
    std::size_t read(std::span<char> block);

private:
    struct Source;
    std::unique_ptr<Source> source_;
};

/// The lines of a file, plain or gzip, one after the other in bounded memory.
class LineReader {
public:
    /// Throws Error{io} if the file cannot be opened.
    explicit LineReader(const std::filesystem::path& path, std::size_t longest_line = std::size_t{64} << 20);
    LineReader(LineReader&&) noexcept;
    LineReader& operator=(LineReader&&) noexcept;
    ~LineReader();

    /// Puts the next line, without its end ("\n" or "\r\n"), into `line`; false at the end of the file. A last line
    /// need not have an end. Throws as read_file() does, and Error{input} for a line longer than `longest_line`.
    bool next(std::string& line);

    /// Number of the line that next() gave last, from 1.
    std::size_t number() const { return number_; }

private:
    struct Source;
    std::unique_ptr<Source> source_;
    std::size_t longest_line_;
    std::size_t number_ = 0;
};

/// How bytes are zipped: to be small, or in a third of the time and a quarter larger.
enum class Zip : std::uint8_t { small, soon };

/// gzip of `bytes` without name and time stamp: equal input, equal output.
[[nodiscard]] std::string gzip(std::string_view bytes, Zip zip = Zip::small);

/// The inverse of gzip(). Throws Error{input} if the data is damaged, cut short or larger than `limit` when unzipped.
[[nodiscard]] std::string gunzip(std::string_view bytes, std::size_t limit = longest_of_any);

/// A file that is to be written.
struct FileToWrite {
    std::filesystem::path path;  ///< zipped on the way if it ends in ".gz"
    std::string content;
};

/// Whether both paths lead to one file, which need not be there.
[[nodiscard]] bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Files that are written all or, as far as a file system can promise it, none: each first goes under a temporary name
/// beside its place, and only when all are written are they renamed. Creates missing folders; other files in them stay.
/// Of a link, what it leads to is replaced; a file that is replaced keeps its mode; into a pipe, FIFO or character
/// device the bytes go when all files are written. Temporary files of processes that were killed are removed.
class PendingFiles {
public:
    PendingFiles();
    PendingFiles(const PendingFiles&) = delete;
    PendingFiles& operator=(const PendingFiles&) = delete;
    ~PendingFiles();  ///< removes what was not renamed, and folders made for it

    /// Writes a file under its temporary name, in place of one of the same path that was added before. May be called
    /// from several threads. Throws Error{io}, also where no file may be: a folder, a socket, a file that is read-only.
    void add(const FileToWrite& file);

    /// SHA-256 of the bytes of each file, by its path; streams have none.
    [[nodiscard]] std::map<std::filesystem::path, std::string> hashes() const;

    /// Renames all and returns their paths, sorted. A file named `seal` says that the others are whole: an older one is
    /// removed before anything else, the one that was added comes last. Throws Error{io}, and Error{input} where two
    /// paths lead to one file: then nothing is replaced. Pre: called once.
    std::vector<std::filesystem::path> finish(const std::filesystem::path& seal = {});

private:
    struct Pending;
    mutable std::mutex mutex_;
    std::map<std::filesystem::path, std::unique_ptr<Pending>> files_;
    std::set<std::filesystem::path> cleaned_;     // folders without files of processes that were killed
    std::vector<std::filesystem::path> folders_;  // that it made, inner ones first
    std::size_t added_ = 0;
};

/// A file that is written piece by piece, whole or not at all, to a place as PendingFiles has it; not zipped.
class FileWriter {
public:
    /// Throws Error{io} as PendingFiles::add().
    explicit FileWriter(const std::filesystem::path& path);
    FileWriter(const FileWriter&) = delete;
    FileWriter& operator=(const FileWriter&) = delete;
    ~FileWriter();  ///< removes what was not finished

    void write(std::string_view bytes);  ///< Throws Error{io}.
    void finish();                       ///< Throws Error{io}. Pre: called once

private:
    struct Target;
    std::unique_ptr<Target> target_;
};

/// A folder that files will be written into, made at once: that it cannot be is known before the work is done.
class OutputFolder {
public:
    /// Makes it, and the folders above it, where they are missing; the empty path is the working folder. Throws
    /// Error{io} where it cannot be made, or nothing may be written there.
    explicit OutputFolder(const std::filesystem::path& folder);
    ~OutputFolder();  ///< removes what it made, as far as nothing is in it
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

private:
    std::vector<std::filesystem::path> made_;  // inner ones first
};

/// Holds off all others who lock the folder, of any process, while it lives; on file systems without locks nothing.
class FolderLock {
public:
    explicit FolderLock(const std::filesystem::path& folder);
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

private:
    int descriptor_;
};

/// Writes `files` as PendingFiles and returns their paths, sorted. Throws as that does, and Error{input} for a path
/// that stands twice.
std::vector<std::filesystem::path> write_files(const std::vector<FileToWrite>& files);

/// Removes the files of these names in `folder`, but none of `kept`, and then the folder if nothing is left in it. Any
/// other file stays, and so does a folder that is a link. Throws Error{io}. Pre: `kept` is sorted.
void remove_files(const std::filesystem::path& folder, const std::vector<std::string>& names,
                  const std::vector<std::filesystem::path>& kept);

/// SHA-256 of `bytes` as 64 lower-case hex digits.
[[nodiscard]] std::string sha256(std::string_view bytes);

/// SHA-256 of bytes that come in pieces.
class Sha256 {
public:
    Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    ~Sha256();

    void add(std::string_view bytes);
    [[nodiscard]] std::string hex();  ///< as sha256() of all that was added. Pre: called once

private:
    struct Digest;
    std::unique_ptr<Digest> digest_;
};

}  // namespace pipeweaver
