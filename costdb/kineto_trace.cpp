#include "costdb/collective_keys.hpp"
#include "costdb/decimal_time.hpp"
#include "costdb/kernel_order.hpp"
#include "costdb/kineto_operators.hpp"
#include "costdb/kineto_reader.hpp"
#include "costdb/repetitions.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace pipeweaver::costdb {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t operators_at_a_time = std::int64_t{1} << 19;
constexpr std::size_t most_shapes = std::size_t{1} << 17;
constexpr std::size_t most_rows = std::size_t{1} << 16;
constexpr std::int64_t longest_ns = 3'600'000'000'000;

std::optional<std::int64_t> whole(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

/// An operator that was launched once.
struct Launch {
    std::int64_t external_id = 0;
    std::uint32_t shape = 0;
    std::uint32_t kernels = 0;
    std::int64_t total_ns = 0;
};

/// A kernel or copy, as far as the report is concerned.
struct DeviceWork {
    bool is_copy = false;
    std::int64_t start_ns = 0, duration_ns = 0;
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

std::string_view reason_of(OperatorClass which) {
    switch (which) {
        case OperatorClass::gemm:
        case OperatorClass::attention:
            return "the trace links it to no operator with a shape";
        case OperatorClass::collective:
            return "the trace does not say its message";
        case OperatorClass::convolution:
            return "no table holds convolutions";
        case OperatorClass::memory_bound:
            return "memory-bound: the trace does not say its traffic";
        case OperatorClass::copy:
            return "no table holds copies";
        case OperatorClass::unknown:
            break;
    }
    return "unknown kernel";
}

class TraceReading {
public:
    TraceReading(const fs::path& path, const TraceOptions& options) : path_(path), options_(options) {}

    TraceReport run() {
        std::int64_t known = 0;
        for (std::int64_t first = 0; first == 0 || first < known; first += operators_at_a_time) {
            known = collect(first);
            link(first == 0);
            for (const auto& launch : launches_)
                if (launch.total_ns > 0) repetitions_[launch.shape].add(launch.total_ns);
        }
        points();
        if (!options_.kernels.empty()) write_kernels();
        std::erase_if(report_.rows, [](const auto& row) { return row.count == 0; });
        std::sort(report_.rows.begin(), report_.rows.end(), [](const auto& a, const auto& b) {
            return std::tuple(-a.total_ns, a.name, a.why_not, a.which) <
                   std::tuple(-b.total_ns, b.name, b.why_not, b.which);
        });
        return std::move(report_);
    }

private:
    void read(const std::function<void(const TraceEvent&)>& take) {
        const auto facts = read_trace_events(path_, take);
        if (report_.readings++ == 0) {
            report_.sha256 = facts.sha256;
            report_.product = facts.product;
            report_.events = facts.events;
        } else if (report_.sha256 != facts.sha256) {
            fail(ErrorKind::io, "{}: changed while it was read (a trace is read twice: pipes cannot be used)",
                 path_.string());
        }
    }

    /// Holds the operators from the first-th on, as many as may be held. Returns how many there are in all.
    std::int64_t collect(std::int64_t first) {
        std::int64_t known = 0;
        launches_.clear();
        read([&](const TraceEvent& event) {
            if (event.category != "cpu_op" && event.category != "Operator") return;
            const auto id = whole(event.external_id);
            if (!id) return;
            const auto shape = operator_of(event, options_.gpus_per_node);
            if (!shape) return;
            if (known >= first && known < first + operators_at_a_time) launches_.push_back({*id, shape_number(*shape)});
            ++known;
        });
        std::stable_sort(launches_.begin(), launches_.end(),
                         [](const auto& a, const auto& b) { return a.external_id < b.external_id; });
        return known;
    }

    std::uint32_t shape_number(const OperatorShape& shape) {
        const auto [place, is_new] = shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
        if (is_new) {
            if (shapes_.size() == most_shapes)
                fail(ErrorKind::limit, "{}: has more than {} shapes of operators", path_.string(), most_shapes);
            shapes_.push_back(&place->first);
            repetitions_.emplace_back();
        }
        return place->second;
    }

    /// Accounts for all kernels at the first reading, later for those whose operators were not held before.
    void link(bool first) {
        read([&](const TraceEvent& event) {
            if (event.phase != "X") return;
            const bool is_copy = is_one_of(event.category, {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"});
            if (!is_copy && !is_one_of(event.category, {"kernel", "Kernel"})) return;
            const DeviceWork work{is_copy, time(event, "ts", event.start), time(event, "dur", event.duration)};
            if (work.duration_ns < 0 || work.duration_ns > longest_ns)
                refuse(event, "dur", event.duration, "0 to 3600000000");
            const auto own = collective_of(event, options_.gpus_per_node);
            auto* launch = own ? nullptr : launch_of(event);
            if (first || launch) account(event, work, own, launch, first);
        });
    }

    Launch* launch_of(const TraceEvent& event) {
        const auto id = whole(event.external_id);
        if (!id || event.external_id == event.correlation) return nullptr;
        const auto found =
            std::lower_bound(launches_.begin(), launches_.end(), *id,
                             [](const auto& launch, auto wanted) { return launch.external_id < wanted; });
        return found == launches_.end() || found->external_id != *id ? nullptr : &*found;
    }

    void account(const TraceEvent& event, const DeviceWork& work, const std::optional<OperatorShape>& own,
                 Launch* launch, bool first) {
        const auto unlinked = work.is_copy ? OperatorClass::copy : class_of_kernel(event.name);
        const OperatorShape* shape = own ? &*own : launch ? shapes_[launch->shape] : nullptr;
        const auto row = row_number(event.name, work.is_copy, shape ? shape->which : unlinked,
                                    shape ? std::string_view(shape->why_not) : reason_of(unlinked));
        add(row, work, 1);
        if (!first) add(row_number(event.name, work.is_copy, unlinked, reason_of(unlinked)), work, -1);
        if (launch) {
            ++launch->kernels;
            launch->total_ns += work.duration_ns;
        } else if (own && own->why_not.empty() && work.duration_ns > 0) {
            repetitions_[shape_number(*own)].add(work.duration_ns);
        }
        if (!options_.kernels.empty())
            order_.add({whole(event.device).value_or(-1), whole(event.stream).value_or(-1), work.start_ns, event.number,
                        report_.readings, work.duration_ns, static_cast<std::int64_t>(row)});
    }

    std::size_t row_number(const std::string& name, bool is_copy, OperatorClass which, std::string_view why_not) {
        const auto [place, is_new] =
            row_numbers_.try_emplace(std::tuple(name, is_copy, which, std::string(why_not)), report_.rows.size());
        if (is_new) {
            if (report_.rows.size() == most_rows)
                fail(ErrorKind::limit, "{}: has more than {} kernels of different names", path_.string(), most_rows);
            report_.rows.push_back({name, which, is_copy, std::string(why_not), 0, 0});
        }
        return place->second;
    }

    void add(std::size_t row_number, const DeviceWork& work, std::int64_t times) {
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

    std::int64_t time(const TraceEvent& event, std::string_view what, const std::string& digits) const {
        const auto ns = nanoseconds(digits);
        if (!ns) refuse(event, what, digits, "microseconds in decimal digits");
        return *ns;
    }

    [[noreturn]] void refuse(const TraceEvent& event, std::string_view what, std::string_view is,
                             std::string_view allowed) const {
        fail(ErrorKind::input, "{}: event {} '{}': {}: is '{}', allowed are {}", path_.string(), event.number,
             event.name.substr(0, 60), what, is, allowed);
    }

    void points() {
        for (std::size_t i = 0; i < shapes_.size(); ++i) {
            auto& times = repetitions_[i];
            if (times.empty() || !shapes_[i]->why_not.empty()) continue;
            times.sort();
            point(*shapes_[i], times);
        }
    }

    void point(const OperatorShape& shape, const Repetitions& times) {
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

    void write_kernels() {
        const auto temporary = options_.kernels.string() + fmt::format(".{}.tmp", ::getpid());
        std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
        out << "device,stream,start_ns,duration_ns,operator,name\n";
        order_.for_each([&](const OrderedKernel& kernel) {
            const auto& row = report_.rows[static_cast<std::size_t>(kernel.row)];
            out << fmt::format("{},{},{},{},{},{}\n", kernel.device, kernel.stream, kernel.start_ns, kernel.duration_ns,
                               name_of(row.which), csv_cell(row.name));
        });
        out.close();
        std::error_code error;
        if (out) fs::rename(temporary, options_.kernels, error);
        if (!out || error) {
            std::error_code ignored;
            fs::remove(temporary, ignored);
            fail(ErrorKind::io, "{}: cannot be written", options_.kernels.string());
        }
    }

    const fs::path& path_;
    const TraceOptions& options_;
    TraceReport report_;
    std::vector<Launch> launches_;
    std::map<OperatorShape, std::uint32_t> shape_numbers_;
    std::vector<const OperatorShape*> shapes_;  // by number
    std::vector<Repetitions> repetitions_;      // by number of the shape
    std::map<std::tuple<std::string, bool, OperatorClass, std::string>, std::size_t> row_numbers_;
    KernelOrder order_;
};

}  // namespace

std::string_view name_of(OperatorClass which) {
    constexpr std::array<std::string_view, 7> names{"gemm",         "attention", "collective", "convolution",
                                                    "memory-bound", "copy",      "unknown"};
    return names[static_cast<std::size_t>(which)];
}

TraceReport read_trace(const fs::path& path, const TraceOptions& options) { return TraceReading(path, options).run(); }

}  // namespace pipeweaver::costdb
