#include "pipeweaver/costdb/database.hpp"

#include "costdb/embedded.hpp"
#include "costdb/point_tables.hpp"
#include "costdb/store/store.hpp"
#include "costdb/tables/answer.hpp"
#include "costdb/tables/attention_table.hpp"
#include "costdb/tables/checks.hpp"
#include "costdb/tables/elementwise_table.hpp"
#include "costdb/tables/gemm_table.hpp"
#include "costdb/tables/linear_table.hpp"
#include "costdb/tables/link_table.hpp"
#include "costdb/tables/moe_table.hpp"
#include "costdb/transfer/transferred_gemms.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

namespace pipeweaver::costdb {

namespace {

/// Made by the first of the threads that ask for it: most jobs ask no more than some of a device's tables.
template <class Table>
class Late {
public:
    template <class Make>
    const Table& get(Make make) const {
        if (!made_.load(std::memory_order_acquire)) {
            const std::lock_guard lock(making_);
            if (!made_.load(std::memory_order_relaxed)) table_ = make();
            made_.store(true, std::memory_order_release);
        }
        return table_;
    }

private:
    mutable std::atomic<bool> made_{false};
    mutable std::mutex making_;
    mutable Table table_;
};

}  // namespace

struct CostDatabase::Tables {
    DeviceFacts device;
    Measurements measurements;
    TransferredGemms transferred;
    LinkTable links;
    ElementwiseTable elementwise;
    std::vector<std::string> routings;

    /// With those below not yet made.
    static std::unique_ptr<const Tables> of(Measurements measurements);

    const GemmTable& gemm() const {
        return late_gemm.get([&] {
            return transferred.is_empty() ? GemmTable(device, measurements.gemm)
                                          : GemmTable(device, transferred.table_points(measurements.gemm));
        });
    }
    const AttentionTable& attention() const {
        return late_attention.get([&] { return AttentionTable(device, measurements.attention); });
    }
    const MoeTable& moe() const {
        return late_moe.get([&] { return MoeTable(device, measurements.moe); });
    }
    const LinearTable& linear() const {
        return late_linear.get([&] { return LinearTable(device, measurements.linear); });
    }

    Late<GemmTable> late_gemm;
    Late<AttentionTable> late_attention;
    Late<MoeTable> late_moe;
    Late<LinearTable> late_linear;
};

namespace {

/// Whose links a device without tables of its own has: of the same generation, in nodes alike.
std::string links_of(const std::string& device) {
    if (workloads::device(device).modelled) return "";
    return workloads::family_of(device) == Family::hopper && device != "h100_sxm" ? "h100_sxm" : "";
}

template <class Point>
void lend(std::vector<Point> theirs, std::int64_t shift, std::vector<Point>& own, const std::string& lender,
          std::string& from) {
    if (!own.empty() || theirs.empty()) return;
    for (Point& point : theirs) point.origin += shift;
    own = std::move(theirs);
    from = lender;
}

/// `measured` with the links of `lender` where it has none of its own; `read_theirs` reads the lender's points.
template <class Read>
Measurements with_links(Measurements measured, const std::string& lender, Read read_theirs) {
    if (lender.empty() || (!measured.point_to_point.empty() && !measured.collective.empty())) return measured;
    Measurements theirs = read_theirs();
    const auto shift = static_cast<std::int64_t>(measured.origins.size());
    lend(std::move(theirs.point_to_point), shift, measured.point_to_point, lender, measured.links_of);
    lend(std::move(theirs.collective), shift, measured.collective, lender, measured.collectives_of);
    measured.origins.insert(measured.origins.end(), theirs.origins.begin(), theirs.origins.end());
    return measured;
}

constexpr const char* embedded_name = "embedded cost database";

std::vector<std::string> routings_of(const std::vector<MoePoint>& points) {
    std::set<std::string> names{"balanced", "power_law_1.01", "power_law_1.2"};
    const std::string* last = nullptr;
    for (const auto& point : points) {
        if (last == nullptr || point.routing != *last) names.insert(point.routing);
        last = &point.routing;
    }
    return {names.begin(), names.end()};
}

}  // namespace

CostDatabase::CostDatabase(std::unique_ptr<const Tables> tables) : tables_(std::move(tables)) {}
CostDatabase::CostDatabase(CostDatabase&&) noexcept = default;
CostDatabase& CostDatabase::operator=(CostDatabase&&) noexcept = default;
CostDatabase::~CostDatabase() = default;

std::unique_ptr<const CostDatabase::Tables> CostDatabase::Tables::of(Measurements measurements) {
    const auto device = facts_of(measurements.device);
    auto tables = std::make_unique<Tables>();
    tables->device = device;
    tables->transferred = TransferredGemms(device, measurements);
    tables->links = LinkTable(measurements);
    tables->elementwise = ElementwiseTable(measurements.elementwise);
    tables->routings = routings_of(measurements.moe);
    tables->measurements = std::move(measurements);
    return tables;
}

CostDatabase CostDatabase::from(Measurements measurements) {
    auto tables = Tables::of(std::move(measurements));
    // What is wrong with points of a user's own is said now.
    tables->gemm();
    tables->attention();
    tables->moe();
    tables->linear();
    return CostDatabase(std::move(tables));
}

CostDatabase CostDatabase::embedded(std::string_view device) {
    const auto name = facts_of(device).name;
    const auto zipped = embedded_store(name);
    Measurements own;
    own.device = name;
    if (!zipped.empty()) own = read_store(embedded_name, gunzip(zipped), name, false);
    const auto lender = links_of(name);
    return CostDatabase(Tables::of(with_links(
        std::move(own), lender, [&] { return read_links(embedded_name, gunzip(embedded_store(lender)), lender); })));
}

namespace {

/// The points of `table` whose keys `own` lacks, after its own. `shift`: of their origins.
template <class Point>
void add_lacking(std::vector<Point>& own, const std::vector<Point>& table, std::int64_t shift) {
    std::set<decltype(key_of(own.front()))> known;
    for (const auto& point : own) known.insert(key_of(point));
    for (Point point : table) {
        if (known.contains(key_of(point))) continue;
        point.origin += shift;
        own.push_back(std::move(point));
    }
}

void add_lacking(Measurements& own, const Measurements& table) {
    const auto shift = static_cast<std::int64_t>(own.origins.size());
    // What another device lent is no addition to what was measured.
    const bool lent = !table.links_of.empty() && !own.point_to_point.empty();
    const bool lent_collectives = !table.collectives_of.empty() && !own.collective.empty();
    if (own.point_to_point.empty()) own.links_of = table.links_of;
    if (own.collective.empty()) own.collectives_of = table.collectives_of;
    for_each_table([&]<class Rows>(Rows) {
        if (lent && std::is_same_v<Rows, PointToPointRows>) return;
        if (lent_collectives && std::is_same_v<Rows, CollectiveRows>) return;
        add_lacking(own.*Rows::points, table.*Rows::points, shift);
    });
    own.origins.insert(own.origins.end(), table.origins.begin(), table.origins.end());
}

}  // namespace

CostDatabase CostDatabase::over_embedded(const std::filesystem::path& path, std::string_view device) {
    auto own = read(path, device).measurements();
    add_lacking(own, embedded(device).measurements());
    return from(std::move(own));
}

CostDatabase CostDatabase::read(const std::filesystem::path& path, std::string_view device) {
    const auto name = facts_of(device).name;
    const auto bytes = read_file(path);
    const auto devices = devices_of_store(path.string(), bytes);
    if (std::find(devices.begin(), devices.end(), name) == devices.end())
        fail(ErrorKind::input, "{}: has no device '{}'; it has {}", path.string(), name, fmt::join(devices, ", "));
    const auto lender = links_of(name);
    return from(with_links(read_store(path.string(), bytes, name, true), lender,
                           [&] { return read_links(path.string(), bytes, lender); }));
}

std::vector<std::string> devices_with_points(const std::filesystem::path& path) {
    if (path.empty()) return embedded_devices();
    return devices_of_store(path.string(), read_file(path));
}

const std::string& CostDatabase::device() const { return tables_->device.name; }
const Measurements& CostDatabase::measurements() const { return tables_->measurements; }

Cost CostDatabase::cost(const Gemm& query) const {
    require("m", query.m);
    require("n", query.n);
    require("k", query.k);
    require("batch", query.batch);
    require("batch * m", query.batch > largest_size / query.m ? largest_size + 1 : query.batch * query.m);
    if (const auto own = tables_->transferred.measured(query)) return rounded(*own);
    return rounded(tables_->transferred.capped(tables_->gemm().cost(tables_->device, query), query));
}

Cost CostDatabase::cost(const Attention& query) const {
    require("batch", query.batch);
    require("seq_len", query.seq_len);
    require("q_heads", query.q_heads);
    require("kv_heads", query.kv_heads);
    require("head_dim", query.head_dim);
    if (query.q_heads % query.kv_heads != 0)
        fail(ErrorKind::input, "kv_heads: {}",
             must_be(query.kv_heads, fmt::format("a divisor of q_heads, which is {}", query.q_heads)));
    if (query.pass != Pass::forward && query.pass != Pass::backward)
        fail(ErrorKind::input, "pass: attention has no {}, allowed are forward and backward", name_of(query.pass));
    return rounded(tables_->attention().cost(tables_->device, query));
}

Cost CostDatabase::cost(const Collective& query) const {
    require("gpus", query.gpus);
    require("gpus_per_node", query.gpus_per_node);
    require("message_bytes", query.message.count, largest_message);
    if (query.gpus < 2) fail(ErrorKind::input, "gpus: is 1, a collective needs at least 2");
    return rounded(tables_->links.cost(tables_->device, query));
}

Cost CostDatabase::cost(const PointToPoint& query) const {
    require("gpus_per_node", query.gpus_per_node);
    require("message_bytes", query.message.count, largest_message);
    return rounded(tables_->links.cost(tables_->device, query));
}

Cost CostDatabase::cost(const MixtureOfExperts& query) const {
    for (const auto& [name, value] :
         {std::pair{"tokens", query.tokens}, std::pair{"hidden", query.hidden}, std::pair{"ffn", query.ffn},
          std::pair{"top_k", query.top_k}, std::pair{"experts", query.experts}, std::pair{"moe_tp", query.moe_tp},
          std::pair{"moe_ep", query.moe_ep}})
        require(name, value);
    if (query.top_k > query.experts)
        fail(ErrorKind::input, "top_k: {}",
             must_be(query.top_k, fmt::format("at most experts, which is {}", query.experts)));
    if (query.moe_ep > query.experts)
        fail(ErrorKind::input, "moe_ep: {}",
             must_be(query.moe_ep, fmt::format("at most experts, which is {}", query.experts)));
    static_cast<void>(index_of("routing", query.routing, tables_->routings));
    return rounded(tables_->moe().cost(tables_->device, query));
}

Cost CostDatabase::cost(const DeltaNet& query) const {
    for (const auto& [name, value] : {std::pair{"batch", query.batch}, std::pair{"seq_len", query.seq_len},
                                      std::pair{"k_heads", query.key_heads}, std::pair{"v_heads", query.value_heads},
                                      std::pair{"k_head_dim", query.key_dim}, std::pair{"v_head_dim", query.value_dim}})
        require(name, value);
    return rounded(tables_->linear().cost(tables_->device, query));
}

Cost CostDatabase::cost(const Elementwise& query) const {
    require("traffic_bytes", query.traffic.count, largest_message);
    if (query.pass != Pass::forward && query.pass != Pass::backward)
        fail(ErrorKind::input, "pass: memory-bound work has no {}, allowed are forward and backward",
             name_of(query.pass));
    return rounded(tables_->elementwise.cost(tables_->device, query));
}

}  // namespace pipeweaver::costdb
