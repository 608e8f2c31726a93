#include "pipeweaver/service/client.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "service/http/beast.hpp"

#include <algorithm>
#include <optional>
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

http::request<http::string_body> request_of(const Url& url, const ServerAddress& server, const std::string& method,
                                            const std::string& path, const std::string& body) {
    http::request<http::string_body> request(http::string_to_verb(method), path, 11);
    request.set(http::field::host, url.authority);
    request.set(http::field::accept_encoding, "gzip");
    if (!server.token.empty()) request.set(http::field::authorization, "Bearer " + server.token);
    if (!body.empty()) request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.prepare_payload();
    return request;
}

asio::ssl::context context_for(const ServerAddress& server, beast::error_code& error) {
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.set_verify_mode(asio::ssl::verify_peer);
    if (server.authority.empty())
        context.set_default_verify_paths(error);
    else
        context.load_verify_file(server.authority, error);
    return context;
}

// What is met where the server has closed a connection between two requests.
bool was_closed(beast::error_code error) {
    return error == http::error::end_of_stream || error == asio::error::connection_reset ||
           error == asio::error::broken_pipe || error == asio::error::eof ||
           error == asio::ssl::error::stream_truncated;
}

}  // namespace

struct Client::Inner {
    ServerAddress server;
    Url url;
    asio::io_context io;
    std::optional<asio::ssl::context> tls;
    std::optional<beast::tcp_stream> plain;
    std::optional<beast::ssl_stream<beast::tcp_stream>> secure;
    beast::flat_buffer buffer;

    explicit Inner(ServerAddress address) : server(std::move(address)), url(url_of(server.url)) {}

    bool is_open() const { return plain || secure; }

    void close() {
        plain.reset();
        secure.reset();
        buffer.clear();
    }

    void run() {
        io.restart();
        io.run();
    }

    void open(std::chrono::steady_clock::time_point end, beast::error_code& error) {
        if (url.secure && !tls) tls.emplace(context_for(server, error));
        if (error) return;
        const auto ends = tcp::resolver(io).resolve(url.host, url.port, error);
        beast::tcp_stream stream(io);
        stream.expires_at(end);
        if (error) return;
        stream.async_connect(ends, [&](beast::error_code failed, const tcp::endpoint&) { error = failed; });
        run();
        if (error) return;
        beast::error_code ignored;
        stream.socket().set_option(tcp::no_delay(true), ignored);
        if (url.secure)
            shake_hands(std::move(stream), error);
        else
            plain.emplace(std::move(stream));
    }

    void shake_hands(beast::tcp_stream stream, beast::error_code& error) {
        secure.emplace(std::move(stream), *tls);
        secure->set_verify_callback(asio::ssl::host_name_verification(url.host));
        SSL_set_tlsext_host_name(secure->native_handle(), url.host.c_str());
        secure->async_handshake(asio::ssl::stream_base::client, [&](beast::error_code failed) { error = failed; });
        run();
    }

    template <class Stream>
    Reply exchange(Stream& stream, const http::request<http::string_body>& request, beast::error_code& error) {
        http::response_parser<http::string_body> parser;
        parser.body_limit(std::uint64_t{4} << 30);
        http::async_write(stream, request, [&](beast::error_code failed, std::size_t) {
            error = failed;
            if (!error)
                http::async_read(stream, buffer, parser, [&](beast::error_code last, std::size_t) { error = last; });
        });
        run();
        if (error) return {};
        auto response = parser.release();
        const bool stays_open = response.keep_alive();
        Reply reply{static_cast<int>(response.result_int()), std::move(response.body())};
        if (response[http::field::content_encoding] == "gzip") reply.body = gunzip(reply.body);
        if (!stays_open) close();
        return reply;
    }

    Reply ask(const http::request<http::string_body>& request, std::chrono::steady_clock::time_point end,
              beast::error_code& error) {
        if (!is_open()) open(end, error);
        if (error) return {};
        if (secure) {
            beast::get_lowest_layer(*secure).expires_at(end);
            return exchange(*secure, request, error);
        }
        plain->expires_at(end);
        return exchange(*plain, request, error);
    }
};

Client::Client(ServerAddress server) : inner_(std::make_unique<Inner>(std::move(server))) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

void Client::use_token(std::string token) { inner_->server.token = std::move(token); }

Reply Client::ask(const std::string& method, const std::string& path, const std::string& body, Duration within) {
    const auto end = std::chrono::steady_clock::now() + within;
    const auto request = request_of(inner_->url, inner_->server, method, path, body);
    const bool was_open = inner_->is_open();
    beast::error_code error;
    Reply reply = inner_->ask(request, end, error);
    if (was_open && was_closed(error)) {
        inner_->close();
        error = {};
        reply = inner_->ask(request, end, error);
    }
    if (!error) return reply;
    inner_->close();
    fail(ErrorKind::io, "{}: gives no answer: {}", inner_->server.url, error.message());
}

Reply ask(const ServerAddress& server, const std::string& method, const std::string& path, const std::string& body,
          Duration within) {
    return Client(server).ask(method, path, body, within);
}

}  // namespace pipeweaver::service
