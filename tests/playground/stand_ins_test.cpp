// What the playground's planner has instead of zlib and OpenSSL does as they do.
#include "pipeweaver/base/files.hpp"
#include "tools/playground/stand_ins/gzip.hpp"
#include "tools/playground/stand_ins/sha256.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace {

using namespace pipeweaver;

std::string bytes_of(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i / 7);
    return bytes;
}

std::string hashed(std::string_view bytes, std::size_t piece) {
    playground::Hasher hasher;
    for (; bytes.size() > piece; bytes.remove_prefix(piece)) hasher.add(bytes.substr(0, piece));
    hasher.add(bytes);
    return hasher.hex();
}

}  // namespace

TEST_CASE("playground: what is stored as gzip is read as gzip") {
    for (const std::size_t size : {0, 1, 65535, 65536, 200000})
        CHECK(gunzip(playground::stored_gzip(bytes_of(size))) == bytes_of(size));
}

TEST_CASE("playground: its SHA-256 is SHA-256, in whatever pieces the bytes come") {
    // FIPS 180-4's own example.
    CHECK(hashed("abc", 64) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (const std::size_t size : {0, 1, 55, 56, 63, 64, 65, 119, 120, 1000})
        for (const std::size_t piece : {1, 63, 64, 4096})
            CHECK(hashed(bytes_of(size), piece) == sha256(bytes_of(size)));
}
