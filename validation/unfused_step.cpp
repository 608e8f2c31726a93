// Notation     m tokens of a microbatch, h hidden, F ffn, a heads, t tensor parallel GPUs, V padded vocabulary.
// Traffic      forward 22 m h (/t with sequence parallelism) + 12 m h/t + 4 m F/t bytes, backward 1.5 times that.
// Layer        forward + backward + what is computed again, or the host's launches, whichever is longer.
#include "pipeweaver/workloads/counts.hpp"
#include "validation/kernel_times.hpp"
#include "validation/optimizer.hpp"
#include "validation/pipeline_time.hpp"
#include "validation/published_steps.hpp"
#include "validation/unfused_attention.hpp"

#include <algorithm>
#include <vector>

namespace pipeweaver::validation {

using namespace emulator;

using costdb::CollectiveKind;

namespace {

constexpr double network_bytes_per_ns = 100;  // 800 Gb/s a node: vTrain's cluster
constexpr double nvlink_bytes_per_ns = 200;   // of a GPU, as point-to-point transfers reach it
constexpr std::int64_t node = 8;

class UnfusedStep {
public:
    explicit UnfusedStep(const StepCosts& step)
        : run_(step.run),
          costs_(step.costs),
          fitted_(step.fitted),
          m_(static_cast<double>(run_.positions())),
          h_(static_cast<double>(run_.network.hidden)),
          t_(static_cast<double>(run_.layout.tp)) {}

    double total_ns() const {
        const auto layers = run_.layers_of_ranks();
        std::vector<double> ranks;
        ranks.reserve(layers.size());
        const double layer = layer_ns();
        for (const std::int64_t count : layers) ranks.push_back(static_cast<double>(count) * layer);
        ranks.front() += embedding_ns();
        ranks.back() += head_ns();
        const double pipeline = pipeline_ns(ranks, run_.microbatches(), run_.virtual_stages, transfer_ns());
        const double parameters = parameters_of(layers.front());
        return pipeline + optimizer_ns(costs_, parameters) +
               gradient_all_reduce_ns(costs_, parameters, run_.layout.dp, run_.layout.tp, network());
    }

private:
    double network() const { return network_bytes_per_ns * fitted_.network_share; }

    // Over more than a node: inside each, and a ring of nodes.
    double all_reduce_ns(double bytes) const { return inside_ns(CollectiveKind::all_reduce, bytes) + across_ns(bytes); }

    // A tensor that the ranks of tensor parallelism have parts or summands of, made whole for all: at once, or with
    // sequence parallelism as a reduce-scatter behind one block and an all-gather before the next.
    double exchange_ns() const {
        const double bytes = 2 * m_ * h_;
        if (!run_.sequence_parallel) return all_reduce_ns(bytes);
        return inside_ns(CollectiveKind::all_gather, bytes) + inside_ns(CollectiveKind::reduce_scatter, bytes) +
               across_ns(bytes);
    }

    double inside_ns(CollectiveKind kind, double bytes) const {
        return collective_ns(costs_, kind, std::min(run_.layout.tp, node), bytes);
    }

    double across_ns(double bytes) const {
        const double nodes = t_ / static_cast<double>(node);
        return nodes > 1 ? 2 * (nodes - 1) / nodes * bytes / network() : 0;
    }

    bool recomputes_all() const { return run_.recomputation == Recomputation::full; }

    double layer_ns() const {
        const Layout& layout = run_.layout;
        const PassShape shape{std::vector<std::int64_t>(static_cast<std::size_t>(run_.micro_batch), run_.seq)};
        const double forward_gemms = gemms_ns(costs_, layer_operators(run_.network, shape, layout, PassKind::forward));
        const double backward_gemms =
            gemms_ns(costs_, layer_operators(run_.network, shape, layout, PassKind::backward));
        const auto attention = unfused_attention(costs_, run_.micro_batch, run_.network.heads / layout.tp, run_.seq,
                                                 run_.network.head_dim);
        const double traffic = traffic_ns(costs_, norm_and_activation_bytes());
        const double sums = 2 * exchange_ns();
        const double forward = fitted_.compute * (forward_gemms + attention.forward_ns + traffic) + sums;
        const double backward = fitted_.compute * (backward_gemms + attention.backward_ns + 1.5 * traffic) + sums;
        const double again = recomputes_all()                                 ? forward
                             : run_.recomputation == Recomputation::selective ? fitted_.compute * attention.forward_ns
                                                                              : 0;
        return longer_of(forward + backward + again, host_ns());
    }

    double norm_and_activation_bytes() const {
        const auto ffn = static_cast<double>(run_.network.ffn);
        return 22 * m_ * h_ / (run_.sequence_parallel ? t_ : 1) + 12 * m_ * h_ / t_ + 4 * m_ * ffn / t_;
    }

    // A forward, a backward of 1.3 and what is run again; half a pass more for each where Megatron's fused softmax does
    // not take the shape: it needs a multiple of four sequences times heads on a GPU.
    double host_ns() const {
        const double again = recomputes_all() ? 1 : 0;
        const bool fallback = run_.micro_batch * run_.network.heads / run_.layout.tp % 4 != 0;
        return 1e3 * fitted_.host_us * (1 + again + 1.3 + (fallback ? 0.5 * (2 + again) : 0));
    }

    double embedding_ns() const { return traffic_ns(costs_, 12 * m_ * h_) + exchange_ns(); }

    // The loss over parts of the vocabulary: logits, their gradient, softmax in fp32, three small all-reduces. Launches
    // as many kernels as two layers.
    double head_ns() const {
        const std::int64_t columns = run_.network.vocab / run_.layout.tp;
        costdb::Gemm gemm{.m = run_.positions(), .n = columns, .k = run_.network.hidden};
        double time = gemm_ns(costs_, gemm);
        gemm.pass = costdb::Pass::backward;
        time += gemm_ns(costs_, gemm) + traffic_ns(costs_, 32 * m_ * static_cast<double>(columns)) +
                3 * all_reduce_ns(4 * m_);
        return longer_of(fitted_.compute * time, 2 * host_ns());
    }

    // Scatter-gather (arXiv 2104.04473, section 4.1): each GPU sends its part, which is gathered inside the node.
    double transfer_ns() const {
        if (run_.layout.pp == 1) return 0;
        const bool inside = run_.layout.tp * run_.layout.dp < node;
        const double link = inside ? nvlink_bytes_per_ns : network() / static_cast<double>(node);
        const double bytes = 2 * m_ * h_;
        return 2 * (bytes / t_ / link + bytes * (t_ - 1) / t_ / nvlink_bytes_per_ns);
    }

    // Of the rank with the embedding, on one GPU.
    double parameters_of(std::int64_t layers) const {
        const auto of_layers = static_cast<double>(layers * workloads::layer_parameters(run_.network, 0));
        return (of_layers + static_cast<double>(run_.network.vocab) * h_) / t_;
    }

    const TrainingRun& run_;
    const costdb::CostDatabase& costs_;
    FittedConstants fitted_;
    double m_, h_, t_;
};

}  // namespace

double unfused_step_ns(const StepCosts& step) { return UnfusedStep(step).total_ns(); }

}  // namespace pipeweaver::validation
