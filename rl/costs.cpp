#include "pipeweaver/rl/costs.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/capacity/roofline.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::rl {

using workloads::Architecture;
using workloads::Device;

namespace {

double as_double(std::int64_t number) { return static_cast<double>(number); }

// Up to a century: what is longer, or adds up to more, is refused by who asks.
Duration rounded(double seconds) { return Duration{std::llround(std::min(seconds, 3e9) * 1e9)}; }

// Of an instance, a second.
struct Rates {
    double bytes = 0, flops = 0;
};

Rates rates_of(const Generator& of) {
    const double gpus = of.share * as_double(of.gpus);
    return {gpus * as_double(of.device.memory_bandwidth.bytes_per_second),
            gpus * (of.fp8 ? capacity::peak_flops(of.device) : of.device.bf16_flops)};
}

double bytes_of_a_value(const Generator& of) { return of.fp8 ? 1 : 2; }

// What answers read and multiply, linear in the tokens in front.
struct Work {
    double dense = 0, experts = 0;            // parameters that every token passes, and all experts
    double active = 0;                        // that one token passes
    double routed = 0;                        // share of the experts that a token is sent to; 0: there are none
    double state_bytes = 0;                   // of an answer, whatever is in front
    double front_bytes = 0, front_flops = 0;  // of a token in front
};

Work work_of(const Generator& of) {
    const std::int64_t context = of.prompt_tokens + of.longest_answer;
    const auto none = capacity::token_work(of.network, 1), all = capacity::token_work(of.network, context);
    const double between = std::max(1., as_double(context - 1));
    Work work;
    // Keys and values count a byte for each value there; what does not grow is in fp32.
    const double grown = (all.cache_bytes - none.cache_bytes) / between;
    work.front_bytes = grown * bytes_of_a_value(of);
    work.front_flops = (all.attention_flops - none.attention_flops) / between;
    work.state_bytes = std::max(0., none.cache_bytes - grown);
    const double head = workloads::head_flops(of.network, 1) / 2;
    work.active = (none.linear_flops + none.ffn_flops) / 2 + head;
    work.dense = work.active;
    if (of.network.moe && of.network.moe->top_k < of.network.moe->experts) {
        work.routed = as_double(of.network.moe->top_k) / as_double(of.network.moe->experts);
        // Of what all experts have, a token passes this share; the rest of the feed-forward every token passes.
        work.experts = (none.ffn_weights - none.ffn_flops / 2) / (1 - work.routed);
        work.dense = work.active - work.routed * work.experts;
    }
    return work;
}

Duration token_step(const Generator& of, const Work& work, std::int64_t answers) {
    const Rates rates = rates_of(of);
    const double reached = work.routed > 0 ? 1 - std::pow(1 - work.routed, as_double(answers)) : 0;
    const double read = bytes_of_a_value(of) * (work.dense + reached * work.experts);
    const double products = 2 * as_double(answers) * work.active;
    const double states = as_double(answers) * work.state_bytes;
    return of.host + rounded(std::max(read / rates.bytes, products / rates.flops) + states / rates.bytes);
}

// How many answers of mean length an instance holds beside its weights.
std::int64_t slots_in_memory(const Generator& of, const Work& work) {
    constexpr double usable = 0.92, most = 4096;
    const double memory = usable * as_double(of.gpus) * as_double(of.device.memory.count);
    const double left = memory - as_double((weights_of(of.network, of.fp8) + of.encoder_weights).count);
    const double of_answer = work.state_bytes + work.front_bytes * as_double(of.prompt_tokens + of.mean_answer);
    if (of_answer <= 0) return left > 0 ? static_cast<std::int64_t>(most) : 0;
    return static_cast<std::int64_t>(std::clamp(std::floor(left / of_answer), 0., most));
}

}  // namespace

Duration usual_host(const Architecture& network) {
    std::int64_t halves = 0;
    for (std::int64_t layer = 0; layer < network.layers; ++layer)
        halves += workloads::block_parts(network, layer).norms();
    return halves * usual_host_of_block / 2;
}

std::optional<Decoding> decoding_of(const Generator& generator) {
    PIPEWEAVER_ASSERT(generator.prompt_tokens >= 1 && generator.gpus >= 1 && generator.share > 0);
    const Work work = work_of(generator);
    const std::int64_t held = slots_in_memory(generator, work);
    const std::int64_t slots = generator.slots ? std::min(*generator.slots, held) : held;
    if (slots < 1) return {};
    const Rates rates = rates_of(generator);
    Decoding decoding;
    for (std::int64_t answers = 1; answers <= slots; ++answers)
        decoding.token.push_back(token_step(generator, work, answers));
    const double in_front = std::max(work.front_bytes / rates.bytes, work.front_flops / rates.flops);
    decoding.front_ps = std::llround(std::min(in_front, 1.) * 1e12);
    const double encoders = generator.encoder_flops / (generator.share * as_double(generator.gpus));
    decoding.prompt = rounded(forward_flops(generator.network, generator.prompt_tokens) / rates.flops +
                              encoders / generator.device.bf16_flops);
    decoding.prompt_tokens = generator.prompt_tokens;
    return decoding;
}

double forward_flops(const Architecture& network, std::int64_t tokens) {
    const std::array lengths{tokens};
    double flops = workloads::head_flops(network, as_double(tokens));
    for (std::int64_t layer = 0; layer < network.layers; ++layer)
        flops += workloads::layer_flops(network, layer, as_double(tokens),
                                        workloads::attention_pairs(network, layer, lengths));
    return flops;
}

std::vector<Duration> forward_times(const Architecture& network, const Device& device, double share, double forwards,
                                    std::span<const std::int64_t> answers, std::int64_t prompt_tokens,
                                    double encoder_flops) {
    std::vector<Duration> times;
    for (const std::int64_t tokens : answers) {
        const double flops = forwards * forward_flops(network, tokens + prompt_tokens) + encoder_flops;
        times.push_back(rounded(flops / (share * device.bf16_flops)));
    }
    return times;
}

std::vector<Duration> shares_of(Duration measured, std::int64_t gpus, std::span<const std::int64_t> answers,
                                std::int64_t prompt_tokens) {
    double tokens = 0;
    for (const std::int64_t answer : answers) tokens += as_double(answer + prompt_tokens);
    const double of_a_token = as_double(measured.count()) * as_double(gpus) * 1e-9 / tokens;
    std::vector<Duration> times;
    for (const std::int64_t answer : answers) times.push_back(rounded(of_a_token * as_double(answer + prompt_tokens)));
    return times;
}

Bytes weights_of(const Architecture& network, bool fp8) {
    return (fp8 ? 1 : 2) * Bytes{workloads::all_parameters(network)};
}

Duration weights_time(const workloads::Cluster& cluster, Bytes weights, std::int64_t instance_gpus, Bandwidth most) {
    const Bytes of_gpu{(weights.count + instance_gpus - 1) / instance_gpus};
    Duration time{};
    if (cluster.gpus > cluster.gpus_per_node && cluster.network.bytes_per_second > 0)
        time += std::min(cluster.gpus_per_node, instance_gpus) * of_gpu / cluster.network;
    if (cluster.node_link.bytes_per_second > 0) time += of_gpu / cluster.node_link;
    return std::max(time, weights / most);
}

}  // namespace pipeweaver::rl
