#include "workloads/hf/decoders.hpp"

#include "pipeweaver/base/options.hpp"
#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace pipeweaver::workloads::hf {

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void read_heads(const Part& part, const DecoderRow& row, bool latent, Architecture& a) {
    a.heads = needed(part, key::heads);
    if (const auto kv_heads = size(part, key::kv_heads)) {
        a.kv_heads = *kv_heads;
    } else {
        a.kv_heads = a.heads;
        if (!latent)
            assume(*part.reading, "as many key and value heads as attention heads: there is no num_key_value_heads");
    }
    const auto head_dim = latent ? std::nullopt : size(part, key::head_dim);
    if (latent) {
        a.head_dim = 1;  // said by what follows
    } else if (head_dim) {
        a.head_dim = *head_dim;
    } else if (row.head_dim > 0) {
        a.head_dim = row.head_dim;
        assume(*part.reading, fmt::format("heads of {}, as its class has them: there is no head_dim", row.head_dim));
    } else {
        a.head_dim = divided(part, {"hidden_size", a.hidden}, {"num_attention_heads", a.heads});
    }
    a.qkv_bias = row.bias == Bias::always || flag(part, key::bias, false);
    a.attention.qk_norm = flag(part, key::qk_norm, row.qk_norm);
}

void read_latent(const Part& part, Architecture& a) {
    Attention& t = a.attention;
    t.kind = AttentionKind::latent;
    t.q_lora_rank = size(part, key::q_rank);
    t.kv_lora_rank = needed(part, key::kv_rank);
    t.qk_nope_head_dim = needed(part, key::nope);
    t.qk_rope_head_dim = needed(part, key::rope);
    t.v_head_dim = needed(part, key::v_head);
    a.kv_heads = a.heads;
    a.head_dim = t.v_head_dim;
}

// Small models of DeepSeek's second generation have plain heads. Elsewhere a size that is missing is asked for.
bool has_latent_heads(const Part& part, const DecoderRow& row) {
    if (!row.latent) return false;
    if (given(part, key::use_latent)) {
        if (flag(part, key::use_latent, true)) return true;
        assume(*part.reading, "plain heads, no latent attention: use_mla is false");
        return false;
    }
    if (!row.plain_heads || given(part, key::kv_rank) || given(part, key::nope)) return true;
    assume(*part.reading, "plain heads, no latent attention: there is no kv_lora_rank");
    return false;
}

void say_indexed(const Part& part) {
    if (const auto most_read = size(part, key::indexed))
        assume(*part.reading, fmt::format("attention is taken to be to all positions, as it is up to index_topk ({}); "
                                          "the indexer that chooses among more is not counted",
                                          *most_read));
}

// A number that may be 0, but must be said.
std::int64_t said_count(const Part& part, const Key& key) {
    return given(part, key) ? count(part, key) : needed(part, key);
}

// Each n-th layer holds experts.
std::int64_t sparse_step(const Part& part, const DecoderRow& row) {
    const auto step = size(part, key::sparse_step);
    if (!step && row.shared == Shared::one)
        assume(*part.reading, "experts in every layer: there is no interleave_moe_layer_step");
    return step.value_or(1);
}

// Layers of a list, or of a text: "4,5,6".
std::vector<std::int64_t> listed(const Json& list, std::int64_t highest) {
    std::vector<std::int64_t> numbers;
    if (!list.is_string()) {
        for (const Json& one : list.elements()) numbers.push_back(one.integer(0, highest));
        return numbers;
    }
    for (const std::string& word : parts_of(list.text())) {
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), numbers.emplace_back());
        if (error != std::errc{} || end != word.data() + word.size() || numbers.back() < 0 || numbers.back() > highest)
            list.fail(fmt::format("has '{}', allowed are layers from 0 to {}, separated by commas", word, highest));
    }
    return numbers;
}

// Whether each layer holds experts.
std::vector<bool> expert_layers(const Part& part, const DecoderRow& row, const Architecture& a) {
    std::vector<bool> holds(index(a.layers), true);
    if (const auto list = given(part, key::moe_layers); list && (list->is_array() || list->is_string())) {
        std::fill(holds.begin(), holds.end(), false);
        for (const std::int64_t layer : listed(*list, a.layers - 1)) holds[index(layer)] = true;
        return holds;
    }
    if (const auto types = given(part, key::mlp_types)) {
        if (types->size() != holds.size()) refuse(*types, *part.reading, "has not one entry for each layer");
        for (std::size_t i = 0; i < holds.size(); ++i) holds[i] = (*types)[i].text() != "dense";
        return holds;
    }
    const auto every = given(part, key::moe_every);
    if (every && every->is_array() && every->size() != holds.size())
        refuse(*every, *part.reading, "has not one entry for each layer");
    const bool must_say = row.shared == Shared::counted && !(every && every->is_array());
    const std::int64_t first = must_say ? said_count(part, key::first_dense) : count(part, key::first_dense);
    const std::int64_t step = sparse_step(part, row);
    for (std::size_t i = 0; i < holds.size(); ++i) {
        const auto layer = static_cast<std::int64_t>(i);
        const bool by_frequency = !every              ? true
                                  : every->is_array() ? (*every)[i].integer(0, 1) == 1
                                                      : layer % every->integer(1, most) == 0;
        holds[i] = by_frequency && layer >= first && (layer + 1) % step == 0;
    }
    if (const auto dense = given(part, key::dense_layers))
        for (const Json& layer : dense->elements()) holds[index(layer.integer(0, a.layers - 1))] = false;
    return holds;
}

// First layer, distance and number: what a model file can say.
void place_experts(const Part& part, const std::vector<bool>& holds, MixtureOfExperts& moe) {
    std::vector<std::int64_t> layers;
    layers.reserve(holds.size());
    for (std::size_t i = 0; i < holds.size(); ++i)
        if (holds[i]) layers.push_back(static_cast<std::int64_t>(i));
    if (layers.empty()) refuse(part, "no layer holds experts");
    moe.moe_layers = static_cast<std::int64_t>(layers.size());
    moe.first_layer = layers.front();
    moe.every = layers.size() > 1 ? layers[1] - layers[0] : 1;
    for (std::size_t i = 1; i < layers.size(); ++i)
        if (layers[i] - layers[i - 1] != moe.every) refuse(part, "layers of experts at unequal distances are not read");
}

std::int64_t shared_width(const Part& part, const DecoderRow& row, const Architecture& a, std::int64_t expert_ffn) {
    switch (row.shared) {
        case Shared::none:
            return 0;
        case Shared::counted:
            return said_count(part, key::shared_experts) * expert_ffn;
        case Shared::own_width:
            return needed(part, key::shared_ffn);
        case Shared::one:
            return expert_ffn;
        case Shared::feed_forward:
            return a.ffn;
    }
    return 0;
}

bool has_mixture(const Part& part, const DecoderRow& row) {
    if (row.mixture == Mixture::needed) return true;
    const auto experts = given(part, key::experts);
    if (!experts || experts->integer(0, most) == 0) return false;
    if (row.mixture == Mixture::none)
        refuse(*experts, *part.reading,
               fmt::format("is {}, but models of type '{}' have no experts", experts->integer(0, most), row.type));
    return flag(part, key::moe_used, row.shared != Shared::feed_forward);
}

}  // namespace

void read_feed_forward(const Part& part, const DecoderRow& row, Architecture& a) {
    if (!has_mixture(part, row)) {
        a.ffn = needed(part, key::ffn);
        return;
    }
    MixtureOfExperts moe;
    moe.experts = needed(part, key::experts);
    moe.top_k = needed(part, row.per_token ? key::top_k_token : key::top_k);
    moe.expert_ffn = needed(part, row.experts_by_ffn ? key::ffn : key::expert_ffn);
    place_experts(part, expert_layers(part, row, a), moe);
    const bool everywhere = moe.moe_layers == a.layers && row.shared != Shared::feed_forward;
    if (row.experts_by_ffn)
        a.ffn = everywhere ? moe.expert_ffn : needed(part, key::ffn_of_dense);
    else
        a.ffn = everywhere ? size(part, key::ffn).value_or(moe.expert_ffn) : needed(part, key::ffn);
    moe.shared_ffn = shared_width(part, row, a, moe.expert_ffn);
    a.moe = moe;
}

std::string period_of(const std::string& pattern) {
    for (std::size_t length = 1; length <= pattern.size() / 2; ++length) {
        if (pattern.size() % length != 0) continue;
        bool repeats = true;
        for (std::size_t i = length; i < pattern.size() && repeats; ++i) repeats = pattern[i] == pattern[i - length];
        if (repeats) return pattern.substr(0, length);
    }
    return pattern;
}

namespace {

// Whether each layer is of the kind that layer_types calls `name`, which else all but each n-th are.
std::vector<bool> layers_of(const Part& part, const Architecture& a, std::string_view name, std::int64_t period) {
    std::vector<bool> all(index(a.layers));
    if (const auto types = given(part, key::layer_types)) {
        if (types->size() != all.size()) refuse(*types, *part.reading, "has not one entry for each layer");
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = (*types)[i].text() == name;
        return all;
    }
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = (static_cast<std::int64_t>(i) + 1) % period != 0;
    return all;
}

void read_linear(const Part& part, Architecture& a) {
    LinearAttention linear;
    linear.key_heads = needed(part, key::linear_key_heads);
    linear.value_heads = needed(part, key::linear_value_heads);
    linear.key_dim = needed(part, key::linear_key_dim);
    linear.value_dim = needed(part, key::linear_value_dim);
    linear.convolution = needed(part, key::linear_convolution);
    a.linear = linear;
    a.attention.output_gate = flag(part, key::output_gate, true);
    const std::int64_t period = given(part, key::layer_types) ? 1 : needed(part, key::full_every);
    std::string pattern;
    pattern.reserve(index(a.layers));
    for (const bool is_linear : layers_of(part, a, "linear_attention", period)) pattern += is_linear ? 'L' : 'F';
    if (pattern.find('L') == std::string::npos) refuse(part, "no layer is of linear attention");
    a.layer_pattern = period_of(pattern);
}

std::vector<bool> windowed_layers(const Part& part, const DecoderRow& row, const Architecture& a) {
    if (row.windows == Windows::alternating)
        return layers_of(part, a, "sliding_attention", size(part, key::window_pattern).value_or(row.period));
    std::vector<bool> windowed(index(a.layers), row.windows == Windows::all);
    if (row.windows == Windows::where_used && flag(part, key::window_used, false)) {
        const std::int64_t from = given(part, key::window_from) ? count(part, key::window_from) : 0;
        for (std::int64_t i = from; i < a.layers; ++i) windowed[index(i)] = true;
    }
    return windowed;
}

// A position of a window of w sees w before it: as many pairs as causal blocks of 2 w have.
void read_windows(const Part& part, const DecoderRow& row, Architecture& a) {
    if (const auto chunk = given(part, key::chunk); chunk && a.moe)
        assume(*part.reading,
               fmt::format("attention in chunks of {} tokens is taken as full", chunk->integer(1, most)));
    if (row.windows == Windows::none) return;
    const std::vector<bool> windowed = windowed_layers(part, row, a);
    if (std::find(windowed.begin(), windowed.end(), true) == windowed.end()) return;
    const auto window = row.windows == Windows::all ? size(part, key::window) : needed(part, key::window);
    if (!window) return;
    if (a.moe) {
        assume(*part.reading,
               fmt::format("sliding windows of {} tokens beside experts are taken as full attention", *window));
        return;
    }
    a.attention.kind = AttentionKind::windowed;
    a.attention.window = 2 * *window;
    for (std::size_t i = 0; i < windowed.size(); ++i)
        if (!windowed[i]) a.attention.full_layers.push_back(static_cast<std::int64_t>(i));
    assume(*part.reading, fmt::format("sliding windows of {} tokens are priced as causal blocks of {}, which have as "
                                      "many pairs of positions",
                                      *window, 2 * *window));
}

// Embeddings for each layer, layers that share keys and values, and feed-forwards of two widths: the small Gemma 4.
void read_layer_embeddings(const Part& part, Architecture& a) {
    const auto width = given(part, key::per_layer_hidden);
    a.layer_embedding = width ? width->integer(0, most) : needed(part, key::per_layer_hidden);
    if (a.layer_embedding > 0 && a.moe)
        refuse(part, "hidden_size_per_layer_input is not 0: embeddings for each layer beside experts are not read");
    const std::int64_t sharing = count(part, key::shared_kv_layers);
    if (sharing == 0) return;
    assume(*part.reading,
           fmt::format("the last {} layers read keys and values of others, and are taken to make their "
                       "own: {:.2f} billion parameters too many",
                       sharing, static_cast<double>(sharing * 2 * a.hidden * a.kv_heads * a.head_dim) / 1e9));
    if (!flag(part, key::double_wide, false) || sharing >= a.layers) return;
    constexpr std::int64_t step = 64;  // still divided by tensor parallel GPUs
    const std::int64_t wide = 2 * a.ffn, all = (a.layers - sharing) * a.ffn + sharing * wide;
    assume(*part.reading,
           fmt::format("feed-forwards are {} and in the last {} layers {} wide, and are taken as wide as "
                       "they are on average",
                       a.ffn, sharing, wide));
    a.ffn = (all / a.layers + step / 2) / step * step;
}

// Heads of their own size in full layers: what taking them as the others leaves out.
void read_global_heads(const Part& part, const DecoderRow& row, Architecture& a) {
    read_layer_embeddings(part, a);
    const std::int64_t width = needed(part, key::global_head_dim);
    const bool shared = flag(part, key::keys_are_values, false);
    const std::int64_t kv_heads = shared ? size(part, key::global_kv_heads).value_or(a.kv_heads) : a.kv_heads;
    const std::int64_t own = a.hidden * width * (2 * a.heads + (shared ? 1 : 2) * kv_heads);
    const std::int64_t taken = a.hidden * a.head_dim * (2 * a.heads + 2 * a.kv_heads);
    const std::vector<bool> windowed = windowed_layers(part, row, a);
    const auto full = std::count(windowed.begin(), windowed.end(), false);
    if (own == taken || full == 0) return;
    assume(*part.reading,
           fmt::format("the {} full layers have heads of {}, and are taken with heads of {} as the others: {:.2f} "
                       "billion parameters are not counted",
                       full, width, a.head_dim, static_cast<double>((own - taken) * full) / 1e9));
}

void read_cross(const Part& part, Architecture& a) {
    const auto layers = given(part, key::cross_layers);
    if (!layers) refuse(part, "the key 'cross_attention_layers' is missing");
    a.cross_attention_dim = a.hidden;
    a.cross_attention_layers = static_cast<std::int64_t>(layers->size());
    if (a.cross_attention_layers == 0) refuse(*layers, *part.reading, "is empty: no layer would see an image");
    const std::int64_t period = a.layers / std::max<std::int64_t>(1, a.cross_attention_layers);
    for (std::size_t i = 0; i < layers->size(); ++i)
        if ((*layers)[i].integer(0, a.layers - 1) != (static_cast<std::int64_t>(i) + 1) * period - 2)
            refuse(*layers, *part.reading,
                   fmt::format("is not every {}th layer from {} on, which alone is read", period, period - 2));
}

}  // namespace

Architecture language_model(const Part& part, const Part& whole, const DecoderRow& row) {
    part.reading->start_from = row.start_from;
    Architecture a;
    a.kind = ModuleKind::language_model;
    a.layers = needed(part, key::layers);
    a.hidden = needed(part, key::hidden);
    a.vocab = needed(part, key::vocab);
    a.gated = !row.plain;
    const bool latent = has_latent_heads(part, row);
    read_heads(part, row, latent, a);
    if (latent) read_latent(part, a);
    if (row.indexed) say_indexed(part);
    if (row.blocks)
        row.blocks(part, row, a);
    else
        read_feed_forward(part, row, a);
    a.tied_embeddings = flag(part, key::tied, flag(whole, key::tied, row.tied));
    if (!given(part, key::tied) && !given(whole, key::tied))
        assume(*part.reading, fmt::format("embedding and output head are {}: there is no tie_word_embeddings",
                                          row.tied ? "one weight" : "two weights"));
    a.attention.output_gate = row.gate;
    if (row.linear) read_linear(part, a);
    if (row.cross) read_cross(part, a);
    read_windows(part, row, a);
    if (row.global_heads) read_global_heads(part, row, a);
    if (count(part, key::predicted) > 0) assume(*part.reading, "the layer that predicts a second token is not trained");
    return a;
}

}  // namespace pipeweaver::workloads::hf
