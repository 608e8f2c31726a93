#include "pipeweaver/planner/needs.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/replicas/plan_replica.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// What tells questions apart: the kind, then its fields.
using Key = std::vector<std::int64_t>;

Key key_of(const costdb::Gemm& q) { return {0, std::int64_t(q.dtype), q.m, q.n, q.k, q.batch, std::int64_t(q.pass)}; }
Key key_of(const costdb::Attention& q) {
    return {1,        std::int64_t(q.dtype), q.batch, q.seq_len, q.q_heads, q.kv_heads, q.head_dim,
            q.causal, std::int64_t(q.pass)};
}
Key key_of(const costdb::Collective& q) {
    return {2, std::int64_t(q.kind), std::int64_t(q.dtype), q.gpus, q.gpus_per_node, q.message.count};
}
Key key_of(const costdb::PointToPoint& q) { return {3, q.gpus_per_node, q.message.count}; }
Key key_of(const costdb::Elementwise& q) { return {4, std::int64_t(q.kind), std::int64_t(q.pass), q.traffic.count}; }
Key key_of(const costdb::MixtureOfExperts& q) {
    return {5, std::int64_t(q.dtype), q.tokens, q.hidden, q.ffn, q.top_k, q.experts, q.moe_tp, q.moe_ep};
}

struct Questions {
    std::map<Key, Need> all;
    std::int64_t total_ns = 0;
    const costdb::CostDatabase& costs;

    // `each`: how long it takes, if not as long as the query.
    template <class Query>
    void add(const Query& query, const KernelShape& shape, std::int64_t times, std::optional<Duration> each = {}) {
        const auto [place, added] = all.try_emplace(key_of(query));
        Need& need = place->second;
        if (added) need = {query, shape, 0, 0, costs.cost(query)};
        need.times += times;
        const std::int64_t ns = times * each.value_or(need.cost.duration).count();
        need.share += static_cast<double>(ns);
        total_ns += ns;
    }

    void add(const Operator& op, std::int64_t times) {
        if (op.stream == emulator::Stream::copy) return;  // over the host's link, whose speed the recipe says
        if (const auto* gemm = std::get_if<costdb::Gemm>(&op.query); gemm && gemm->pass == costdb::Pass::backward) {
            for (const auto half : {costdb::Pass::backward_input, costdb::Pass::backward_weight}) {
                auto part = *gemm;
                part.pass = half;
                add(part, op.shape, times);
            }
        } else if (const auto* packed = std::get_if<PackedAttention>(&op.query)) {
            const bool sparse = packed->density < 1;
            add(packed->question(), op.shape, times,
                sparse ? std::optional(packed->cost(costs).duration) : std::nullopt);
        } else if (const auto* experts = std::get_if<Experts>(&op.query)) {
            add(experts->layer, op.shape, times, experts->cost(costs).duration);
        } else {
            std::visit(
                [&](const auto& query) {
                    if constexpr (std::is_constructible_v<Question, decltype(query)>) add(query, op.shape, times);
                },
                op.query);
        }
    }
};

// Of all replicas in one partition; `share` of the needs is nanoseconds. None, and why, where it does not fit.
std::optional<Questions> questions_of(const Setup& setup, const Partition& partition,
                                      const std::vector<Microbatches>& replicas,
                                      std::optional<MemoryShortage>& shortage) {
    Questions questions{{}, 0, *setup.costs};
    for (const Microbatches& microbatches : replicas) {
        const auto input =
            as_wanted(partition::step_input(setup, partition, partition::units(partition, setup.model, microbatches)),
                      {.name = "needs"});
        const BuiltStep built = build_step(input);
        if (built.shortage) {
            if (!shortage) shortage = built.shortage;
            return std::nullopt;
        }
        visit_operators(input, *built.step, [&](const Operator& op, std::int64_t times) { questions.add(op, times); });
    }
    return questions;
}

void merge(const Questions& from, std::map<Key, Need>& into) {
    for (const auto& [key, need] : from.all) {
        const auto [place, added] = into.try_emplace(key, need);
        if (added) place->second.share = 0;
        place->second.times = std::max(place->second.times, need.times);
        place->second.share += need.share / static_cast<double>(from.total_ns);
    }
}

}  // namespace

std::vector<Need> needs(const Job& job, const Batch& batch, const Executor& execute) {
    const Setup& setup = *job.setup;
    const Assignment assignment = assign(job, batch, execute);
    std::map<Key, Need> sum;
    std::optional<MemoryShortage> shortage;
    double fitting = 0;
    auto partitions = partitions_of(job, batch);
    if (!job.fixed && job.partition.empty())
        partitions.push_back(choose_partition(job, batch, quick_choice, execute).partition);
    for (const Partition& partition : partitions) {
        const auto questions = questions_of(setup, partition, assignment.microbatches, shortage);
        if (!questions) continue;
        merge(*questions, sum);
        ++fitting;
    }
    if (fitting == 0 && shortage) fail(ErrorKind::limit, "{}", shortage->text());
    std::vector<Need> all;
    for (auto& [key, need] : sum) {
        need.share /= fitting;
        all.push_back(need);
    }
    std::stable_sort(all.begin(), all.end(), [](const Need& a, const Need& b) { return a.share > b.share; });
    return all;
}

}  // namespace pipeweaver::planner
