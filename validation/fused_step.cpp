// A step is the emulator's own layer operators, priced with the device's factors; what a framework adds to them stands
// here: fp8 casts, context parallelism, experts, the synchronisation of replicas.
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "validation/expert_layers.hpp"
#include "validation/kernel_times.hpp"
#include "validation/optimizer.hpp"
#include "validation/pipeline_time.hpp"
#include "validation/published_steps.hpp"
#include "validation/rank_parameters.hpp"

#include <algorithm>
#include <variant>
#include <vector>

namespace pipeweaver::validation {

using namespace emulator;

using costdb::CollectiveKind;

namespace {

class FusedStep {
public:
    explicit FusedStep(const StepCosts& step)
        : run_(step.run), costs_(step.costs), fitted_(step.fitted), network_(run_.network), m_(run_.positions()) {}

    double total_ns() const {
        std::vector<double> times;
        double update = 0;
        for (const RankLayers& rank : rank_layers(run_)) {
            times.push_back(rank_ns(rank));
            update = std::max(update, update_ns(rank));
        }
        return pipeline_ns(times, run_.microbatches(), run_.virtual_stages) + update;
    }

private:
    bool hides_communication() const { return run_.device == "h100_sxm"; }
    double exposed() const { return fitted_.collectives * fitted_.inside_gemms; }
    bool eight_bit() const { return run_.dtype == costdb::Dtype::fp8; }

    double both_ns(const std::vector<Operator>& forward, const std::vector<Operator>& backward) const {
        return operators_ns(costs_, forward, fitted_.compute, exposed()) +
               operators_ns(costs_, backward, fitted_.compute, exposed());
    }

    double exposed_ns(CollectiveKind kind, std::int64_t gpus, double bytes) const {
        return exposed() * collective_ns(costs_, kind, gpus, bytes);
    }

    // A microbatch, forward and backward.
    double rank_ns(const RankLayers& rank) const {
        double time = 0;
        const bool experts = network_.moe.has_value();
        const double plain = experts ? 0 : dense_layer_ns();
        for (std::int64_t i = rank.first; i < rank.first + rank.count; ++i)
            time += experts ? latent_layer_ns(i) : plain;
        const PassShape shape{{m_}};
        const auto around = [&](auto operators) {
            return both_ns(operators(network_, shape, run_.layout, PassKind::forward, {}),
                           operators(network_, shape, run_.layout, PassKind::backward, {}));
        };
        if (rank.embedding) time += around(embedding_operators);
        if (rank.head) time += around(head_operators);
        return time;
    }

    double dense_layer_ns() const {
        return both_ns(dense_operators(PassKind::forward), dense_operators(PassKind::backward)) + attention_core_ns() +
               (eight_bit() ? casts_ns() : 0) + context_exchange_ns();
    }

    // Without the attention core, which context parallelism spreads otherwise than the rest.
    std::vector<Operator> dense_operators(PassKind pass) const {
        auto operators = layer_operators(network_, PassShape{{m_}}, run_.layout, pass);
        std::erase_if(operators, [](const Operator& op) { return op.kind() == OperatorClass::attention; });
        if (eight_bit())
            for (Operator& op : operators)
                if (auto* gemm = std::get_if<costdb::Gemm>(&op.query)) gemm->dtype = costdb::Dtype::fp8;
        return operators;
    }

    // Every sequence attends as a whole: in a ring each GPU does its part of all heads; after an all-to-all it has all
    // of the sequence for its part of the heads.
    double attention_core_ns() const {
        const std::int64_t parts = run_.layout.tp * (hides_communication() ? 1 : run_.cp);
        costdb::Attention core{.batch = 1,
                               .seq_len = run_.seq,
                               .q_heads = network_.heads / parts,
                               .kv_heads = std::max<std::int64_t>(1, network_.kv_heads / parts),
                               .head_dim = network_.head_dim};
        double time = static_cast<double>(costs_.cost(core).duration.count());
        core.pass = costdb::Pass::backward;
        time += static_cast<double>(costs_.cost(core).duration.count());
        const double share = hides_communication() ? 1 / static_cast<double>(run_.cp) : 1;
        return fitted_.compute * static_cast<double>(run_.micro_batch) * share * time;
    }

    // Inputs, weights and outputs of the four products become fp8, and are transposed for the backward.
    double casts_ns() const {
        const std::int64_t columns = 2 * network_.hidden + network_.heads * network_.head_dim + network_.ffn;
        const double bytes = 3 * static_cast<double>(m_ * columns) / static_cast<double>(run_.layout.tp);
        return fitted_.compute * (1 + 1.6) * traffic_ns(costs_, bytes);
    }

    // Queries, keys, values and the output change from parts of the sequence to parts of the heads, and back.
    double context_exchange_ns() const {
        if (run_.cp == 1 || hides_communication()) return 0;
        const std::int64_t columns = (network_.heads + network_.kv_heads) * network_.head_dim / run_.layout.tp;
        return 2 * exposed_ns(CollectiveKind::all_to_all, run_.cp, 4 * static_cast<double>(m_ * columns));
    }

    double latent_layer_ns(std::int64_t layer) const {
        const PassShape shape{std::vector<std::int64_t>(static_cast<std::size_t>(run_.micro_batch), run_.seq)};
        const double time = both_ns(latent_layer_operators(network_, shape, PassKind::forward, layer),
                                    latent_layer_operators(network_, shape, PassKind::backward, layer));
        return time + (workloads::is_moe_layer(network_, layer) ? routed_ns() : 0);
    }

    // The chosen experts: grouped products, tokens sent and fetched in both passes, sixteen permuting passes over the
    // tokens at half the bandwidth (SimuMax's system file), and what the fit leaves.
    double routed_ns() const {
        const auto& device = workloads::device(run_.device);
        const double flops_per_ns = 1e-9 * fitted_.grouped_gemm_share * device.bf16_flops;
        const double tokens = dispatched_bytes(network_, m_);
        constexpr double permute_share = 0.505;
        const double bytes_per_ns =
            1e-9 * permute_share * static_cast<double>(device.memory_bandwidth.bytes_per_second);
        return 3 * grouped_gemm_flops(network_, m_) / flops_per_ns +
               4 * exposed_ns(CollectiveKind::all_to_all, run_.ep, tokens) + 16 * tokens / bytes_per_ns +
               1e3 * fitted_.expert_layer_us;
    }

    // After the last backward: gradients reduced to their owners, updated, weights gathered.
    double update_ns(const RankLayers& rank) const {
        return update_ns(static_cast<double>(rank.common), run_.layout.dp * run_.cp) +
               (rank.experts > 0 ? update_ns(static_cast<double>(rank.experts), expert_replicas(run_)) : 0);
    }

    double update_ns(double parameters, std::int64_t replicas) const {
        const double update = distributed_optimizer_ns(costs_, parameters, replicas);
        if (hides_communication()) return update;
        return update + exposed_ns(CollectiveKind::reduce_scatter, replicas, 4 * parameters) +
               exposed_ns(CollectiveKind::all_gather, replicas, 2 * parameters);
    }

    const TrainingRun& run_;
    const costdb::CostDatabase& costs_;
    FittedConstants fitted_;
    const workloads::Architecture& network_;
    std::int64_t m_;  // tokens of a microbatch on a GPU
};

}  // namespace

double fused_step_ns(const StepCosts& step) { return FusedStep(step).total_ns(); }

}  // namespace pipeweaver::validation
