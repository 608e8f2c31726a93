#include "pipeweaver/emit/plan_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::emit {

using namespace planner;

namespace {

std::string row_of(const costdb::Gemm& q, const Need&) {
    return fmt::format("{},{},{},{},{}", name_of(q.dtype), q.m, q.n, q.k, name_of(q.pass));
}

std::string row_of(const costdb::Attention& q, const Need&) {
    return fmt::format("{},{},{},{},{},{},{},{}", name_of(q.dtype), q.batch, q.seq_len, q.q_heads, q.kv_heads,
                       q.head_dim, q.causal ? 1 : 0, name_of(q.pass));
}

std::string row_of(const costdb::Collective& q, const Need&) {
    const bool to_all = q.kind == costdb::CollectiveKind::all_to_all;  // as the measured tables spell it
    return fmt::format("{},{},{},{},{}", to_all ? "alltoall" : name_of(q.kind), name_of(q.dtype), q.gpus,
                       std::min(q.gpus, q.gpus_per_node), q.message.count);
}

std::string row_of(const costdb::PointToPoint& q, const Need&) {
    return fmt::format("send_recv,bf16,2,{},{}", q.gpus_per_node, q.message.count);
}

std::string row_of(const costdb::Elementwise& q, const Need& need) {
    const auto& s = need.shape;
    return fmt::format("{},{},{},{},{},{},{},{},{},{}", name_of(q.kind), name_of(q.pass), q.traffic.count, s.rows,
                       s.columns, s.norms, s.rotated, s.up, s.down, s.vocab);
}

std::string row_of(const costdb::MixtureOfExperts& q, const Need&) {
    return fmt::format("{},{},{},{},{},{},{},{},{}", name_of(q.dtype), q.tokens, q.hidden, q.ffn, q.top_k, q.experts,
                       q.moe_tp, q.moe_ep, q.routing);
}

// In the order of Question; transfers go with the collectives.
constexpr std::array<std::size_t, 6> table_of{0, 1, 2, 2, 3, 4};

std::string answer_of(const Need& need) {
    const auto ns = need.cost.duration.count();
    return fmt::format(",{},{:.4f},{}.{:03},{}\n", need.times, 100 * need.share, ns / 1000, ns % 1000,
                       name_of(need.cost.basis));
}

}  // namespace

std::vector<FileToWrite> needs_files(const std::vector<Need>& needs, const std::filesystem::path& folder) {
    constexpr std::string_view answer = ",times,share_percent,estimate_us,basis\n";
    std::vector<FileToWrite> files{
        {folder / "gemm.csv", "dtype,m,n,k,pass"},
        {folder / "attention.csv", "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal,pass"},
        {folder / "collectives.csv", "collective,dtype,gpus,gpus_per_node,message_bytes"},
        {folder / "elementwise.csv", "kind,pass,traffic_bytes,rows,columns,norms,rotated,up,down,vocab"}};
    const auto is_of_experts = [](const Need& need) {
        return std::holds_alternative<costdb::MixtureOfExperts>(need.question);
    };
    if (std::any_of(needs.begin(), needs.end(), is_of_experts))
        files.push_back({folder / "moe.csv", "dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing"});
    for (auto& file : files) file.content += answer;
    for (const Need& need : needs) {
        auto& table = files[table_of[need.question.index()]].content;
        table += std::visit([&](const auto& question) { return row_of(question, need); }, need.question);
        table += answer_of(need);
    }
    return files;
}

}  // namespace pipeweaver::emit
