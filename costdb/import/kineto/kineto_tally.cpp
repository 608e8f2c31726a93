#include "costdb/import/kineto/kineto_tally.hpp"

#include "costdb/tables/collective_keys.hpp"
#include "pipeweaver/base/error.hpp"

namespace pipeweaver::costdb {

namespace {

constexpr std::size_t most_shapes = std::size_t{1} << 17;
constexpr std::size_t most_rows = std::size_t{1} << 16;

}  // namespace

std::uint32_t TraceTally::number_of(const OperatorShape& shape) {
    const auto [place, is_new] = numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
    if (is_new) {
        if (shapes_.size() == most_shapes)
            fail(ErrorKind::limit, "{}: has more than {} shapes of operators", file_, most_shapes);
        shapes_.push_back(&place->first);
        repetitions_.emplace_back();
    }
    return place->second;
}

std::size_t TraceTally::row(const std::string& name, bool is_copy, OperatorClass which, std::string_view why_not) {
    const auto [place, is_new] =
        rows_.try_emplace(std::tuple(name, is_copy, which, std::string(why_not)), report_.rows.size());
    if (is_new) {
        if (report_.rows.size() == most_rows)
            fail(ErrorKind::limit, "{}: has more than {} kernels of different names", file_, most_rows);
        report_.rows.push_back({name, which, is_copy, std::string(why_not), 0, 0});
    }
    return place->second;
}

void TraceTally::count(std::size_t row_number, const DeviceWork& work, std::int64_t times) {
    auto& row = report_.rows[row_number];
    const auto ns = times * work.duration_ns;
    row.count += times;
    row.total_ns += ns;
    (work.is_copy ? report_.copies : report_.kernels) += times;
    (work.is_copy ? report_.copies_ns : report_.kernels_ns) += ns;
    if (row.why_not.empty()) {
        report_.mapped += times;
        report_.mapped_ns += ns;
    }
}

void TraceTally::make_points() {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        auto& times = repetitions_[i];
        if (times.empty() || !shapes_[i]->why_not.empty()) continue;
        times.sort();
        make_point(*shapes_[i], times);
    }
}

void TraceTally::make_point(const OperatorShape& shape, const Repetitions& times) {
    const auto& size = shape.sizes;
    auto& into = report_.points;
    if (shape.which == OperatorClass::collective) {
        auto point = collective_key(shape.collective, shape.dtype, size[0], size[1], size[2]);
        point.latency_ns = times.shortest();
        point.spread_permille = times.spread_permille(point.latency_ns);
        into.collective.push_back(point);
        return;
    }
    const auto latency = times.median(), spread = times.spread_permille(latency);
    if (shape.which == OperatorClass::gemm)
        into.gemm.push_back({shape.dtype, shape.pass, size[0], size[1], size[2], latency, spread});
    else
        into.attention.push_back(
            {shape.dtype, shape.pass, size[0], size[1], size[2], size[3], size[4], shape.causal, latency, spread});
}

}  // namespace pipeweaver::costdb
