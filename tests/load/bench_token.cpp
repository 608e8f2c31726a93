// Who may listen to others than this machine, and whether an answer's time tells a right token from a wrong one.
#include "apps/programs.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"
#include "tests/load/certificate.hpp"
#include "tests/load/served_process.hpp"
#include "tests/load/service_bench.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <sys/stat.h>

namespace pipeweaver::load {

namespace {

constexpr std::size_t token_length = 32;
constexpr std::int64_t warm_up = 100;  // tries of each that do not count
// Of the median: another answer is another text to write; of the same one hardly anything may differ.
constexpr double of_another_answer = 0.1, of_the_same_answer = 0.02;
constexpr Duration to_refuse = std::chrono::seconds(20);
constexpr Duration to_let_in = std::chrono::seconds(20);

// Microseconds from question to answer.
struct Tries {
    int status = 0;  // that is expected
    std::string token;
    std::vector<double> us;
    std::size_t others = 0;  // answers of another status

    // How far the quartiles lie apart: half of all tries differ by more.
    double spread() const {
        std::vector<double> sorted = us;
        std::sort(sorted.begin(), sorted.end());
        return sorted[3 * (sorted.size() - 1) / 4] - sorted[(sorted.size() - 1) / 4];
    }
};

class TokenBench {
public:
    TokenBench(const ServiceBench& bench, const OnVerdict& on)
        : bench_(bench), on_(on), draw_(static_cast<std::uint64_t>(bench.seed)) {
        write_certificate(folder_ / "certificate.pem", folder_ / "key.pem");
        for (std::size_t k = 0; k < token_length; ++k) token_ += static_cast<char>('a' + draw_.below(26));
        write_files({{folder_ / "token", token_ + "\n"}});
        static_cast<void>(::chmod((folder_ / "token").c_str(), 0600));
    }

    void run() {
        refuse_others();
        ServedProcess server(bench_.served_with(with_token(with_tls({}))), folder_ / "log");
        service::Client client({server.url(), token_, folder_ / "certificate.pem"});
        Tries right{200, token_, {}}, wrong_first{401, token_with(0), {}},
            wrong_last{401, token_with(token_length - 1), {}};
        std::array<Tries*, 4> all{&right, &wrong_first, &right, &wrong_last};
        for (std::int64_t k = 0; k < warm_up; ++k)
            for (Tries* one : all) static_cast<void>(ask(client, *one));
        // As many right ones as wrong ones, of which half are wrong in the first letter and half in the last.
        for (std::int64_t k = 0; 2 * k < bench_.tries; ++k) {
            std::swap(all[draw_.below(4)], all[3]);
            for (Tries* one : all) one->us.push_back(ask(client, *one));
        }
        say_statuses({&right, &wrong_first, &wrong_last});
        Tries wrong{401, {}, wrong_first.us};
        wrong.us.insert(wrong.us.end(), wrong_last.us.begin(), wrong_last.us.end());
        say_times("right and wrong tokens, median", right, wrong, of_another_answer);
        say_times("wrong in the first letter, in the last", wrong_first, wrong_last, of_the_same_answer);
    }

private:
    std::vector<std::string> with_tls(std::vector<std::string> options) const {
        options.insert(options.end(),
                       {"--tls-certificate", folder_ / "certificate.pem", "--tls-key", folder_ / "key.pem"});
        return options;
    }

    std::vector<std::string> with_token(std::vector<std::string> options) const {
        options.insert(options.end(), {"--token-file", folder_ / "token"});
        return options;
    }

    std::string token_with(std::size_t wrong) const {
        std::string token = token_;
        token[wrong] = token[wrong] == 'z' ? 'a' : static_cast<char>(token[wrong] + 1);
        return token;
    }

    // For all addresses: with nothing, with a token alone, with TLS alone.
    void refuse_others() const {
        const std::vector<std::string> open{"serve", "--http", "0.0.0.0:0", "--quiet"};
        std::size_t refused = 0;
        std::string first;
        const std::array asked{open, with_token(open), with_tls(open)};
        for (const auto& options : asked) {
            ChildProcess serve(apps::program_beside("pipeweaver"), options, folder_ / "said");
            const int status = serve.wait(to_refuse);
            const bool says_why = serve.output().find("needs --token-file") != std::string::npos;
            if (status == static_cast<int>(ErrorKind::input) && says_why)
                ++refused;
            else if (first.empty())
                first = fmt::format(": exit status {}: {}", status, serve.output());
        }
        on_({"token",
             "0.0.0.0 refused without token and TLS",
             fmt::format("{} of {} ways{}", refused, asked.size(), first),
             "all, exit status 2",
             refused == asked.size(),
             {{"refused", refused}}});
    }

    static double ask(service::Client& client, Tries& tries) {
        client.use_token(tries.token);
        const Stopwatch watch;
        const auto reply = client.ask("GET", "/v1/sessions", {}, to_let_in);
        const double us = 1e6 * watch.seconds();
        if (reply.status != tries.status) ++tries.others;
        return us;
    }

    void say_statuses(const std::vector<const Tries*>& all) const {
        std::size_t tries = 0, others = 0;
        for (const Tries* one : all) {
            tries += one->us.size();
            others += one->others;
        }
        on_({"token",
             "right tokens not let in, wrong ones let in",
             fmt::format("{} of {}", others, tries),
             "0",
             others == 0,
             {{"wrong", others}, {"tries", tries}}});
    }

    // Noise is what tries of one kind differ by among themselves, or so small a part of their time.
    void say_times(const std::string& what, const Tries& one, const Tries& other, double part) const {
        const double first = bench::median(one.us), second = bench::median(other.us);
        const double noise = std::max({one.spread(), other.spread(), part * first});
        on_({"token",
             what,
             fmt::format("{:.1f} us, {:.1f} us: {:+.1f} us", first, second, second - first),
             fmt::format("within noise, {:.1f} us", noise),
             std::abs(second - first) <= noise,
             {{"first_us", first}, {"second_us", second}, {"noise_us", noise}, {"tries", one.us.size()}}});
    }

    const ServiceBench& bench_;
    const OnVerdict& on_;
    TemporaryFolder folder_;
    Random draw_;
    std::string token_;
};

}  // namespace

void bench_token(const ServiceBench& bench, const OnVerdict& on) { TokenBench(bench, on).run(); }

}  // namespace pipeweaver::load
