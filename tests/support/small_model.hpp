// A model, a cluster and a batch small enough to work out by hand.
#pragma once

#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

namespace pipeweaver::testing {

inline workloads::Architecture small_network(workloads::ModuleKind kind, std::int64_t layers, std::int64_t hidden) {
    workloads::Architecture network;
    network.kind = kind;
    network.name = "small";
    network.layers = layers;
    network.hidden = hidden;
    network.ffn = 4 * hidden;
    network.heads = hidden / 128;
    network.kv_heads = hidden / 128;
    network.head_dim = 128;
    network.gated = kind == workloads::ModuleKind::language_model;
    network.attention.causal = network.gated;
    if (network.gated) network.vocab = 32000;
    return network;
}

/// "vit" (6 layers of width 1024, takes images) -> "llm" (8 layers of width 2048), 4 patches to a token.
inline workloads::Model small_model() {
    using namespace workloads;
    Model model;
    model.name = "small";
    Module vit{"vit", small_network(ModuleKind::vision_encoder, 6, 1024), PassUnit::items, {Modality::image}, true};
    Module llm{"llm", small_network(ModuleKind::language_model, 8, 2048), PassUnit::microbatch, {}, true};
    model.modules = {vit, llm};
    model.edges = {{0, 1, 4, 1024, 2048}};
    return model;
}

inline workloads::Cluster small_cluster(std::int64_t gpus) {
    auto cluster = workloads::find_cluster("h100-sxm:8");
    cluster.gpus = gpus;
    return cluster;
}

/// Microbatches of 1024 text tokens and the given numbers of images of 256 patches (64 tokens) each.
inline std::vector<workloads::Microbatch> small_batch(const std::vector<int>& images) {
    std::vector<workloads::Microbatch> batch;
    for (std::size_t m = 0; m < images.size(); ++m) {
        workloads::Microbatch microbatch;
        microbatch.samples = {m};
        microbatch.tokens = 1024 + 64 * images[m];
        microbatch.lengths = {microbatch.tokens};
        microbatch.loss_tokens = 1024;
        for (int i = 0; i < images[m]; ++i)
            microbatch.items.push_back(
                {m, static_cast<std::size_t>(i), {workloads::Modality::image, 64, 256, 0, false}});
        batch.push_back(microbatch);
    }
    return batch;
}

}  // namespace pipeweaver::testing
