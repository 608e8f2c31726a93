#include "pipeweaver/costdb/evaluate.hpp"

#include "costdb/point_kinds.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/costdb/leave_out.hpp"

#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

const std::array<std::string, 6> left_out_operators{"gemm", "attention", "collective", "p2p", "moe", "gdn"};

template <class Point>
bool counts_as_big(const Point& point) {
    if constexpr (std::is_same_v<Point, GemmPoint> || std::is_same_v<Point, AttentionPoint>)
        return is_big(point);
    else
        return false;
}

template <class Point>
LeftOut left_out(const std::string& op, const Asked<Point>& a, bool plane) {
    return {op,
            kind_of(a.point),
            plane,
            counts_as_big(a.point),
            a.answer.basis,
            static_cast<double>(a.point.latency_ns),
            static_cast<double>(a.answer.duration.count()),
            a.answer.error_percent};
}

/// Which points one experiment leaves out.
template <class Point>
struct Experiment {
    bool plane = false;
    std::function<bool(const Point&, std::size_t)> leaves_out;
};

template <class Point>
std::vector<Experiment<Point>> folds_of(const EvaluateOptions& options) {
    std::vector<Experiment<Point>> all;
    for (std::size_t fold = 0; fold < options.folds; ++fold)
        all.push_back({false, [options, fold](const Point&, std::size_t index) {
                           return fold_of(options.seed, index, options.folds) == fold;
                       }});
    return all;
}

template <class Point>
std::vector<std::int64_t> values_of(const std::vector<Point>& points, std::int64_t Point::*axis) {
    std::set<std::int64_t> values;
    for (const auto& point : points) values.insert(point.*axis);
    return {values.begin(), values.end()};
}

/// Each n with a k of its own; the shorter list goes round.
std::vector<Experiment<GemmPoint>> planes_of(const std::vector<GemmPoint>& points) {
    const auto n = values_of(points, &GemmPoint::n), k = values_of(points, &GemmPoint::k);
    std::vector<Experiment<GemmPoint>> all;
    for (std::size_t i = 0; i < std::max(n.size(), k.size()); ++i) {
        // Not the k of the same rank: a large n beside a small k, and the ends not together.
        const auto out_n = n[i % n.size()], out_k = k[(i + k.size() / 2) % k.size()];
        all.push_back({true, [=](const GemmPoint& p, std::size_t) { return p.n == out_n || p.k == out_k; }});
    }
    return all;
}

std::vector<Experiment<AttentionPoint>> planes_of(const std::vector<AttentionPoint>& points) {
    std::vector<Experiment<AttentionPoint>> all;
    for (const auto length : values_of(points, &AttentionPoint::seq_len))
        all.push_back({true, [=](const AttentionPoint& p, std::size_t) { return p.seq_len == length; }});
    return all;
}

template <class Point>
std::vector<Experiment<Point>> planes_of(const std::vector<Point>&) {
    return {};
}

/// The device with the points of one operator alone: of the others no answer is asked.
template <class Point>
CostDatabase only(const Measurements& from, std::vector<Point> Measurements::*points) {
    Measurements rest;
    rest.device = from.device;
    rest.origins = from.origins;
    rest.links_of = from.links_of;
    rest.collectives_of = from.collectives_of;
    rest.*points = from.*points;
    return CostDatabase::from(std::move(rest));
}

template <class Point>
std::vector<LeftOut> run(const CostDatabase& database, const std::string& op, std::vector<Point> Measurements::*points,
                         const EvaluateOptions& options, const Executor& execute) {
    const auto subject = only(database.measurements(), points);
    auto experiments = folds_of<Point>(options);
    for (auto& plane : planes_of(database.measurements().*points)) experiments.push_back(std::move(plane));
    std::vector<std::vector<LeftOut>> slots(experiments.size());
    run_jobs(execute, experiments.size(), [&](std::size_t i) {
        for (const auto& a : leave_out(subject, points, experiments[i].leaves_out))
            slots[i].push_back(left_out(op, a, experiments[i].plane));
    });
    std::vector<LeftOut> all;
    for (const auto& slot : slots) all.insert(all.end(), slot.begin(), slot.end());
    return all;
}

}  // namespace

double LeftOut::error_percent() const { return 100 * std::abs(answer_ns / truth_ns - 1); }

std::span<const std::string> evaluated_operators() { return left_out_operators; }

std::vector<LeftOut> evaluate(const CostDatabase& database, const std::string& op, const EvaluateOptions& options,
                              const Executor& execute) {
    switch (index_of("operator", op, left_out_operators)) {
        case 0:
            return run(database, op, &Measurements::gemm, options, execute);
        case 1:
            return run(database, op, &Measurements::attention, options, execute);
        case 2:
            if (!database.measurements().collectives_of.empty()) return {};  // another device's
            return run(database, op, &Measurements::collective, options, execute);
        case 3:
            if (!database.measurements().links_of.empty()) return {};  // another device's
            return run(database, op, &Measurements::point_to_point, options, execute);
        case 4:
            return run(database, op, &Measurements::moe, options, execute);
        default:
            return run(database, op, &Measurements::linear, options, execute);
    }
}

std::vector<EvaluationRow> summary(std::span<const LeftOut> points) {
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
    std::map<Key, std::vector<const LeftOut*>> groups;
    for (const auto& p : points)
        for (const char* size : {"all", p.big ? "big" : "small"})
            for (const std::string_view basis : {std::string_view("any"), name_of(p.basis)})
                groups[{p.op, p.kind, p.plane ? "planes" : "points", size, std::string(basis)}].push_back(&p);
    std::vector<EvaluationRow> rows;
    for (const auto& [key, members] : groups) {
        std::vector<double> found, printed;
        std::size_t within = 0;
        for (const auto* p : members) {
            found.push_back(p->error_percent());
            printed.push_back(p->printed_percent);
            within += p->within() ? 1 : 0;
        }
        std::sort(found.begin(), found.end());
        std::sort(printed.begin(), printed.end());
        const auto& [op, kind, out, size, basis] = key;
        rows.push_back({op,
                        kind,
                        out,
                        size,
                        basis,
                        members.size(),
                        {quantile(found, 0.5), quantile(found, 0.9)},
                        static_cast<double>(within) / static_cast<double>(members.size()),
                        quantile(printed, 0.5)});
    }
    return rows;
}

}  // namespace pipeweaver::costdb
