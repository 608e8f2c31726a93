#include "pipeweaver/traces/kinds.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/costdb/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::traces {

namespace {

constexpr std::array<std::string_view, kinds> kind_names{
    "compute",   "gemm",       "attention",  "convolution",    "memory",     "copy",
    "unknown",   "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
    "send_recv", "collective", "launch",     "host",           "idle"};

// Table: words of a collective's or its kernel's name, in small letters without '_', and what it is.
constexpr std::array<std::pair<std::string_view, Kind>, 9> collective_words{{
    {"reducescatter", Kind::reduce_scatter},
    {"allreduce", Kind::all_reduce},
    {"allgather", Kind::all_gather},
    {"alltoall", Kind::all_to_all},
    {"broadcast", Kind::broadcast},
    {"sendrecv", Kind::send_recv},
    {"send", Kind::send_recv},
    {"recv", Kind::send_recv},
    {"transfer", Kind::send_recv},
}};

constexpr double largest_factor = 1000;
constexpr std::string_view all_communication = "nccl", of_a_rank = "rank";

[[noreturn]] void fail_unknown(std::string_view name, const std::map<std::int64_t, std::size_t>& ranks) {
    std::vector<std::string> known(kind_names.begin(), kind_names.end());
    known.emplace_back(all_communication);
    for (const auto& [rank, place] : ranks) known.push_back(fmt::format("{}{}", of_a_rank, rank));
    fail(ErrorKind::input, "--what-if: {}", unknown("name", name, known));
}

void multiply(Factors& factors, std::string_view name, double factor,
              const std::map<std::int64_t, std::size_t>& ranks) {
    if (name.starts_with(of_a_rank)) {
        const auto rank = integer_in(name.substr(of_a_rank.size()), 0, 1'000'000);
        if (!rank || !ranks.contains(*rank)) fail_unknown(name, ranks);
        factors.of_rank.try_emplace(*rank, 1).first->second *= factor;
        return;
    }
    bool known = false;
    for (std::size_t k = 0; k < kinds; ++k) {
        if (name != kind_names[k] && (name != all_communication || !is_communication(static_cast<Kind>(k)))) continue;
        factors.of_kind[k] *= factor;
        known = true;
    }
    if (!known) fail_unknown(name, ranks);
}

// Factors that meet, on a kind and on a rank, are one.
double largest_of(const Factors& factors) {
    double of_rank = 1, largest = 0;
    for (const auto& [rank, factor] : factors.of_rank) of_rank = std::max(of_rank, factor);
    for (std::size_t k = 0; k < kinds; ++k)
        largest = std::max(largest, factors.of_kind[k] * (is_work(static_cast<Kind>(k)) ? of_rank : 1));
    return largest;
}

}  // namespace

std::string_view name_of(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

bool is_communication(Kind kind) { return kind >= Kind::all_reduce && kind <= Kind::collective; }

bool is_work(Kind kind) { return kind <= Kind::unknown; }

Kind kind_of_collective(std::string_view name) {
    std::string plain = in_lower_case(name);
    std::erase(plain, '_');
    const auto* found = std::find_if(collective_words.begin(), collective_words.end(),
                                     [&](const auto& word) { return contains(plain, word.first); });
    return found == collective_words.end() ? Kind::collective : found->second;
}

Kind kind_of_kernel(std::string_view name) {
    switch (costdb::class_of_kernel(name)) {
        case costdb::OperatorClass::gemm:
            return Kind::gemm;
        case costdb::OperatorClass::attention:
            return Kind::attention;
        case costdb::OperatorClass::collective:
            return kind_of_collective(name);
        case costdb::OperatorClass::convolution:
            return Kind::convolution;
        case costdb::OperatorClass::memory_bound:
            return Kind::memory;
        case costdb::OperatorClass::copy:
            return Kind::copy;
        case costdb::OperatorClass::unknown:
            break;
    }
    return Kind::unknown;
}

Factors factors_of(std::string_view text, const std::map<std::int64_t, std::size_t>& ranks) {
    Factors factors;
    for (const std::string& part : parts_of(text)) {
        const auto equals = part.find('=');
        const auto factor = equals == std::string::npos
                                ? std::nullopt
                                : number_in(std::string_view(part).substr(equals + 1), 0, largest_factor);
        if (!factor)
            fail(ErrorKind::input, "--what-if: {}",
                 must_be(part, fmt::format("NAME=FACTOR with a number from 0 to {}", largest_factor)));
        multiply(factors, std::string_view(part).substr(0, equals), *factor, ranks);
    }
    if (largest_of(factors) > largest_factor)
        fail(ErrorKind::input, "--what-if: factors that meet are multiplied: to {}, must be at most {}",
             largest_of(factors), largest_factor);
    return factors;
}

}  // namespace pipeweaver::traces
