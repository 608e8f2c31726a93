// Where a file that is to be written really goes, and under which name it waits there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

namespace pipeweaver {

struct Place {
    std::filesystem::path path;  ///< behind all links
    bool is_stream = false;      ///< a pipe, FIFO, terminal or other character device: written through, never replaced
    std::optional<mode_t> mode;  ///< of the file that is replaced
    std::optional<int> open{};   ///< of a stream that this process has open, like /dev/stdout: its descriptor
};

/// Throws Error{io} where no file may go: a folder, a socket or a disk stands there, a file that is read-only, or links
/// that lead in a circle.
[[nodiscard]] Place place_of(const std::filesystem::path& asked);

/// What links lead to, of a file that need not be there; open files of this process are not looked behind. Throws
/// Error{io} for links in a circle.
[[nodiscard]] std::filesystem::path behind_links(const std::filesystem::path& asked);

/// What errno says.
[[nodiscard]] std::string last_system_error();

[[noreturn]] void fail_writing(const std::filesystem::path& path, const std::string& why);

/// A name beside `path` that no other process has, and that says whose it is.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& path, std::size_t number);

/// Removes temporary files of processes of this machine that have ended without removing them.
void remove_abandoned(const std::filesystem::path& folder);

}  // namespace pipeweaver
