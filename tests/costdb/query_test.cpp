#include "pipeweaver/costdb/query.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

std::string ask(const std::string& op, const std::string& queries) {
    return answer_queries(h100(), op, CsvTable("q.csv", queries));
}

std::string refusal(const std::string& op, const std::string& queries) {
    try {
        return ask(op, queries);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
}

}  // namespace

TEST_CASE("queries come back with latency, basis and error, columns in the order given") {
    CHECK(ask("gemm", "k,dtype,n,m\n12288,bf16,65536,32768\n") ==
          "k,dtype,n,m,latency_us,basis,error_percent\n12288,bf16,65536,32768,60324.042,exact,4.0\n");
}

TEST_CASE("columns that may be missing have their defaults, also where a cell is empty") {
    const auto defaults = ask("gemm", "dtype,m,n,k\nbf16,4096,4096,4096\n");
    const auto stated = ask("gemm", "dtype,m,n,k,batch,pass\nbf16,4096,4096,4096,,forward\n");
    CHECK(defaults.substr(defaults.rfind("4096,")) != stated);
    CHECK(defaults.substr(defaults.find("4096\n") == std::string::npos ? defaults.rfind("4096,") + 5 : 0) ==
          stated.substr(stated.find("forward,", 60) + 8));
    CHECK(ask("collective", "collective,gpus,message_bytes\nall_reduce,8,1048576\n").find(",exact,") !=
          std::string::npos);
    CHECK(ask("moe", "dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep\nbf16,64,4096,1536,8,128,1,1\n")
              .find(",exact,") != std::string::npos);
    CHECK(ask("p2p", "gpus_per_node,message_bytes\n1,5000000\n").find(",interpolated,") != std::string::npos);
    CHECK(ask("attention", "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal\nbf16,1,16384,64,64,64,1\n")
              .find(",4701.291,exact,") != std::string::npos);
}

TEST_CASE("bad queries are refused at their line and column") {
    CHECK(refusal("gem", "a\n1\n") == "unknown operator 'gem'; did you mean 'gemm'?");
    CHECK(refusal("gemm", "dtype,m,n,kk\nbf16,1,1,1\n").starts_with("q.csv:1: unknown column 'kk'"));
    CHECK(refusal("gemm", "dtype,m,n\nbf16,1,1\n") == "q.csv:1: column 'k' is missing");
    CHECK(refusal("gemm", "dtype,m,n,k\nbf16,1,1,1\nbf61,1,1,1\n") ==
          "q.csv:3: dtype: unknown dtype 'bf61'; did you mean 'bf16'?");
    CHECK(refusal("gemm", "dtype,m,n,k\nbf16,1,,1\n").starts_with("q.csv:2: n: is ''"));
    CHECK(refusal("gemm", "dtype,m,n,k\n,1,1,1\n") == "q.csv:2: dtype: is empty");
    CHECK(refusal("gemm", "dtype,m,n,k\nbf16,1,1,0\n").starts_with("q.csv:2: k: is '0'"));
    CHECK(refusal("gemm", "dtype,m,n,k\nbf16,1,1,8589934592\n") ==
          "q.csv:2: k: is 8589934592, must be a whole number from 1 to 4294967296");
    CHECK(refusal("gemm", "dtype,m,n,k,pass\nbf16,1,1,1,backwards\n").starts_with("q.csv:2: pass: unknown pass"));
    CHECK(refusal("gemm", "dtype,m,n,k,basis\nbf16,1,1,1,x\n") == "q.csv:1: column 'basis' is one of the answer's");
    CHECK(refusal("collective", "collective,gpus,message_bytes\nall_reduce,1,8\n") ==
          "q.csv:2: gpus: is 1, a collective needs at least 2");
    CHECK(refusal("attention", "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal\nbf16,1,1,1,1,64,maybe\n")
              .starts_with("q.csv:2: causal: is 'maybe'"));
    CHECK(refusal("moe", "dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing\nbf16,1,1,1,1,8,1,1,even\n")
              .starts_with("q.csv:2: routing: unknown routing 'even'"));
}
