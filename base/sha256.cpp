#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace pipeweaver {

struct Sha256::Digest {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    Digest() {
        if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
            fail(ErrorKind::io, "SHA-256 is not available");
    }
    ~Digest() { EVP_MD_CTX_free(context); }
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;
};

Sha256::Sha256() : digest_(std::make_unique<Digest>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    if (EVP_DigestUpdate(digest_->context, bytes.data(), bytes.size()) != 1)
        fail(ErrorKind::io, "SHA-256 is not available");
}

std::string Sha256::hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(digest_->context, digest.data(), &size) != 1)
        fail(ErrorKind::io, "SHA-256 is not available");
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

std::string sha256(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.hex();
}

}  // namespace pipeweaver
