// SHA-256 (FIPS 180-4) where there is no OpenSSL.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver::playground {

inline constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::uint32_t turned(std::uint32_t value, unsigned by) { return value >> by | value << (32U - by); }

using Hash = std::array<std::uint32_t, 8>;

inline void add_block(Hash& hash, std::string_view block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block.size(); ++i) w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
    for (std::size_t i = 16; i < w.size(); ++i) {
        const std::uint32_t low = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3U;
        const std::uint32_t high = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10U;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const std::uint32_t first =
            h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const std::uint32_t second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = std::exchange(g, std::exchange(f, std::exchange(e, d + first)));
        d = std::exchange(c, std::exchange(b, std::exchange(a, first + second)));
    }
    const Hash more{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += more[i];
}

class Hasher {
public:
    void add(std::string_view bytes) {
        constexpr std::size_t block = 64;
        size_ += bytes.size();
        rest_ += bytes;
        std::size_t at = 0;
        for (; at + block <= rest_.size(); at += block) add_block(hash_, std::string_view(rest_).substr(at, block));
        rest_.erase(0, at);
    }

    std::string hex() {
        const std::uint64_t bits = 8 * size_;
        std::string end(1, '\x80');
        while ((rest_.size() + end.size()) % 64 != 56) end += '\0';
        for (int i = 7; i >= 0; --i) end += static_cast<char>(bits >> 8 * i & 0xffU);
        add(end);
        std::string text;
        for (const std::uint32_t word : hash_) text += fmt::format("{:08x}", word);
        return text;
    }

private:
    Hash hash_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::string rest_{};
    std::uint64_t size_ = 0;
};

}  // namespace pipeweaver::playground
