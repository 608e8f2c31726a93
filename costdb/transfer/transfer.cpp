#include "pipeweaver/costdb/transfer.hpp"

#include "costdb/import/table_reader.hpp"
#include "costdb/store/merge.hpp"
#include "costdb/tables/base_cost.hpp"
#include "costdb/transfer/correction.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace pipeweaver::costdb {

namespace {

GemmShape shape_of(const GemmPoint& p) {
    return {static_cast<double>(p.m), static_cast<double>(p.n), static_cast<double>(p.k)};
}

double ns_of(const Cost& cost) { return static_cast<double>(cost.duration.count()); }

Quantiles quantiles_of(std::vector<double> percents) {
    std::sort(percents.begin(), percents.end());
    const auto last = static_cast<double>(percents.size() - 1);
    return {percents[static_cast<std::size_t>(0.5 * last)], percents[static_cast<std::size_t>(0.9 * last)]};
}

/// Nine of ten errors of further points do not exceed it: the split-conformal quantile (Lei et al. 2018, section 2).
double conformal(std::vector<double> percents) {
    std::sort(percents.begin(), percents.end());
    const auto rank = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(percents.size() + 1)));
    return percents[std::min(rank, percents.size()) - 1];
}

bool is_forward(const GemmPoint& p, Dtype dtype) { return p.pass == Pass::forward && p.dtype == dtype; }

// Half of the donor's deviation from its roofline is its own: waves of its tiles, its clocks, noise.
constexpr double believed = 0.5;

/// The transfer of one number format.
class Carrier {
public:
    Carrier(const CostDatabase& donor, const Measurements& measured, Dtype dtype)
        : from_(facts_of(donor.device())), to_(facts_of(measured.device)), report_{.dtype = dtype} {
        std::vector<double> by_peak, left_out, corrections;
        std::vector<Place> places;
        for (const auto& p : measured.gemm) {
            if (!is_forward(p, dtype)) continue;
            const double donors = ns_of(donor.cost(Gemm{.dtype = dtype, .m = p.m, .n = p.n, .k = p.k}));
            places.push_back(place_of(p.m, p.n, p.k));
            corrections.push_back(std::log(static_cast<double>(p.latency_ns) / without_correction(p, donors)));
            const double scaled = donors * from_.peak(dtype) / to_.peak(dtype);
            by_peak.push_back(100 * std::abs(scaled / static_cast<double>(p.latency_ns) - 1));
        }
        require(donor, places.size());
        const auto said = left_one_out(places, corrections);
        for (std::size_t i = 0; i < said.size(); ++i)
            left_out.push_back(100 * std::abs(std::exp(said[i] - corrections[i]) - 1));
        report_.measured = places.size();
        report_.by_peak = quantiles_of(by_peak);
        report_.left_out = quantiles_of(left_out);
        report_.error_percent = conformal(left_out);
        correction_.emplace(std::move(places), corrections);
    }

    /// The donor's point as one of the new device.
    GemmPoint carried(GemmPoint p) const {
        const double correction = correction_->at(place_of(p.m, p.n, p.k));
        const double ns = without_correction(p, static_cast<double>(p.latency_ns)) * std::exp(correction);
        p.latency_ns = std::max<std::int64_t>(1, std::llround(ns));
        p.spread_permille = permille();
        return p;
    }

    std::int64_t permille() const {
        constexpr double most = 10'000;
        return std::max<std::int64_t>(1, std::llround(std::min(most, 10 * report_.error_percent)));
    }

    TransferReport report_of(std::size_t transferred) const {
        auto report = report_;
        report.transferred = transferred;
        return report;
    }

private:
    /// The new device's roofline times what is believed of the donor's ratio to its own.
    double without_correction(const GemmPoint& p, double donor_ns) const {
        const double donors = 1e3 * gemm_roofline_us(from_, p.dtype, shape_of(p));
        return 1e3 * gemm_roofline_us(to_, p.dtype, shape_of(p)) * std::pow(donor_ns / donors, believed);
    }

    void require(const CostDatabase& donor, std::size_t points) const {
        if (points < fewest_measured)
            fail(ErrorKind::input, "{} forward GEMMs in {} are measured, at least {} are needed for a transfer from {}",
                 points, name_of(report_.dtype), fewest_measured, donor.device());
    }

    DeviceFacts from_, to_;
    TransferReport report_;
    std::optional<Correction> correction_;
};

/// Number formats that both have forward points of.
std::vector<Dtype> shared_dtypes(const Measurements& a, const Measurements& b) {
    std::vector<Dtype> shared;
    for (std::size_t i = 0; i < dtype_names().size(); ++i) {
        const auto dtype = static_cast<Dtype>(i);
        const auto has = [&](const Measurements& in) {
            return std::any_of(in.gemm.begin(), in.gemm.end(), [&](const auto& p) { return is_forward(p, dtype); });
        };
        if (has(a) && has(b)) shared.push_back(dtype);
    }
    return shared;
}

}  // namespace

std::vector<Gemm> shapes_to_measure(const CostDatabase& donor, std::span<const NeededGemm> needs, std::size_t points) {
    struct Format {
        std::vector<std::size_t> needs;
        std::vector<Place> places;
        std::vector<double> weights;
    };
    std::map<Dtype, Format> formats;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        const auto& gemm = needs[i].gemm;
        auto& format = formats[gemm.dtype];
        format.needs.push_back(i);
        format.places.push_back(place_of(gemm.batch * gemm.m, gemm.n, gemm.k));
        format.weights.push_back(std::sqrt(needs[i].times * ns_of(donor.cost(gemm))));
    }
    std::vector<std::size_t> chosen;
    for (const auto& [dtype, format] : formats)
        for (const auto i : k_medoids(format.places, format.weights, std::min(points, format.needs.size())))
            chosen.push_back(format.needs[i]);
    std::sort(chosen.begin(), chosen.end());
    std::vector<Gemm> gemms;
    gemms.reserve(chosen.size());
    for (const auto i : chosen) gemms.push_back(needs[i].gemm);
    return gemms;
}

Transferred transfer(const CostDatabase& donor, Measurements measured) {
    const auto& theirs = donor.measurements();
    const auto dtypes = shared_dtypes(measured, theirs);
    if (dtypes.empty())
        fail(ErrorKind::input, "no forward GEMM is measured in a number format that the donor {} has a table of",
             donor.device());
    Transferred result{std::move(measured), {}};
    auto& points = result.points;
    const auto own = points.gemm;
    for (const auto dtype : dtypes) {
        const Carrier carrier(donor, points, dtype);
        const auto origin = static_cast<std::int64_t>(points.origins.size());
        std::vector<GemmPoint> carried;
        for (const auto& p : theirs.gemm) {
            const bool is_own =
                std::any_of(own.begin(), own.end(), [&](const auto& o) { return key_of(o) == key_of(p); });
            if (!is_forward(p, dtype) || is_own) continue;
            carried.push_back(carrier.carried(p));
            carried.back().origin = origin;
        }
        result.reports.push_back(carrier.report_of(carried.size()));
        points.gemm.insert(points.gemm.end(), carried.begin(), carried.end());
        points.origins.push_back({fmt::format("{} GEMM {}", donor.device(), name_of(dtype)),
                                  fmt::format("transferred from {}", donor.device()), "as the donor's", "",
                                  carrier.permille()});
    }
    return result;
}

void write_database(const std::filesystem::path& path, const Measurements& points) {
    write_files({{path, write_store(by_origin(points))}});
}

Measurements read_measurements(const std::filesystem::path& path, std::string_view device, const std::string& origin,
                               const std::string& licence) {
    auto text = read_file(path);
    Measurements points;
    points.device = facts_of(device).name;
    points.origins.push_back({path.filename().string(), origin, licence, sha256(text)});
    read_points(CsvTable(path.string(), std::move(text)), points);
    merge_equal(points);
    return points;
}

}  // namespace pipeweaver::costdb
