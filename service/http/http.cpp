#include "service/http/http.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "service/http/beast.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <utility>

namespace pipeweaver::service {

namespace {

constexpr std::uint32_t most_header_bytes = 16 * 1024;
constexpr std::size_t most_drained = std::size_t{256} << 20;
constexpr std::size_t most_said_meanwhile = std::size_t{64} << 10;

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string decoded(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text[i] == '%' && i + 2 < text.size();
        const int high = escaped ? hex_digit(text[i + 1]) : -1, low = escaped ? hex_digit(text[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            plain += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            plain += text[i] == '+' ? ' ' : text[i];
        }
    }
    return plain;
}

void take_target(std::string_view target, Question& question) {
    const std::size_t mark = target.find('?');
    question.path = target.substr(0, mark);
    if (mark == std::string_view::npos) return;
    std::string_view rest = target.substr(mark + 1);
    while (!rest.empty()) {
        const std::string_view one = rest.substr(0, rest.find('&'));
        const std::size_t equals = one.find('=');
        const std::string_view value = equals == std::string_view::npos ? "" : one.substr(equals + 1);
        question.query[decoded(one.substr(0, equals))] = decoded(value);
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
}

using Request = http::request<http::string_body>;
using Parser = http::request_parser<http::string_body>;

void set_limits(Parser& parser, std::size_t most_body) {
    parser.header_limit(most_header_bytes);
    parser.body_limit(most_body);
}

// What is asked with HEAD is asked with GET; the body is left out of the answer.
Question question_of(Request&& request) {
    Question question;
    question.method = request.method() == http::verb::head ? "GET" : text_of(request.method_string());
    take_target(text_of(request.target()), question);
    question.authorization = text_of(request[http::field::authorization]);
    question.content_type = text_of(request[http::field::content_type]);
    question.host = text_of(request[http::field::host]);
    question.accepts_gzip = text_of(request[http::field::accept_encoding]).find("gzip") != std::string::npos;
    question.id = text_of(request["X-Request-Id"]);
    question.body = std::move(request.body());
    return question;
}

// 0: the other side is gone, or was too slow.
int refusal_of(beast::error_code error) {
    if (error == http::error::body_limit) return 413;
    if (error == http::error::header_limit) return 431;
    const bool is_of_http = error.category() == make_error_code(http::error::bad_method).category();
    return is_of_http && error != http::error::end_of_stream && error != http::error::partial_message ? 400 : 0;
}

struct Shared {
    Handler handler;
    Duration most_idle, between_pieces;
    std::size_t most_body;
    std::atomic<std::size_t> connections = 0;
};

template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
public:
    Connection(Stream stream, Shared& shared) : stream_(std::move(stream)), shared_(shared) { ++shared_.connections; }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() { --shared_.connections; }

    void begin() {
        if constexpr (requires { stream_.handshake(asio::ssl::stream_base::server); }) {
            limit();
            stream_.async_handshake(asio::ssl::stream_base::server,
                                    [self = this->shared_from_this()](beast::error_code error) {
                                        if (!error) self->read();
                                    });
        } else {
            read();
        }
    }

private:
    void limit() { beast::get_lowest_layer(stream_).expires_after(shared_.most_idle); }

    void read() {
        parser_.emplace();
        set_limits(*parser_, shared_.most_body);
        limit();
        http::async_read_header(stream_, buffer_, *parser_,
                                [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                                    if (error) return self->refuse(error);
                                    self->read_body();
                                });
    }

    void read_body() {
        if (text_of(parser_->get()[http::field::expect]) == "100-continue") {
            static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
            return asio::async_write(stream_, asio::buffer(go_on),
                                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                                         if (!error) self->read_rest();
                                     });
        }
        read_rest();
    }

    void read_rest() {
        http::async_read(stream_, buffer_, *parser_,
                         [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                             if (error) return self->refuse(error);
                             self->hand_over();
                         });
    }

    // Nothing is known of how much follows of what is refused.
    void refuse(beast::error_code error) {
        Answer answer;
        answer.status = refusal_of(error);
        if (answer.status == 0) return;
        answer.body = fmt::format("{{\"error\":{{\"message\":\"{}\"}}}}\n",
                                  answer.status == 400 ? "is no HTTP request" : "is too large");
        keep_ = head_ = false;
        unread_ = most_drained;
        drained_.resize(std::size_t{64} << 10);
        write(std::move(answer));
    }

    // Reads what the other side still sends: with bytes unread the socket's end would take the answer back.
    void drain() {
        beast::get_lowest_layer(stream_).async_read_some(
            asio::buffer(drained_), [self = this->shared_from_this()](beast::error_code error, std::size_t read) {
                self->unread_ -= std::min(read, self->unread_);
                if (!error && self->unread_ > 0) self->drain();
            });
    }

    void hand_over() {
        beast::get_lowest_layer(stream_).expires_never();
        Request request = parser_->release();
        keep_ = request.keep_alive();
        version_ = request.version();
        head_ = request.method() == http::verb::head;
        Question question = question_of(std::move(request));
        const auto executor = stream_.get_executor();
        shared_.handler(std::move(question), [self = this->shared_from_this(), executor](Answer answer) {
            asio::post(executor, [self, answer = std::move(answer)]() mutable { self->write(std::move(answer)); });
        });
    }

    void write(Answer answer) {
        if (answer.pieces) keep_ = false;
        response_.emplace(static_cast<http::status>(answer.status), version_);
        if (!answer.type.empty()) response_->set(http::field::content_type, answer.type);
        if (answer.zipped) response_->set(http::field::content_encoding, "gzip");
        for (const auto& [name, value] : answer.headers) response_->set(name, value);
        response_->keep_alive(keep_);
        response_->body() = std::move(answer.body);
        if (!answer.pieces) response_->prepare_payload();
        if (head_) response_->body().clear();
        if (!head_) pieces_ = std::move(answer.pieces);
        limit();
        http::async_write(stream_, *response_, [self = this->shared_from_this()](beast::error_code error, std::size_t) {
            self->response_.reset();
            if (error) return;
            if (self->pieces_) return self->go_on();
            if (self->keep_) return self->read();
            beast::get_lowest_layer(self->stream_).socket().shutdown(tcp::socket::shutdown_send, error);
            if (self->unread_ > 0) self->drain();
        });
    }

    void go_on() {
        timer_.emplace(stream_.get_executor());
        beast::get_lowest_layer(stream_).expires_never();
        unread_ = most_said_meanwhile;
        drained_.resize(std::size_t{4} << 10);
        wait_for_end();
        write_piece();
    }

    // The other side has nothing more to say: reading tells when it is gone.
    void wait_for_end() {
        stream_.async_read_some(asio::buffer(drained_),
                                [self = this->shared_from_this()](beast::error_code error, std::size_t read) {
                                    self->unread_ -= std::min(read, self->unread_);
                                    if (error || self->unread_ == 0) return self->end_pieces();
                                    self->wait_for_end();
                                });
    }

    void write_piece() {
        if (!pieces_) return;  // it has ended since the timer went off
        auto piece = pieces_();
        if (!piece) return end_pieces();
        if (piece->empty()) return wait_for_piece();
        piece_ = std::move(*piece);
        limit();
        asio::async_write(stream_, asio::buffer(piece_),
                          [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                              if (error) return self->end_pieces();
                              self->wait_for_piece();
                          });
    }

    void wait_for_piece() {
        timer_->expires_after(shared_.between_pieces);
        timer_->async_wait([self = this->shared_from_this()](beast::error_code error) {
            if (!error) self->write_piece();
        });
    }

    // What waits or is written ends with an error, and holds the connection no longer.
    void end_pieces() {
        pieces_ = {};
        timer_->cancel();
        beast::error_code ignored;
        beast::get_lowest_layer(stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
        beast::get_lowest_layer(stream_).close();
    }

    Stream stream_;
    Shared& shared_;
    beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    std::optional<http::response<http::string_body>> response_;
    Pieces pieces_;  // of an answer that goes on
    std::string piece_;
    std::optional<asio::steady_timer> timer_;  // until the next
    bool keep_ = false, head_ = false;
    std::size_t unread_ = 0;  // at most, of a request that is refused
    std::string drained_;
    unsigned version_ = 11;
};

asio::ssl::context context_of(const Tls& tls) {
    asio::ssl::context context(asio::ssl::context::tls_server);
    context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1);
    beast::error_code error;
    context.use_certificate_chain_file(tls.certificate, error);
    if (error) fail(ErrorKind::io, "{}: cannot be used as a certificate: {}", tls.certificate, error.message());
    context.use_private_key_file(tls.key, asio::ssl::context::pem, error);
    if (error) fail(ErrorKind::io, "{}: cannot be used as the certificate's key: {}", tls.key, error.message());
    return context;
}

}  // namespace

Reading read_request(std::string_view bytes, std::size_t most_body) {
    Parser parser;
    set_limits(parser, most_body);
    parser.eager(true);
    while (!parser.is_done()) {
        if (bytes.empty()) return {};
        beast::error_code error;
        bytes.remove_prefix(parser.put(asio::buffer(bytes.data(), bytes.size()), error));
        if (error == http::error::need_more) return {};
        if (error) return {std::nullopt, refusal_of(error)};
    }
    return {question_of(parser.release()), 0};
}

struct HttpServer::Inner {
    Shared shared;  // before io, which holds connections that use both
    std::size_t most_connections;
    std::optional<asio::ssl::context> tls;
    asio::io_context io{1};
    tcp::acceptor acceptor{io};
    asio::steady_timer again{io};
    asio::signal_set signals{io};

    Inner(const Listen& listen, Handler handler)
        : shared{std::move(handler), listen.most_idle, listen.between_pieces, listen.most_body},
          most_connections(listen.most_connections) {
        take_signals();  // before anybody can be connected, who may then send one
        if (listen.tls) tls.emplace(context_of(*listen.tls));
        beast::error_code error;
        const auto address = asio::ip::make_address(listen.address, error);
        if (error) fail(ErrorKind::input, "--http: '{}' is no address, like 127.0.0.1:8080", listen.address);
        const tcp::endpoint endpoint(address, listen.port);
        acceptor.open(endpoint.protocol(), error);
        if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
        if (!error) acceptor.bind(endpoint, error);
        if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
        if (error)
            fail(ErrorKind::io, "{}:{}: cannot be listened to: {}", listen.address, listen.port, error.message());
    }

    void take_signals() {
        signals.add(SIGTERM);
        signals.add(SIGINT);
        // The terminal is gone; under nohup it may go.
        struct sigaction hangup {};
        if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) signals.add(SIGHUP);
    }

    void accept() {
        acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
            if (error == asio::error::operation_aborted) return;
            if (error) return accept_later();  // no more files may be open, most likely
            if (shared.connections >= most_connections)
                turn_away(std::move(socket));
            else
                serve(std::move(socket));
            accept();
        });
    }

    void accept_later() {
        again.expires_after(std::chrono::milliseconds(100));
        again.async_wait([this](beast::error_code error) {
            if (!error) accept();
        });
    }

    void serve(tcp::socket socket) {
        beast::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        beast::tcp_stream stream(std::move(socket));
        if (tls)
            std::make_shared<Connection<beast::ssl_stream<beast::tcp_stream>>>(
                beast::ssl_stream<beast::tcp_stream>(std::move(stream), *tls), shared)
                ->begin();
        else
            std::make_shared<Connection<beast::tcp_stream>>(std::move(stream), shared)->begin();
    }

    static void turn_away(tcp::socket socket) {
        static constexpr std::string_view full =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
            "Content-Type: application/json\r\nContent-Length: 53\r\n\r\n"
            "{\"error\":{\"message\":\"too many connections are open\"}}";
        beast::error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(full), ignored);
    }

    void wait_for_signal(std::function<void()> then) {
        signals.async_wait([this, then = std::move(then)](beast::error_code error, int) {
            if (error) return;
            then();
            wait_for_signal(then);
        });
    }
};

HttpServer::HttpServer(const Listen& listen, Handler handler, std::function<void()> at_signal)
    : inner_(std::make_unique<Inner>(listen, std::move(handler))) {
    inner_->wait_for_signal(std::move(at_signal));
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return inner_->acceptor.local_endpoint().port(); }

std::size_t HttpServer::connections() const { return inner_->shared.connections; }

void HttpServer::run() {
    inner_->accept();
    inner_->io.run();
}

void HttpServer::stop() {
    asio::post(inner_->io, [this] { inner_->io.stop(); });
}

void HttpServer::after(Duration time, std::function<void()> then) {
    // Shared: the timer must live until it has called.
    const auto timer = std::make_shared<asio::steady_timer>(inner_->io, time);
    timer->async_wait([timer, then = std::move(then)](beast::error_code error) {
        if (!error) then();
    });
}

}  // namespace pipeweaver::service
