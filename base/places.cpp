#include "base/places.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/host.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace pipeweaver {

namespace fs = std::filesystem;

namespace {

std::string text_of_error(int error) { return std::generic_category().message(error); }

// "/proc/self/fd/1", by any way: 1.
std::optional<int> descriptor(const fs::path& path) {
    std::error_code ignored;
    const fs::path folder = fs::weakly_canonical(path.parent_path(), ignored);
    if (folder != fs::path(fmt::format("/proc/{}/fd", ::getpid()))) return std::nullopt;
    const std::string name = path.filename().string();
    int number = 0;
    const auto [after, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc{} && after == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

bool may_write(const fs::path& path, mode_t mode) {
    constexpr mode_t anybody = S_IWUSR | S_IWGRP | S_IWOTH;
    return (mode & anybody) != 0 && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// Which process made a temporary file: the machine since it began, and the space in which its process numbers count.
std::string owner() {
    std::error_code error;
    const std::string space = fs::read_symlink("/proc/self/ns/pid", error).string();
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::string text = host_name().substr(0, 64) + "-" + boot.substr(0, 8) + "-";
    std::copy_if(space.begin(), space.end(), std::back_inserter(text), [](char c) { return c >= '0' && c <= '9'; });
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '.' || c == '/'; }, '_');
    return text;
}

constexpr std::string_view ending = ".tmp";

// Of ".NAME.OWNER-PROCESS-NUMBER.tmp" the process, if it is of this owner; else 0.
pid_t process_of(std::string_view name, const std::string& of) {
    if (!name.starts_with('.') || !name.ends_with(ending)) return 0;
    name.remove_suffix(ending.size());
    const auto mark = name.rfind("." + of + "-");
    if (mark == std::string_view::npos) return 0;
    name.remove_prefix(mark + of.size() + 2);
    pid_t process = 0;
    const auto [after, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    const bool is_whole = error == std::errc{} && after != name.data() + name.size() && *after == '-';
    return is_whole && process > 0 ? process : 0;
}

}  // namespace

fs::path behind_links(const fs::path& asked) {
    constexpr int most_links = 40;  // as Linux has it
    fs::path path = asked;
    std::error_code error;
    for (int i = 0; i < most_links; ++i) {
        if (descriptor(path)) return path;
        const fs::path target = fs::read_symlink(path, error);
        if (error) return path;
        path = target.is_absolute() ? target : path.parent_path() / target;
    }
    fail_writing(asked, text_of_error(ELOOP));
}

std::string last_system_error() { return text_of_error(errno); }

void fail_writing(const fs::path& path, const std::string& why) {
    fail(ErrorKind::io, "{}: cannot be written: {}", path.string(), why);
}

Place place_of(const fs::path& asked) {
    Place place{behind_links(asked), false, {}, {}};
    struct stat is {};
    if (::stat(asked.c_str(), &is) != 0) {
        if (errno != ENOENT) fail_writing(asked, text_of_error(errno));
        return place;
    }
    if (S_ISDIR(is.st_mode)) fail(ErrorKind::io, "{}: is a folder, a file is needed", asked.string());
    if (S_ISSOCK(is.st_mode) || S_ISBLK(is.st_mode))
        fail(ErrorKind::io, "{}: is a {}, must be a file, a pipe or a terminal", asked.string(),
             S_ISSOCK(is.st_mode) ? "socket" : "disk");
    if (!may_write(asked, is.st_mode)) fail_writing(asked, "it is read-only");
    place.open = descriptor(place.path);
    place.is_stream = place.open || !S_ISREG(is.st_mode);
    if (!place.is_stream) place.mode = is.st_mode & 07777;
    return place;
}

fs::path temporary_name(const fs::path& path, std::size_t number) {
    constexpr std::size_t longest = 100;  // of the name: files may have 255 bytes
    return path.parent_path() / fmt::format(".{}.{}-{}-{}{}", path.filename().string().substr(0, longest), owner(),
                                            ::getpid(), number, ending);
}

void remove_abandoned(const fs::path& folder) {
    const std::string own = owner();
    std::vector<fs::path> abandoned;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder.empty() ? "." : folder, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const pid_t process = process_of(entry->path().filename().string(), own);
        if (process != 0 && ::kill(process, 0) != 0 && errno == ESRCH) abandoned.push_back(entry->path());
    }
    std::error_code ignored;
    for (const fs::path& one : abandoned)
        if (fs::is_regular_file(fs::symlink_status(one, ignored))) fs::remove(one, ignored);
}

}  // namespace pipeweaver
