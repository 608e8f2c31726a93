// Kinds of kernels and collectives by their names, and factors on them.
#include "pipeweaver/traces/kinds.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::traces;

namespace {

std::string refused(std::string_view text) {
    try {
        static_cast<void>(factors_of(text, {{0, 0}, {3, 1}}));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

double of(const Factors& factors, Kind kind) { return factors.of_kind[static_cast<std::size_t>(kind)]; }

}  // namespace

TEST_CASE("kernels of communication are told by their collective, others by the tables' classes") {
    CHECK(kind_of_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") ==
          Kind::all_reduce);
    CHECK(kind_of_kernel("ncclKernel_SendRecv(ncclDevComm*)") == Kind::send_recv);
    CHECK(kind_of_kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL") == Kind::reduce_scatter);
    CHECK(kind_of_kernel("ncclDevKernel_Reduce_Sum_f32_RING_LL") == Kind::collective);
    CHECK(kind_of_collective("_allgather_base") == Kind::all_gather);
    CHECK(kind_of_collective("all_to_allv") == Kind::all_to_all);
    CHECK(kind_of_collective("gloo:all_reduce") == Kind::all_reduce);
    CHECK(kind_of_kernel("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT") == Kind::gemm);
    CHECK(kind_of_kernel("flash_fwd_kernel") == Kind::attention);
    CHECK(kind_of_kernel("triton_poi_fused_add_0") == Kind::memory);
    CHECK(kind_of_kernel("my_own_thing") == Kind::unknown);
}

TEST_CASE("factors are on kinds, on all communication and on ranks, and multiply where they meet") {
    const auto factors = factors_of("gemm=0.8,nccl=0.5,all_reduce=0.5,rank3=1.25,launch=0", {{0, 0}, {3, 1}});

    CHECK(of(factors, Kind::gemm) == 0.8);
    CHECK(of(factors, Kind::all_reduce) == 0.25);
    CHECK(of(factors, Kind::send_recv) == 0.5);
    CHECK(of(factors, Kind::launch) == 0);
    CHECK(of(factors, Kind::attention) == 1);
    CHECK(factors.of_rank == std::map<std::int64_t, double>{{3, 1.25}});
}

TEST_CASE("what is no factor is refused in one line") {
    CHECK(refused("gem=0.5") == "--what-if: unknown name 'gem'; did you mean 'gemm'?");
    CHECK(refused("rank1=2").starts_with("--what-if: unknown name 'rank1'; did you mean 'rank"));
    CHECK(refused("gemm=100,rank3=100") ==
          "--what-if: factors that meet are multiplied: to 10000, must be at most 1000");
    CHECK(refused("gemm") == "--what-if: is 'gemm', must be NAME=FACTOR with a number from 0 to 1000");
    CHECK(refused("gemm=-1") == "--what-if: is 'gemm=-1', must be NAME=FACTOR with a number from 0 to 1000");
}
