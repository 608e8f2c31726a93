#include "service/listen.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/service/client.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace pipeweaver::service {

namespace {

constexpr std::size_t shortest_token = 16;

struct Address {
    std::string host;
    std::uint16_t port = 0;
};

Address address_of(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0)
        fail(ErrorKind::input, "--http: {}", must_be(text, "ADDRESS:PORT, like 127.0.0.1:8080 or [::1]:8080"));
    Address address;
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
        address.host = address.host.substr(1, address.host.size() - 2);
    if (address.host == "localhost") address.host = "127.0.0.1";
    address.port = static_cast<std::uint16_t>(parse_integer("--http", text.substr(colon + 1), 0, 65'535));
    return address;
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

}  // namespace

std::string token_of(const std::string& path) {
    if (path.empty()) return {};
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && (about.st_mode & 077) != 0)
        fail(ErrorKind::input, "{}: others may read the token; allowed is a file for its owner alone (chmod 600)",
             path);
    std::string token = read_token(path);
    if (token.size() < shortest_token)
        fail(ErrorKind::input, "{}: the token has {} characters, allowed are {} or more", path, token.size(),
             shortest_token);
    return token;
}

Listen listen_of(const ListenOptions& options) {
    const Address address = address_of(options.http);
    Listen listen;
    listen.address = address.host;
    listen.port = address.port;
    if (options.certificate.empty() != options.key.empty())
        fail(ErrorKind::input, "--tls-certificate, --tls-key: go together");
    if (!options.certificate.empty()) listen.tls = Tls{options.certificate, options.key};
    if (!is_loopback(address.host) && (options.token_file.empty() || !listen.tls))
        fail(ErrorKind::input,
             "--http: {} is for others than this machine, which needs --token-file, --tls-certificate and --tls-key; "
             "without them allowed is 127.0.0.1",
             address.host);
    return listen;
}

std::string url_of(const ListenOptions& options, std::uint16_t port) {
    const std::string host = address_of(options.http).host;
    return fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https",
                       host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

}  // namespace pipeweaver::service
