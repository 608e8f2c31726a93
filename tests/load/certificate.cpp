#include "tests/load/certificate.hpp"

#include "pipeweaver/base/error.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace pipeweaver::load {

namespace {

constexpr long a_day = 24 * 60 * 60;
constexpr long version_3 = 2;  // as the format counts

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

void require_done(bool done) {
    if (!done) fail(ErrorKind::io, "OpenSSL makes no certificate");
}

void add_extension(X509* certificate, int which, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, &context, which, value), X509_EXTENSION_free);
    require_done(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

Certificate certificate_of(EVP_PKEY* key) {
    Certificate made(X509_new(), X509_free);
    require_done(made != nullptr);
    X509_set_version(made.get(), version_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), a_day);
    X509_set_pubkey(made.get(), key);
    X509_NAME* name = X509_get_subject_name(made.get());
    const unsigned char text[] = "127.0.0.1";
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE");
    add_extension(made.get(), NID_subject_alt_name, "IP:127.0.0.1");
    require_done(X509_sign(made.get(), key, EVP_sha256()) > 0);
    return made;
}

// A file for its owner alone.
template <class Write>
void write_pem(const std::filesystem::path& path, const Write& write) {
    const int opened = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(opened < 0 ? nullptr : ::fdopen(opened, "w"),
                                                               [](std::FILE* one) { return std::fclose(one); });
    if (!file || write(file.get()) != 1) fail(ErrorKind::io, "{}: cannot be written", path.string());
}

}  // namespace

void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
    const Key made(EVP_EC_gen("P-256"), EVP_PKEY_free);
    require_done(made != nullptr);
    const auto signed_by_itself = certificate_of(made.get());
    write_pem(certificate, [&](std::FILE* file) { return PEM_write_X509(file, signed_by_itself.get()); });
    write_pem(key, [&](std::FILE* file) {
        return PEM_write_PrivateKey(file, made.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
}

}  // namespace pipeweaver::load
