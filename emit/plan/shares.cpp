#include "emit/plan/shares.hpp"

#include "emit/report/report_parts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <numeric>

namespace pipeweaver::emit {

using namespace emulator;
using planner::TimeShares;
using report_parts::percent;
using Writer = nlohmann::ordered_json;

namespace {

constexpr std::array bases{costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated,
                           costdb::Basis::modelled};

double of_class(const TimeShares& shares, std::size_t c) {
    return std::accumulate(std::begin(shares.by[c]), std::end(shares.by[c]), 0.0);
}

}  // namespace

std::string shares_text(const TimeShares& shares) {
    std::string text = "busy time rests on costs that are";
    for (const costdb::Basis b : bases) text += fmt::format(" {} {},", costdb::name_of(b), percent(shares.of(b)));
    text.back() = '\n';
    text += "and goes to";
    for (std::size_t c = 0; c < operator_classes; ++c)
        if (const double share = of_class(shares, c); share > 0)
            text += fmt::format(" {} {},", name_of(static_cast<OperatorClass>(c)), percent(share));
    text.back() = '\n';
    return text;
}

Writer shares_json(const TimeShares& shares) {
    Writer by_basis = Writer::object(), by_operator = Writer::object();
    for (const costdb::Basis basis : bases) by_basis[std::string(costdb::name_of(basis))] = shares.of(basis);
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const double sum = of_class(shares, c);
        if (static_cast<OperatorClass>(c) == OperatorClass::experts && sum == 0) continue;  // the network has none
        by_operator[std::string(name_of(static_cast<OperatorClass>(c)))] = sum;
    }
    return {{"by_basis", std::move(by_basis)}, {"by_operator", std::move(by_operator)}};
}

}  // namespace pipeweaver::emit
