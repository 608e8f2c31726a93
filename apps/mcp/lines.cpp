#include "apps/mcp/lines.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace pipeweaver::apps {

std::optional<std::string> LineSource::next() {
    std::string line;
    for (bool is_whole = false; !is_whole;) {
        if (at_ == got_ && !fill()) return line.empty() ? std::nullopt : std::optional(std::move(line));
        const auto from = part_.begin() + static_cast<std::ptrdiff_t>(at_);
        const auto to = part_.begin() + static_cast<std::ptrdiff_t>(got_);
        const auto end = std::find(from, to, '\n');
        if (line.size() <= longest_message) line.append(from, end);
        is_whole = end != to;
        at_ = static_cast<std::size_t>(end - part_.begin()) + (is_whole ? 1 : 0);
    }
    return line;
}

bool LineSource::fill() {
    ssize_t got = 0;
    do {
        got = ::read(file_, part_.data(), part_.size());
    } while (got < 0 && errno == EINTR);
    at_ = 0;
    got_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return got > 0;
}

}  // namespace pipeweaver::apps
