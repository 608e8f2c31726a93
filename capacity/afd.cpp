#include "pipeweaver/capacity/afd.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/capacity/roofline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace pipeweaver::capacity {

using workloads::Device;

namespace {

constexpr double usable = 0.92;  // of memory

double as_double(std::int64_t number) { return static_cast<double>(number); }

const Device& device_of(const AfdQuestion& question) { return workloads::device(question.cluster.device); }

double gpus_of(const AfdQuestion& question, std::int64_t nodes) {
    return as_double(nodes * question.cluster.gpus_per_node);
}

// Of one layer, of a part's whole time.
Duration of_layer(const AfdQuestion& question, double seconds) {
    constexpr double most = 1e6;  // more is as far from any latency
    return Duration{std::llround(1e9 * std::min(seconds, most) / as_double(question.network.layers))};
}

// Bytes of a value of attention, which also scale what it reads.
double attention_bytes(const AfdQuestion& question) { return question.bf16_attention ? 2 : 1; }

// Of the projections, of which each GPU of a node has a part.
double projection_bytes(const AfdQuestion& question, const TokenWork& work) {
    return attention_bytes(question) * work.linear_flops / 2 / gpus_of(question, 1);
}

// Of a GPU with so many of a microbatch's tokens, a fraction in the mean.
double attention_seconds(const AfdQuestion& question, const TokenWork& work, double tokens) {
    const Device& device = device_of(question);
    const double peak = question.bf16_attention ? device.bf16_flops : peak_flops(device);
    const double speed = as_double(device.memory_bandwidth.bytes_per_second);
    const double cache = std::max(attention_bytes(question) * work.cache_bytes / speed, work.attention_flops / peak);
    const double projections = std::max(projection_bytes(question, work) / speed, tokens * work.linear_flops / peak);
    return (tokens * cache + projections) / question.attention_share;
}

double ffn_seconds(const AfdQuestion& question, const TokenWork& work, double gpus, double tokens) {
    const Device& device = device_of(question);
    const double bytes = work.ffn_weights * (device.fp8_flops > 0 ? 1 : 2);
    const double reading = bytes / (gpus * as_double(device.memory_bandwidth.bytes_per_second));
    return std::max(reading, tokens * work.ffn_flops / (gpus * peak_flops(device) * question.ffn_share));
}

// Tokens that attention's nodes hold keys and values of, all microbatches together.
double most_in_memory(const AfdQuestion& question, const TokenWork& work, std::int64_t nodes) {
    const double left = usable * as_double(device_of(question).memory.count) - projection_bytes(question, work);
    return gpus_of(question, nodes) * std::max(0., left) / (attention_bytes(question) * std::max(1., work.cache_bytes));
}

bool holds_ffn(const AfdQuestion& question, const TokenWork& work, std::int64_t nodes) {
    const Device& device = device_of(question);
    return work.ffn_weights * (device.fp8_flops > 0 ? 1 : 2) <=
           usable * gpus_of(question, nodes) * as_double(device.memory.count);
}

AfdTimes times_of(const AfdQuestion& question, const TokenWork& work, const AfdShape& shape) {
    const double tokens = as_double(shape.tokens);
    const double nodes = as_double(std::min(shape.attention_nodes, shape.ffn_nodes));
    const double speed = nodes * as_double(question.cluster.network.bytes_per_second);
    const double byte_of_all =
        speed > 0 ? tokens * as_double(question.network.hidden * question.network.layers) / speed : 0;
    return {.attention = of_layer(question,
                                  attention_seconds(question, work, tokens / gpus_of(question, shape.attention_nodes))),
            .there = of_layer(question, byte_of_all),
            .ffn = of_layer(question, ffn_seconds(question, work, gpus_of(question, shape.ffn_nodes), tokens)),
            .back = of_layer(question, 2 * byte_of_all)};
}

}  // namespace

Duration replayed_token(const AfdTimes& times, std::int64_t layers, std::int64_t microbatches) {
    PIPEWEAVER_ASSERT(layers > 0 && microbatches > 0);
    const std::array stages{times.attention, times.there, times.ffn, times.back};
    std::array<Duration, 4> free{};
    std::vector<Duration> now(static_cast<std::size_t>(microbatches));
    const auto token = [&] {
        for (std::int64_t layer = 0; layer < layers; ++layer)
            for (Duration& at : now)
                for (std::size_t stage = 0; stage < stages.size(); ++stage)
                    at = free[stage] = std::max(at, free[stage]) + stages[stage];
        return now.back();
    };
    const Duration first = token();  // fills the pipeline
    return token() - first;
}

AfdTimes afd_times(const AfdQuestion& question, const AfdShape& shape) {
    return times_of(question, token_work(question.network, question.context), shape);
}

std::optional<AfdAnswer> afd_on(const AfdQuestion& question, Duration latency, std::int64_t attention_nodes,
                                std::int64_t ffn_nodes) {
    const TokenWork work = token_work(question.network, question.context);
    if (!holds_ffn(question, work, ffn_nodes)) return {};
    const auto token = [&](std::int64_t tokens) {
        return replayed_token(times_of(question, work, {attention_nodes, ffn_nodes, tokens}), question.network.layers,
                              question.microbatches);
    };
    constexpr double most = 1e6;
    const double held = most_in_memory(question, work, attention_nodes) / as_double(question.microbatches);
    std::int64_t low = 0, high = static_cast<std::int64_t>(std::min(most, held));
    while (low < high) {  // more tokens take no less
        const std::int64_t middle = high - (high - low) / 2;
        if (token(middle) <= latency)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == 0) return {};
    AfdAnswer answer{.shape = {attention_nodes, ffn_nodes, low}, .token = token(low), .usd_per_million = {}};
    const double seconds = static_cast<double>(answer.token.count()) * 1e-9;
    const double gpus = gpus_of(question, attention_nodes + ffn_nodes);
    answer.tokens_per_second_per_gpu = as_double(low * question.microbatches) / seconds / gpus;
    if (question.cluster.price_per_gpu_hour > 0)
        answer.usd_per_million =
            usd_per_million(1 / answer.tokens_per_second_per_gpu, question.cluster.price_per_gpu_hour);
    return answer;
}

std::optional<AfdAnswer> best_afd(const AfdQuestion& question, Duration latency) {
    std::optional<AfdAnswer> best;
    for (std::int64_t nodes = 2; nodes <= 2 * question.most_nodes; ++nodes)
        for (std::int64_t ffn = std::max<std::int64_t>(1, nodes - question.most_nodes);
             ffn <= std::min(nodes - 1, question.most_nodes); ++ffn) {
            const auto answer = afd_on(question, latency, nodes - ffn, ffn);
            if (answer && (!best || answer->tokens_per_second_per_gpu > best->tokens_per_second_per_gpu)) best = answer;
        }
    return best;
}

}  // namespace pipeweaver::capacity
