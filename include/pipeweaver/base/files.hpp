// Whole files in and out: gzip by name or by content, and never half a file.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// The file's content, unzipped if it is gzip (recognised by its first two bytes).
/// Throws Error{io} if it cannot be read or exceeds `limit` bytes, Error{input} if its gzip data is damaged or cut
/// short.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{4} << 30);

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
[[nodiscard]] std::string gunzip(std::string_view bytes, std::size_t limit = std::size_t{4} << 30);

/// A file that is to be written.
struct FileToWrite {
    std::filesystem::path path;  ///< zipped on the way if it ends in ".gz"
    std::string content;
};

/// Files that are written all or, as far as a file system can promise it, none: each first goes under a temporary name
/// beside its place, and only when all are written are they renamed. Creates missing folders; other files in them stay.
class PendingFiles {
public:
    PendingFiles() = default;
    PendingFiles(const PendingFiles&) = delete;
    PendingFiles& operator=(const PendingFiles&) = delete;
    ~PendingFiles();  ///< removes what was not renamed, and folders made for it

    /// Writes a file under its temporary name, in place of one of the same path that was added before. May be called
    /// from several threads. Throws Error{io}.
    void add(const FileToWrite& file);

    /// Renames all and returns their paths, sorted. Throws Error{io}. Pre: called once.
    std::vector<std::filesystem::path> finish();

private:
    struct Pending {
        std::filesystem::path path, temporary;
    };
    std::mutex mutex_;
    std::vector<Pending> files_;
    std::vector<std::filesystem::path> folders_;  // that it made, inner ones first
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

/// Writes `files` as PendingFiles and returns their paths, sorted. Throws Error{io}.
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
