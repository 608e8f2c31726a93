#include "pipeweaver/service/client.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "service/beast.hpp"

#include <algorithm>
#include <string_view>

namespace pipeweaver::service {

std::string read_token(const std::string& path) {
    constexpr std::size_t most = 4096;
    std::string token = read_file(path, most);
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    return token;
}

namespace {

struct Url {
    bool secure = false;
    std::string authority;   // host and port as they were given
    std::string host, port;  // the host without brackets
};

Url url_of(const std::string& text) {
    Url url;
    std::string_view rest = text;
    if (rest.starts_with("https://"))
        url.secure = true;
    else if (!rest.starts_with("http://"))
        fail(ErrorKind::input, "'{}' is no address of a server, like http://127.0.0.1:8080", text);
    rest.remove_prefix(url.secure ? 8 : 7);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    const bool in_brackets = rest.starts_with('[');  // an address of IPv6, which has colons
    const std::size_t end = std::min(rest.find(in_brackets ? ']' : ':'), rest.size());
    const bool is_open = in_brackets && end == rest.size();
    url.authority = rest;
    url.host = in_brackets ? rest.substr(1, end - 1) : rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), in_brackets ? end + 1 : end));
    if (rest.empty()) rest = url.secure ? ":443" : ":80";
    url.port = rest.substr(1);
    if (is_open || url.host.empty() || url.port.empty() || rest.front() != ':' ||
        url.authority.find('/') != std::string::npos || url.port.find_first_not_of("0123456789") != std::string::npos)
        fail(ErrorKind::input, "'{}' is no address of a server, like http://127.0.0.1:8080", text);
    return url;
}

template <class Stream>
Reply exchange(asio::io_context& io, Stream& stream, const http::request<http::string_body>& request,
               beast::error_code& error) {
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(std::uint64_t{4} << 30);
    const auto read = [&](beast::error_code failed, std::size_t) {
        error = failed;
        if (!error)
            http::async_read(stream, buffer, parser, [&](beast::error_code last, std::size_t) { error = last; });
    };
    http::async_write(stream, request, read);
    io.restart();
    io.run();
    if (error) return {};
    auto response = parser.release();
    return {static_cast<int>(response.result_int()), std::move(response.body())};
}

http::request<http::string_body> request_of(const Url& url, const ServerAddress& server, const std::string& method,
                                            const std::string& path, const std::string& body) {
    http::request<http::string_body> request(http::string_to_verb(method), path, 11);
    request.set(http::field::host, url.authority);
    if (!server.token.empty()) request.set(http::field::authorization, "Bearer " + server.token);
    if (!body.empty()) request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.keep_alive(false);
    request.prepare_payload();
    return request;
}

}  // namespace

Reply ask(const ServerAddress& server, const std::string& method, const std::string& path, const std::string& body,
          Duration within) {
    const Url url = url_of(server.url);
    asio::io_context io;
    beast::error_code error;
    const auto request = request_of(url, server, method, path, body);
    Reply reply;
    const auto ends = tcp::resolver(io).resolve(url.host, url.port, error);
    beast::tcp_stream plain(io);
    plain.expires_after(within);
    if (!error) {
        plain.async_connect(ends, [&](beast::error_code failed, const tcp::endpoint&) { error = failed; });
        io.run();
    }
    if (!error && !url.secure) reply = exchange(io, plain, request, error);
    if (!error && url.secure) {
        asio::ssl::context context(asio::ssl::context::tls_client);
        context.set_verify_mode(asio::ssl::verify_peer);
        if (server.authority.empty())
            context.set_default_verify_paths();
        else
            context.load_verify_file(server.authority, error);
        beast::ssl_stream<beast::tcp_stream> stream(std::move(plain), context);
        stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
        SSL_set_tlsext_host_name(stream.native_handle(), url.host.c_str());
        if (!error) {
            stream.async_handshake(asio::ssl::stream_base::client, [&](beast::error_code failed) { error = failed; });
            io.restart();
            io.run();
        }
        if (!error) reply = exchange(io, stream, request, error);
    }
    if (error) fail(ErrorKind::io, "{}: gives no answer: {}", server.url, error.message());
    return reply;
}

}  // namespace pipeweaver::service
