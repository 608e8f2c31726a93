// gzip where there is no zlib.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::playground {

inline constexpr std::array<std::uint32_t, 256> crc_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xedb88320U ^ value >> 1U : value >> 1U;
        table[i] = value;
    }
    return table;
}();

inline void add_little_endian(std::string& text, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xffU);
}

// Stored, not deflated (RFC 1951, 3.2.4): a download may be larger, and is read by the same programs.
inline std::string stored_gzip(std::string_view bytes) {
    std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    std::uint32_t crc = ~0U;
    for (const char one : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(one)) & 0xffU] ^ crc >> 8U;
    constexpr std::size_t longest = 65535;
    std::string_view rest = bytes;
    do {
        const auto part = rest.substr(0, longest);
        rest.remove_prefix(part.size());
        out += rest.empty() ? '\1' : '\0';
        add_little_endian(out, static_cast<std::uint32_t>(part.size()), 2);
        add_little_endian(out, ~static_cast<std::uint32_t>(part.size()), 2);
        out += part;
    } while (!rest.empty());
    add_little_endian(out, ~crc, 4);
    add_little_endian(out, static_cast<std::uint32_t>(bytes.size()), 4);
    return out;
}

}  // namespace pipeweaver::playground
