// What generation, inference and training of a language model take at shares of a device's peaks.
//
// Token step   at the roofline of capacity/roofline.hpp, divided by the share that is reached, and the host's time: the
//              weights that answers pass are read once, beside their products; keys and values of tokens in front are
//              read or multiplied, whichever takes longer. Routers send tokens to all experts alike: of n answers that
//              each take k of e experts, e (1 - (1 - k/e)^n) are read. Traffic between an instance's GPUs is not
//              counted: it belongs to the host's time, or to the share.
// Weights      in two bytes, with fp8 in one; keys and values likewise.
// Training     three forwards, 6 FLOPs a parameter, with attention to all of the own tokens (workloads/counts.hpp).
// Units        Duration is integer nanoseconds, each rounded once.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/rl/generation.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::rl {

/// What suits published steps of NeMo RL, on which these were fitted (tests/rl/published_test.cpp says how far): shares
/// of the roofline of decoding and of the bf16 peak, the host's time of a token step for each block, a step's time
/// beside its answers, the speed at which weights are handed over on the GPUs that train, and to others.
constexpr double usual_decode_share = 0.6, usual_mfu = 0.1;
constexpr Duration usual_host_of_block{200'000}, usual_overhead{10'000'000'000};
constexpr Bandwidth usual_weights_speed{20'000'000'000}, usual_weights_speed_apart{40'000'000'000};

/// The usual time of the host in a token step: a block is an attention, linear or not, with a feed-forward; networks
/// whose layers are one of both have half as many blocks.
[[nodiscard]] Duration usual_host(const workloads::Architecture& network);

/// An instance that generates with a language model.
struct Generator {
    const workloads::Architecture& network;
    const workloads::Device& device;
    std::int64_t gpus = 1;
    bool fp8 = false;
    double share = 1;                     ///< of memory's bandwidth and of the peak of products
    Duration host{};                      ///< of each token step
    std::int64_t prompt_tokens = 1;       ///< 1 or more
    std::int64_t mean_answer = 1;         ///< for the slots: tokens
    std::int64_t longest_answer = 1;      ///< windows and states: their mean up to there
    double encoder_flops = 0;             ///< over a prompt's items, before it is read (rl/encoders.hpp)
    Bytes encoder_weights{};              ///< in memory beside the network's
    std::optional<std::int64_t> slots{};  ///< none: as many as memory holds, 4,096 at most
};

/// Its speed. With slots that are not said, 92 % of memory holds weights, and keys and values of that many answers of
/// mean length. None: it holds the weights and one answer not.
[[nodiscard]] std::optional<Decoding> decoding_of(const Generator& generator);

/// FLOPs of one forward over a sequence of so many tokens, the output head included.
[[nodiscard]] double forward_flops(const workloads::Architecture& network, std::int64_t tokens);

/// GPU time of `forwards` forwards over each answer with its prompt, at a share of the peak in bf16, and of
/// `encoder_flops` for each.
[[nodiscard]] std::vector<Duration> forward_times(const workloads::Architecture& network,
                                                  const workloads::Device& device, double share, double forwards,
                                                  std::span<const std::int64_t> answers, std::int64_t prompt_tokens,
                                                  double encoder_flops = 0);

/// GPU time of each answer with its prompt, shared out by tokens, where all on `gpus` took `measured`.
[[nodiscard]] std::vector<Duration> shares_of(Duration measured, std::int64_t gpus,
                                              std::span<const std::int64_t> answers, std::int64_t prompt_tokens);

/// Parameters of a language model in bytes, in fp8 or bf16. They are handed over in bf16: those that generate in fp8
/// cast them (NeMo RL, nemo_rl/models/generation/vllm/quantization/fp8.py).
[[nodiscard]] Bytes weights_of(const workloads::Architecture& network, bool fp8);

/// From those that train to all instances: through each node's network once what its instances hold, then to each GPU
/// its part by the links inside the node. Trees and pipelines hide the rest. Where all GPUs lie in one node, by its
/// links alone; a link that the cluster does not say takes no time. No faster than `most`, all weights once: they are
/// gathered, cast and loaded on the way. Pre: most > 0.
[[nodiscard]] Duration weights_time(const workloads::Cluster& cluster, Bytes weights, std::int64_t instance_gpus,
                                    Bandwidth most);

}  // namespace pipeweaver::rl
