// Lines of a file that others write, while they write it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace pipeweaver::apps {

/// A message is a line of so many bytes at most.
inline constexpr std::size_t longest_message = std::size_t{1} << 20;

/// Reads one line after the other; of one that is longer than a message the beginning.
class LineSource {
public:
    /// `file`: open for reading for as long as this lives.
    explicit LineSource(int file) : file_(file) {}

    /// Without its end; none: the file has ended. Waits for the line.
    [[nodiscard]] std::optional<std::string> next();

private:
    bool fill();

    int file_;
    std::array<char, 65536> part_{};
    std::size_t at_ = 0, got_ = 0;
};

}  // namespace pipeweaver::apps
