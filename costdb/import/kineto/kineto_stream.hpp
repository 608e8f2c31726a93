// The bytes of a trace as RapidJSON takes them, with what profilers write besides JSON turned into JSON.
#pragma once

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <array>
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

    explicit TraceStream(const std::filesystem::path& path)
        : path_(path), file_(path), buffer_(block + longest_word + 1) {
        fill();
    }

    Ch Peek() const { return *at_; }  // '\0' only at the end: there is none inside
    Ch Take() {
        const char c = *at_;
        if (at_ == end_) return c;
        ++at_;
        if (at_ == end_) fill();
        return c;
    }
    std::size_t Tell() const { return before_ + static_cast<std::size_t>(at_ - buffer_.data()); }

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

    /// Makes the next bytes current; at the end of the file there are none.
    [[gnu::noinline]] void fill() {
        if (at_ != nullptr) before_ += static_cast<std::size_t>(end_ - buffer_.data());
        std::size_t size = kept_size_, clean_size = 0;
        std::copy_n(kept_.begin(), kept_size_, buffer_.begin());
        while (clean_size == 0 && !done_) {
            const auto count = file_.read(std::span(buffer_).subspan(size, block));
            done_ = count == 0;
            digest_.add({buffer_.data() + size, count});
            size += count;
            clean_size = clean(size);
        }
        kept_size_ = size - clean_size;
        std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(clean_size), kept_size_, kept_.begin());
        buffer_[clean_size] = '\0';
        at_ = buffer_.data();
        end_ = at_ + clean_size;
    }

    /// Cleans the front of the buffer. Returns how much of it: a word that the next block may end is left.
    std::size_t clean(std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) {
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
                if (i + longest_word >= size && !done_) return i;
                if (i + longest_word < size && buffer_[i + 1] == 'a' && buffer_[i + 2] == 'n') {
                    c = 'N';
                    buffer_[i + 2] = 'N';
                }
            }
            in_word_ = !in_string_ && is_letter(c);
        }
        return size;
    }

    static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

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
    std::array<char, longest_word> kept_{};  // of what was read, not clean yet
    std::size_t kept_size_ = 0;
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    std::size_t before_ = 0, string_length_ = 0;
    bool in_string_ = false, escaped_ = false, in_word_ = false, done_ = false;
};

}  // namespace pipeweaver::costdb
