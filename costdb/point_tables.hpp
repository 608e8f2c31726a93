// The tables of points, one struct each: its name, where Measurements keeps its points, and its columns but the source
// with the members that they hold. What is done with every table goes over this list.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <cstddef>
#include <tuple>

namespace pipeweaver::costdb {

template <class Point, class Value>
struct Column {
    const char* name;
    Value Point::*member;
    constexpr Column(const char* of, Value Point::*in) : name(of), member(in) {}  // clang 14 needs it to deduce
};

struct GemmRows {
    using Point = GemmPoint;
    static constexpr auto table = "gemm";
    static constexpr auto points = &Measurements::gemm;
    static constexpr std::tuple columns{Column{"dtype", &Point::dtype},
                                        Column{"pass", &Point::pass},
                                        Column{"m", &Point::m},
                                        Column{"n", &Point::n},
                                        Column{"k", &Point::k},
                                        Column{"latency_ns", &Point::latency_ns},
                                        Column{"spread_permille", &Point::spread_permille}};
};

struct AttentionRows {
    using Point = AttentionPoint;
    static constexpr auto table = "attention";
    static constexpr auto points = &Measurements::attention;
    static constexpr std::tuple columns{
        Column{"dtype", &Point::dtype},           Column{"pass", &Point::pass},
        Column{"causal", &Point::causal},         Column{"head_dim", &Point::head_dim},
        Column{"kv_heads", &Point::kv_heads},     Column{"q_heads", &Point::q_heads},
        Column{"batch", &Point::batch},           Column{"seq_len", &Point::seq_len},
        Column{"latency_ns", &Point::latency_ns}, Column{"spread_permille", &Point::spread_permille}};
};

struct CollectiveRows {
    using Point = CollectivePoint;
    static constexpr auto table = "collective";
    static constexpr auto points = &Measurements::collective;
    static constexpr std::tuple columns{Column{"sweep", &Point::source},
                                        Column{"collective", &Point::kind},
                                        Column{"dtype", &Point::dtype},
                                        Column{"gpus", &Point::gpus},
                                        Column{"gpus_per_node", &Point::gpus_per_node},
                                        Column{"message_bytes", &Point::message_bytes},
                                        Column{"latency_ns", &Point::latency_ns},
                                        Column{"spread_permille", &Point::spread_permille}};
};

struct PointToPointRows {
    using Point = PointToPointPoint;
    static constexpr auto table = "point_to_point";
    static constexpr auto points = &Measurements::point_to_point;
    static constexpr std::tuple columns{
        Column{"gpus_per_node", &Point::gpus_per_node}, Column{"message_bytes", &Point::message_bytes},
        Column{"latency_ns", &Point::latency_ns}, Column{"spread_permille", &Point::spread_permille}};
};

struct MoeRows {
    using Point = MoePoint;
    static constexpr auto table = "moe";
    static constexpr auto points = &Measurements::moe;
    static constexpr std::tuple columns{Column{"dtype", &Point::dtype},
                                        Column{"routing", &Point::routing},
                                        Column{"hidden", &Point::hidden},
                                        Column{"ffn", &Point::ffn},
                                        Column{"top_k", &Point::top_k},
                                        Column{"experts", &Point::experts},
                                        Column{"moe_tp", &Point::moe_tp},
                                        Column{"moe_ep", &Point::moe_ep},
                                        Column{"tokens", &Point::tokens},
                                        Column{"latency_ns", &Point::latency_ns},
                                        Column{"spread_permille", &Point::spread_permille}};
};

struct ElementwiseRows {
    using Point = ElementwisePoint;
    static constexpr auto table = "elementwise";
    static constexpr auto points = &Measurements::elementwise;
    static constexpr std::tuple columns{
        Column{"kind", &Point::kind}, Column{"pass", &Point::pass}, Column{"traffic_bytes", &Point::traffic_bytes},
        Column{"latency_ns", &Point::latency_ns}, Column{"spread_permille", &Point::spread_permille}};
};

struct LinearRows {
    using Point = LinearPoint;
    static constexpr auto table = "gdn";
    static constexpr auto points = &Measurements::linear;
    static constexpr std::tuple columns{Column{"kernel", &Point::kernel},
                                        Column{"key_dim", &Point::key_dim},
                                        Column{"value_dim", &Point::value_dim},
                                        Column{"key_heads", &Point::key_heads},
                                        Column{"value_heads", &Point::value_heads},
                                        Column{"batch", &Point::batch},
                                        Column{"seq_len", &Point::seq_len},
                                        Column{"latency_ns", &Point::latency_ns},
                                        Column{"spread_permille", &Point::spread_permille}};
};

/// f(GemmRows{}), f(AttentionRows{}), ...
template <class F>
void for_each_table(F f) {
    f(GemmRows{});
    f(AttentionRows{});
    f(CollectiveRows{});
    f(PointToPointRows{});
    f(MoeRows{});
    f(ElementwiseRows{});
    f(LinearRows{});
}

inline constexpr std::size_t point_tables = 7;

/// Points of all tables together.
inline std::size_t count_points(const Measurements& points) {
    std::size_t sum = 0;
    for_each_table([&]<class Rows>(Rows) { sum += (points.*Rows::points).size(); });
    return sum;
}

}  // namespace pipeweaver::costdb
