// The bytes of a trace as RapidJSON takes them, with what profilers write besides JSON turned into JSON.
#pragma once

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// RapidJSON's input stream. Control characters become blanks; outside strings nan becomes NaN, inf and infinity Inf
/// and Infinity.
class TraceStream {
public:
    using Ch = char;

    explicit TraceStream(const std::filesystem::path& path) : path_(path), file_(path), buffer_(block + longest_word) {
        fill();
    }

    Ch Peek() const { return at_ < end_ ? buffer_[at_] : '\0'; }
    Ch Take() {
        if (at_ >= end_) return '\0';
        const char c = buffer_[at_++];
        if (at_ == end_) fill();
        return c;
    }
    std::size_t Tell() const { return before_ + at_; }

    // RapidJSON asks for these only when it writes in place.
    Ch* PutBegin() { return nullptr; }
    void Put(Ch) {}
    void Flush() {}
    std::size_t PutEnd(Ch*) { return 0; }

    /// Digest of all bytes. Pre: read to the end
    std::string sha256() { return digest_.hex(); }

private:
    static constexpr std::size_t block = std::size_t{1} << 17;
    static constexpr std::size_t longest_word = 2;  // of a word that may go on in the next block
    static constexpr std::size_t longest_string = std::size_t{4} << 20;

    void fill() {
        before_ += end_;
        const std::size_t kept = raw_end_ - end_;
        std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(end_), kept, buffer_.begin());
        at_ = end_ = 0;
        raw_end_ = kept;
        while (end_ == 0 && !done_) {
            const auto count = file_.read(std::span(buffer_).subspan(raw_end_, block));
            done_ = count == 0;
            digest_.add({buffer_.data() + raw_end_, count});
            raw_end_ += count;
            clean();
        }
    }

    /// Cleans what was read; end_ stops before a word that the next block may end.
    void clean() {
        std::size_t i = 0;
        for (; i < raw_end_; ++i) {
            char& c = buffer_[i];
            if (static_cast<unsigned char>(c) < ' ') c = ' ';
            if (in_string_) {
                inside(c);
            } else if (c == '"') {
                in_string_ = true;
                string_length_ = 0;
            } else if (!in_word_ && c == 'i') {
                c = 'I';
            } else if (!in_word_ && c == 'n') {
                if (i + longest_word >= raw_end_ && !done_) break;
                if (i + longest_word < raw_end_ && buffer_[i + 1] == 'a' && buffer_[i + 2] == 'n') {
                    c = 'N';
                    buffer_[i + 2] = 'N';
                }
            }
            in_word_ = !in_string_ && std::isalpha(static_cast<unsigned char>(c)) != 0;
        }
        end_ = i;
    }

    void inside(char c) {
        if (++string_length_ > longest_string)
            fail(ErrorKind::input, "{}: has a string of more than {} bytes", path_.string(), longest_string);
        if (escaped_)
            escaped_ = false;
        else if (c == '\\')
            escaped_ = true;
        else if (c == '"')
            in_string_ = false;
    }

    std::filesystem::path path_;
    ByteReader file_;
    Sha256 digest_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, end_ = 0, raw_end_ = 0, before_ = 0;
    std::size_t string_length_ = 0;
    bool in_string_ = false, escaped_ = false, in_word_ = false, done_ = false;
};

}  // namespace pipeweaver::costdb
