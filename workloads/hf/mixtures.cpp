#include "workloads/hf/mixtures.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

// Of text and of images: a list of two, or one number for both.
struct OfBoth {
    std::int64_t text = 0, images = 0;
};

OfBoth both(const Part& part, const Key& key, std::int64_t least) {
    const auto said = given(part, key);
    if (!said) refuse(part, fmt::format("the key '{}' is missing", key.usual));
    if (!said->is_array()) return {said->integer(least, most), said->integer(least, most)};
    if (said->size() != 2) refuse(*said, *part.reading, "has not two entries, of text and of images");
    return {(*said)[0].integer(least, most), (*said)[1].integer(least, most)};
}

std::int64_t same(const Part& part, const Key& key, std::int64_t least) {
    const OfBoth said = both(part, key, least);
    if (said.text != said.images)
        refuse(*given(part, key), *part.reading,
               fmt::format("is {} of text and {} of images; only equal ones are read", said.text, said.images));
    return said.text;
}

}  // namespace

void ernie_blocks(const Part& part, const DecoderRow& row, Architecture& a) {
    const auto experts = given(part, key::experts);
    if (!experts || !experts->is_array()) {
        read_feed_forward(part, row, a);
        return;
    }
    const OfBoth number = both(part, key::experts, 1), width = both(part, key::expert_ffn, 1);
    MixtureOfExperts moe;
    moe.experts = number.text + number.images;
    moe.expert_ffn = (number.text * width.text + number.images * width.images + moe.experts / 2) / moe.experts;
    moe.top_k = same(part, key::top_k, 1);
    moe.first_layer = same(part, key::first_dense, 0);
    moe.moe_layers = a.layers - moe.first_layer;
    const OfBoth last = both(part, key::last_of_experts, 0);
    const auto interval = size(part, key::expert_interval).value_or(1);
    if (interval != 1 || moe.moe_layers < 1 || std::min(last.text, last.images) < a.layers - 1)
        refuse(part, fmt::format("experts in every layer from moe_layer_start_index to the last are read, not in each "
                                 "{}th from {} to {}",
                                 interval, moe.first_layer, std::min(last.text, last.images)));
    moe.shared_ffn = count(part, key::shared_experts) * width.text;
    a.ffn = needed(part, key::ffn);
    a.moe = moe;
    assume(
        *part.reading,
        fmt::format("{} experts of text, {} wide, and {} of images, {} wide, are taken as {} of their mean width, {}, "
                    "of which every position chooses {}",
                    number.text, width.text, number.images, width.images, moe.experts, moe.expert_ffn, moe.top_k));
}

void step_blocks(const Part& part, const DecoderRow& row, Architecture& a) {
    if (!given(part, key::moe_layers)) refuse(part, "the key 'moe_layers_enum' is missing");
    a.attention.kind = AttentionKind::factored;
    a.attention.share_q_dim = needed(part, key::shared_queries);
    read_feed_forward(part, row, a);
}

}  // namespace pipeweaver::workloads::hf
