// Lines of a file that may be larger than memory.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <array>
#include <cstring>

namespace pipeweaver {

namespace fs = std::filesystem;

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
