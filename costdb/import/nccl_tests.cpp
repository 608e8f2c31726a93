#include "costdb/import/nccl_tests.hpp"

#include "costdb/tables/checks.hpp"
#include "costdb/tables/collective_keys.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pipeweaver::costdb {

namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
    Words words;
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
        const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

bool has(const Words& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// "# size count type redop root time algbw busbw #wrong time ..."; some launchers cut the '#'.
bool is_header(const Words& words) {
    return has(words, "size") && has(words, "count") && has(words, "type") && has(words, "busbw");
}

enum class Test : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, send_recv };
constexpr std::array<std::pair<std::string_view, Test>, 6> tests{{{"all_gather_perf", Test::all_gather},
                                                                  {"reduce_scatter_perf", Test::reduce_scatter},
                                                                  {"all_reduce_perf", Test::all_reduce},
                                                                  {"alltoall_perf", Test::all_to_all},
                                                                  {"all_to_all_perf", Test::all_to_all},
                                                                  {"sendrecv_perf", Test::send_recv}}};

std::optional<Test> test_in(std::string_view text) {
    for (const auto& [word, test] : tests)
        if (text.find(word) != std::string_view::npos) return test;
    return std::nullopt;
}

struct Type {
    std::string_view name;
    Dtype dtype;
    bool reduces_alike;  // an all_reduce of it costs what one of `dtype` does
};
constexpr std::array<Type, 15> types{{{"float", Dtype::fp32, true},
                                      {"half", Dtype::fp16, true},
                                      {"bfloat16", Dtype::bf16, true},
                                      {"int8", Dtype::int8, true},
                                      {"uint8", Dtype::int8, true},
                                      {"char", Dtype::int8, true},
                                      {"f8e4m3", Dtype::fp8, true},
                                      {"f8e5m2", Dtype::fp8, true},
                                      {"fp8_e4m3", Dtype::fp8, true},
                                      {"fp8_e5m2", Dtype::fp8, true},
                                      {"int32", Dtype::fp32, true},
                                      {"uint32", Dtype::fp32, true},
                                      {"int", Dtype::fp32, true},
                                      {"int64", Dtype::fp32, false},
                                      {"double", Dtype::fp32, false}}};

/// Which columns of the current table are what.
struct Columns {
    std::size_t count = 0, time = 0, wrong = 0, in_place = 0;  // 0: it has none
    std::size_t redop = 0;
};

class Reader {
public:
    Reader(const std::string& name, Measurements& into) : name_(name), into_(into), file_test_(test_in(name)) {}

    void line(std::string_view text) {
        ++line_;
        const auto words = words_of(text);
        if (words.empty()) return;
        if (const auto test = test_in(text)) test_ = test;
        if (is_header(words))
            header(words);
        else if (has(words, "Rank") && has(words, "on") && has(words, "device"))
            rank(words);
        else if (has(words, "nThread") && has(words, "nGpus"))
            begin_run();
        else if (words.size() >= 3 && columns_.time > 0 && is_row(words))
            row(words);
        else if (columns_.time > 0 && has(words, "(elements)") && !has(words, "(us)"))
            refuse("times are not in microseconds");
    }

    NcclTests result() const { return result_; }
    bool any() const { return any_; }

private:
    void begin_run() {
        // Every process of a launch without MPI prints this line; only one that follows a table starts anew.
        if (any_since_begin_) {
            hosts_.clear();
            groups_.clear();
            ranks_.clear();
        }
        any_since_begin_ = false;
        columns_ = {};
    }

    void rank(const Words& words) {
        const auto after = [&](std::string_view word) -> std::string_view {
            const auto at = std::find(words.begin(), words.end(), word);
            return at == words.end() || at + 1 == words.end() ? std::string_view() : *(at + 1);
        };
        const std::string group(has(words, "Group") ? after("Group") : "0");
        if (!ranks_.insert(std::string(after("Rank"))).second)
            refuse(fmt::format("rank {} is there twice: the processes did not know of each other (built without MPI)",
                               after("Rank")));
        ++hosts_[{group, std::string(after("on"))}];
        groups_.insert(group);
        const auto bracket = std::find_if(words.begin(), words.end(), [](auto word) { return word.ends_with(']'); });
        std::string product;
        for (auto word = bracket == words.end() ? bracket : bracket + 1; word != words.end(); ++word) {
            if (!product.empty()) product += ' ';
            product += *word;
        }
        if (!result_.product.empty() && product != result_.product)
            refuse("the ranks run on different devices, '" + result_.product + "' and '" + product + "'");
        result_.product = product;
    }

    void header(Words words) {
        if (words.front() == "#") words.erase(words.begin());
        if (words.front().starts_with('#')) words.front().remove_prefix(1);
        if (has(words, "cputime")) refuse("has cputime, the host's time; without -C the collective's is printed");
        columns_ = {};
        columns_.count = words.size();
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == "redop") columns_.redop = i;
            if (words[i] == "#wrong" && columns_.wrong == 0) columns_.wrong = i;
            if (words[i] == "time") (columns_.time == 0 ? columns_.time : columns_.in_place) = i;
        }
        if (columns_.time == 0) refuse("column 'time' is missing");
    }

    static bool is_row(const Words& words) {
        const bool typed =
            std::any_of(types.begin(), types.end(), [&](const auto& type) { return type.name == words[2]; });
        return number<std::int64_t>(words[0]) && number<std::int64_t>(words[1]) &&
               (typed || words[2].starts_with("u") || words[2].starts_with("f8"));
    }

    void row(const Words& words) {
        const auto last = std::max({columns_.time, columns_.in_place, columns_.wrong});
        // The redop of collectives that have none was printed as blanks before it was "none".
        const bool blank_redop =
            columns_.redop > 0 && words.size() > columns_.redop && number<double>(words[columns_.redop]).has_value();
        const std::size_t missing = blank_redop ? 1 : 0;
        if (words.size() + missing <= last)
            refuse(fmt::format("has {} cells, the header {}", words.size(), columns_.count));
        const auto cell = [&](std::size_t column) { return words[column - missing]; };
        if (columns_.wrong > 0 && number<double>(cell(columns_.wrong)).value_or(0) > 0)
            refuse("#wrong: is " + std::string(cell(columns_.wrong)) + ": the collective computed wrong results");
        const double us = time(cell(columns_.time));
        any_ = any_since_begin_ = true;
        add(*number<std::int64_t>(words[0]), words[2], us, columns_.in_place > 0 ? cell(columns_.in_place) : "");
    }

    double time(std::string_view text) const {
        const auto us = number<double>(text);
        if (!us || !std::isfinite(*us) || *us <= 0 || *us > longest_measured_us)
            refuse("time: " + must_be(text, "a number above 0 and up to 3600000000"));
        return *us;
    }

    void add(std::int64_t bytes, std::string_view type_name, double us, std::string_view in_place) {
        const auto test = test_ ? test_ : file_test_;
        if (!test) refuse("which collective this is, is not said; name the file after it, such as all_reduce_perf.txt");
        const auto type = std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.name == type_name; });
        if (bytes < 0 || bytes > largest_message) refuse("size: " + must_be(bytes, "0 to 2^50"));
        const bool reduces = *test == Test::all_reduce || *test == Test::reduce_scatter;
        if (bytes == 0 || type == types.end() || (reduces && !type->reduces_alike)) {
            ++result_.left_out;
            return;
        }
        const std::int64_t ns = std::max<std::int64_t>(1, std::llround(1e3 * us));
        const auto other = number<double>(in_place).value_or(us);
        const auto spread = std::min<std::int64_t>(std::llround(500 * std::abs(other - us) / us), 10'000);
        const auto [gpus, gpus_per_node] = group();
        if (*test == Test::send_recv) {
            into_.point_to_point.push_back({gpus > gpus_per_node ? 1 : 2, bytes, ns, spread});
            return;
        }
        auto point = collective_key(static_cast<CollectiveKind>(*test), type->dtype, gpus, gpus_per_node, bytes);
        point.latency_ns = ns;
        point.spread_permille = spread;
        into_.collective.push_back(point);
    }

    /// GPUs of a group, and the most of them on one host.
    std::pair<std::int64_t, std::int64_t> group() const {
        std::int64_t ranks = 0, on_a_host = 0;
        for (const auto& [place, count] : hosts_)
            if (place.first == *groups_.begin()) {
                ranks += count;
                on_a_host = std::max(on_a_host, count);
            }
        if (ranks < 2)
            refuse(
                fmt::format("the lines '# Rank .. on HOST device ..' before it name {} GPUs, allowed are 2 "
                            "or more",
                            groups_.empty() ? 0 : ranks));
        return {ranks, on_a_host};
    }

    [[noreturn]] void refuse(const std::string& what) const { fail(ErrorKind::input, "{}:{}: {}", name_, line_, what); }

    const std::string& name_;
    Measurements& into_;
    std::optional<Test> file_test_, test_;
    NcclTests result_;
    Columns columns_;
    std::map<std::pair<std::string, std::string>, std::int64_t> hosts_;  // (group, host) -> GPUs
    std::set<std::string> groups_, ranks_;
    std::size_t line_ = 0;
    bool any_ = false, any_since_begin_ = false;
};

template <class F>
void for_each_line(std::string_view text, F f) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        f(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace

bool is_nccl_tests(std::string_view text) {
    bool found = false;
    for_each_line(text, [&](std::string_view line) {
        found = found || (line.find("busbw") != std::string_view::npos && is_header(words_of(line)));
    });
    return found;
}

NcclTests read_nccl_tests(const std::string& name, std::string_view text, Measurements& into) {
    Reader reader(name, into);
    for_each_line(text, [&](std::string_view line) { reader.line(line); });
    if (!reader.any()) fail(ErrorKind::input, "{}: has the header of nccl-tests but no row", name);
    return reader.result();
}

}  // namespace pipeweaver::costdb
