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

// The layers from this one to the last, which alone are read.
std::int64_t first_of_experts(const Part& part, const Architecture& a) {
    std::int64_t first = 1, last = a.layers - 1;
    if (const auto types = given(part, key::mlp_types)) {
        const auto all = types->elements();
        const auto is_dense = [](const Json& one) { return one.text() == "dense"; };
        const auto sparse = std::find_if_not(all.begin(), all.end(), is_dense);
        if (static_cast<std::int64_t>(all.size()) != a.layers || std::any_of(sparse, all.end(), is_dense))
            refuse(*types, *part.reading, "has not one entry for each layer, first all that are dense");
        return sparse - all.begin();
    }
    if (given(part, key::first_dense))
        first = same(part, key::first_dense, 0);
    else
        assume(*part.reading, "the first layer alone has no experts: there is no mlp_layer_types");
    if (given(part, key::last_of_experts)) {
        const OfBoth said = both(part, key::last_of_experts, 0);
        last = std::min(said.text, said.images);
    }
    const std::int64_t interval = size(part, key::expert_interval).value_or(1);
    if (interval != 1 || last < a.layers - 1)
        refuse(part, fmt::format("experts in every layer up to the last are read, not with moe_layer_interval {} up to "
                                 "layer {}",
                                 interval, last));
    return first;
}

}  // namespace

void ernie_blocks(const Part& part, const DecoderRow& row, Architecture& a) {
    const auto widths = given(part, key::expert_ffn);
    if (!widths || !widths->is_array()) {
        read_feed_forward(part, row, a);
        return;
    }
    const OfBoth number = both(part, key::experts, 1), width = both(part, key::expert_ffn, 1);
    MixtureOfExperts moe;
    moe.experts = number.text + number.images;
    moe.expert_ffn = (number.text * width.text + number.images * width.images + moe.experts / 2) / moe.experts;
    moe.top_k = same(part, key::top_k, 1);
    moe.first_layer = first_of_experts(part, a);
    moe.moe_layers = a.layers - moe.first_layer;
    if (moe.moe_layers < 1) refuse(part, "no layer holds experts");
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
