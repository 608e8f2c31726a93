#include "costdb/import/decimal_time.hpp"
#include "costdb/import/gpu_names.hpp"
#include "costdb/import/kineto/kernel_order.hpp"
#include "costdb/import/kineto/kineto_operators.hpp"
#include "costdb/import/kineto/kineto_tally.hpp"
#include "costdb/tables/checks.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/costdb/trace.hpp"
#include "pipeweaver/costdb/trace_events.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <tuple>

namespace pipeweaver::costdb {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t operators_at_a_time = std::int64_t{1} << 19;

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
                if (launch.total_ns > 0) tally_.repeat(launch.shape, launch.total_ns);
        }
        tally_.make_points();
        if (options_.device && has_points(report_.points))
            static_cast<void>(device_of(path_.string(), *options_.device, report_.product));
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
            if (known >= first && known < first + operators_at_a_time)
                launches_.push_back({*id, tally_.number_of(*shape)});
            ++known;
        });
        std::stable_sort(launches_.begin(), launches_.end(),
                         [](const auto& a, const auto& b) { return a.external_id < b.external_id; });
        return known;
    }

    /// Accounts for all kernels at the first reading, later for those whose operators were not held before.
    void link(bool first) {
        read([&](const TraceEvent& event) {
            if (event.phase != "X") return;
            const bool is_copy = is_one_of(event.category, {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"});
            if (!is_copy && !is_one_of(event.category, {"kernel", "Kernel"})) return;
            const DeviceWork work{is_copy, time(event, "ts", event.start), time(event, "dur", event.duration)};
            if (work.duration_ns < 0 || work.duration_ns > longest_measured_ns)
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
        const OperatorShape* shape = own ? &*own : launch ? &tally_.shape(launch->shape) : nullptr;
        const auto row = tally_.row(event.name, work.is_copy, shape ? shape->which : unlinked,
                                    shape ? std::string_view(shape->why_not) : reason_of(unlinked));
        tally_.count(row, work, 1);
        if (!first) tally_.count(tally_.row(event.name, work.is_copy, unlinked, reason_of(unlinked)), work, -1);
        if (launch) {
            ++launch->kernels;
            launch->total_ns += work.duration_ns;
        } else if (own && own->why_not.empty() && work.duration_ns > 0) {
            tally_.repeat(tally_.number_of(*own), work.duration_ns);
        }
        if (!options_.kernels.empty())
            order_.add({whole(event.device).value_or(-1), whole(event.stream).value_or(-1), work.start_ns, event.number,
                        report_.readings, work.duration_ns, static_cast<std::int64_t>(row)});
    }

    std::int64_t time(const TraceEvent& event, std::string_view what, const std::string& digits) const {
        const auto ns = nanoseconds(digits);
        if (!ns) refuse(event, what, digits, "microseconds in decimal digits");
        return *ns;
    }

    [[noreturn]] void refuse(const TraceEvent& event, std::string_view what, std::string_view is,
                             std::string_view allowed) const {
        fail(ErrorKind::input, "{}: event {} '{}': {}: {}", path_.string(), event.number, event.name.substr(0, 60),
             what, must_be(is, allowed));
    }

    void write_kernels() {
        FileWriter out(options_.kernels);
        out.write("device,stream,start_ns,duration_ns,operator,name\n");
        order_.for_each([&](const OrderedKernel& kernel) {
            const auto& row = report_.rows[static_cast<std::size_t>(kernel.row)];
            out.write(fmt::format("{},{},{},{},{},{}\n", kernel.device, kernel.stream, kernel.start_ns,
                                  kernel.duration_ns, name_of(row.which), csv_cell(row.name)));
        });
        out.finish();
    }

    const fs::path& path_;
    const TraceOptions& options_;
    TraceReport report_;
    TraceTally tally_{path_.string(), report_};
    std::vector<Launch> launches_;
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
