#include "pipeweaver/costdb/stats.hpp"

#include "costdb/point_kinds.hpp"

#include <initializer_list>
#include <map>
#include <set>
#include <utility>

namespace pipeweaver::costdb {

namespace {

template <class Point>
struct Axis {
    const char* name;
    std::int64_t Point::*member;
};

template <class Point>
void add_rows(const char* op, const Measurements& from, const std::vector<Point>& points,
              std::initializer_list<Axis<Point>> axes, std::vector<StatsRow>& rows) {
    std::map<std::pair<std::string, std::int64_t>, std::vector<const Point*>> groups;
    for (const auto& p : points) groups[{kind_of(p), p.origin}].push_back(&p);
    for (const auto& [key, members] : groups) {
        const auto at = static_cast<std::size_t>(key.second);
        const auto origin = at < from.origins.size() ? from.origins[at] : MeasurementOrigin{};
        StatsRow row{
            op, key.first, origin.file, origin.origin, origin.licence, members.size(), origin.transferred_permille > 0,
            {}};
        for (const auto& axis : axes) {
            std::set<std::int64_t> values;
            for (const auto* p : members) values.insert(p->*axis.member);
            row.axes.push_back({axis.name, *values.begin(), *values.rbegin(), values.size()});
        }
        rows.push_back(std::move(row));
    }
}

}  // namespace

std::vector<StatsRow> stats(const Measurements& in) {
    using G = GemmPoint;
    using A = AttentionPoint;
    using C = CollectivePoint;
    using P = PointToPointPoint;
    using M = MoePoint;
    std::vector<StatsRow> rows;
    add_rows<G>("gemm", in, in.gemm, {{"m", &G::m}, {"n", &G::n}, {"k", &G::k}}, rows);
    add_rows<A>("attention", in, in.attention,
                {{"batch", &A::batch},
                 {"seq_len", &A::seq_len},
                 {"q_heads", &A::q_heads},
                 {"kv_heads", &A::kv_heads},
                 {"head_dim", &A::head_dim}},
                rows);
    add_rows<C>("collective", in, in.collective,
                {{"gpus", &C::gpus}, {"gpus_per_node", &C::gpus_per_node}, {"message_bytes", &C::message_bytes}}, rows);
    add_rows<P>("p2p", in, in.point_to_point,
                {{"gpus_per_node", &P::gpus_per_node}, {"message_bytes", &P::message_bytes}}, rows);
    add_rows<M>("moe", in, in.moe,
                {{"tokens", &M::tokens},
                 {"hidden", &M::hidden},
                 {"ffn", &M::ffn},
                 {"top_k", &M::top_k},
                 {"experts", &M::experts},
                 {"moe_tp", &M::moe_tp},
                 {"moe_ep", &M::moe_ep}},
                rows);
    add_rows<ElementwisePoint>("elementwise", in, in.elementwise, {{"traffic_bytes", &ElementwisePoint::traffic_bytes}},
                               rows);
    using L = LinearPoint;
    add_rows<L>("gdn", in, in.linear,
                {{"batch", &L::batch},
                 {"seq_len", &L::seq_len},
                 {"key_heads", &L::key_heads},
                 {"value_heads", &L::value_heads}},
                rows);
    return rows;
}

}  // namespace pipeweaver::costdb
