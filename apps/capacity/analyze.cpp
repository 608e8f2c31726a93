// pipeweaver analyze: what a token costs on each device at the roofline, attention and feed-forward apart.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/optional_figures.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/capacity/afd.hpp"
#include "pipeweaver/capacity/roofline.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using capacity::SplitInstances;
using capacity::TokenWork;
using workloads::Cluster;

// "8k,32k" or "8192".
std::int64_t parse_context(const std::string& text) {
    constexpr std::int64_t most = 100'000'000, thousand = 1024;
    std::int64_t tokens = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, tokens);
    const bool thousands = after + 1 == end && (*after == 'k' || *after == 'K');
    if (error == std::errc{} && (after == end || thousands) && tokens > 0 && tokens <= most / thousand)
        return thousands ? tokens * thousand : tokens;
    fail(ErrorKind::input, "--context: {}", must_be(text, "a number of tokens, like 8192 or 8k"));
}

struct Nodes {
    std::int64_t attention = 0, ffn = 0;
};

Nodes parse_nodes(const std::string& text) {
    constexpr std::int64_t most = 1024;
    const auto colon = std::min(text.find(':'), text.size());
    const auto attention = integer_in(text.substr(0, colon), 1, most);
    const auto ffn = colon < text.size() ? integer_in(text.substr(colon + 1), 1, most) : std::nullopt;
    if (!attention || !ffn) fail(ErrorKind::input, "{}", must_be(text, "two numbers of nodes, like 3:2"));
    return {*attention, *ffn};
}

// The language model of a model.
const workloads::Architecture& language_model_of(const workloads::Model& model) {
    const auto& network = model.modules[model.backbone()].architecture;
    if (network.kind == workloads::ModuleKind::language_model) return network;
    fail(ErrorKind::input, "the backbone of '{}' is no language model: allowed are models that have one", model.name);
}

// The first cluster that ships of the device.
Cluster cluster_of(const workloads::Device& device) {
    for (const Cluster& cluster : workloads::clusters())
        if (cluster.device == device.name) return cluster;
    fail(ErrorKind::input, "--device: no cluster of '{}' is known", device.name);
}

struct Analyze {
    explicit Analyze(CLI::App& app) : options(app) {
        console.add_to(app);
        add_required_operand(app, "model", model, "MODEL",
                             "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json");
        options.group("What is asked");
        options.text("context", context, "TOKENS,...", "tokens in front of the one that is decoded (default: 8k,32k)");
        options.text("device", device, "DEVICE,...",
                     "of `pipeweaver list devices`, or all (default: all that have fp8)");
        options.parsed("latency", "TIME", "of a token: how many nodes a split of attention and feed-forward takes",
                       [this](const std::string& text) { latency = parse_duration(text); });
        options.group("Attention and feed-forward apart, with --latency");
        options.parsed("nodes", "A:F", "with attention and with feed-forwards (default: the best of up to 16 each)",
                       [this](const std::string& text) { asked_nodes = parse_nodes(text); });
        options.integer("microbatches", microbatches, 1, 16, "that go round (default: 3)");
        options.number("attention-share", attention_share, 0.01, 1, "of its roofline (default: 0.65)");
        options.number("ffn-share", ffn_share, 0.01, 1, "of the peak of its products (default: 0.22)");
        options.choice("attention-precision", attention_precision, {"fp8", "bf16"},
                       "of keys, values and projections (default: fp8 where the device has it)");
        options.group("The devices");
        options.number("price", price, 0, 10'000, "USD for a GPU-hour (default: each cluster's, where it has one)");
        options.parsed("network", "SPEED", "of a node, one direction, like 400GB/s (default: each cluster's)",
                       [this](const std::string& text) { network = parse_bandwidth(text); });
    }

    void run() {
        options.apply();
        if (asked_nodes && !latency) fail(ErrorKind::input, "--nodes: goes with --latency TIME, of a token");
        const auto found = workloads::find_model(model);
        const auto& language_model = language_model_of(found);
        for (const std::string& one : parts_of(context)) contexts.push_back(parse_context(one));
        choose_devices();
        if (console.json) {
            print_json(as_json(found, language_model));
        } else {
            const auto costs = costs_of(language_model);
            print_text("{}", work_table(found, language_model) + cost_table(costs) +
                                 (latency ? split_table(costs) + replay_table(costs) : ""));
        }
    }

private:
    void choose_devices() {
        const auto add = [&](const workloads::Device& one) {
            Cluster cluster = cluster_of(one);
            if (price > 0) cluster.price_per_gpu_hour = price;
            if (network.bytes_per_second > 0) cluster.network = network;
            clusters.push_back(std::move(cluster));
        };
        for (const std::string& name : parts_of(device))
            if (!name.empty() && name != "all") add(workloads::device(name));
        if (!clusters.empty()) return;
        for (const workloads::Device& one : workloads::devices())
            if (!one.modelled && (device == "all" ? one.name != "cpu" : one.fp8_flops > 0)) add(one);
    }

    struct Split {
        std::optional<SplitInstances> nodes;
        std::optional<capacity::AfdAnswer> replayed;
        std::string why_not;
        double least_sparsity = 0;
    };

    // What a token costs on a cluster behind so many others.
    struct TokenCost {
        const Cluster& cluster;
        std::int64_t tokens = 0;
        capacity::TokenTime time{};
        std::optional<double> attention_usd{}, ffn_usd{};  // of a million
        std::optional<Split> split{};                      // where a latency is asked for
    };

    TokenCost cost_of(const workloads::Architecture& language_model, const Cluster& cluster,
                      std::int64_t tokens) const {
        TokenCost cost{.cluster = cluster, .tokens = tokens};
        cost.time =
            capacity::token_time(capacity::token_work(language_model, tokens), workloads::device(cluster.device));
        if (cluster.price_per_gpu_hour > 0) {
            cost.attention_usd = capacity::usd_per_million(cost.time.attention, cluster.price_per_gpu_hour);
            cost.ffn_usd = capacity::usd_per_million(cost.time.ffn, cluster.price_per_gpu_hour);
        }
        if (latency) cost.split = split_of(language_model, cluster, tokens);
        return cost;
    }

    // Of each cluster behind each number of tokens, cluster by cluster.
    std::vector<TokenCost> costs_of(const workloads::Architecture& language_model) const {
        std::vector<TokenCost> costs;
        for (const Cluster& cluster : clusters)
            for (const std::int64_t tokens : contexts) costs.push_back(cost_of(language_model, cluster, tokens));
        return costs;
    }

    std::string work_table(const workloads::Model& of, const workloads::Architecture& language_model) const {
        TextTable table({{"tokens", false, 10},
                         {"keys, values", false, 16},
                         {"their FLOPs", false, 16},
                         {"a byte", false, 8},
                         {"projections' FLOPs", false, 18},
                         {"feed-forward FLOPs", false, 18}},
                        1);
        const auto giga = [](double flops) { return fmt::format("{:.4g} G", flops * 1e-9); };
        for (const std::int64_t tokens : contexts) {
            const TokenWork work = capacity::token_work(language_model, tokens);
            table.add({std::to_string(tokens), fmt::format("{:.4g} MB", work.cache_bytes * 1e-6),
                       giga(work.attention_flops), fmt::format("{:.4g}", work.intensity()), giga(work.linear_flops),
                       giga(work.ffn_flops)});
        }
        return fmt::format("{}: {}, {} layers, {} wide; of a token that is decoded\n{}", of.name, language_model.name,
                           language_model.layers, language_model.hidden, table.text());
    }

    static std::string cost_table(const std::vector<TokenCost>& costs) {
        TextTable table({{"device", true, 12},
                         {"USD/hour", false, 9},
                         {"tokens", false, 10},
                         {"attention", false, 14},
                         {"", false, 12},
                         {"feed-forward", false, 14},
                         {"", false, 12}},
                        1);
        const auto usd = [](const std::optional<double>& cost) {
            return cost ? fmt::format("{:.3f} USD", *cost) : std::string("no price");
        };
        const auto of_million = [](double seconds) { return fmt::format("{:.1f} s", 1e6 * seconds); };
        for (const TokenCost& one : costs) {
            const double price = one.cluster.price_per_gpu_hour;
            table.add({one.cluster.device, or_dash(price > 0 ? std::optional(price) : std::nullopt, 2),
                       std::to_string(one.tokens), of_million(one.time.attention), usd(one.attention_usd),
                       of_million(one.time.ffn), usd(one.ffn_usd)});
        }
        return "\na million tokens at the roofline, products in fp8 where there are\n" + table.text();
    }

    Split split_of(const workloads::Architecture& language_model, const Cluster& cluster, std::int64_t tokens) const {
        const double seconds = static_cast<double>(latency->count()) * 1e-9;
        Split split;
        if (cluster.network.bytes_per_second > 0)
            split.least_sparsity =
                capacity::least_sparsity(language_model.hidden, language_model.layers, seconds / 3, cluster);
        try {
            const auto work = capacity::token_work(language_model, tokens);
            split.nodes = capacity::split_instances(language_model, work, seconds, cluster, cluster);
        } catch (const Error& error) {
            split.why_not = error.what();
        }
        split.replayed = replayed(language_model, cluster, tokens);
        return split;
    }

    std::optional<capacity::AfdAnswer> replayed(const workloads::Architecture& language_model, const Cluster& cluster,
                                                std::int64_t tokens) const {
        const bool is_bf16 = attention_precision == "bf16" || workloads::device(cluster.device).fp8_flops == 0;
        const capacity::AfdQuestion question{.network = language_model,
                                             .cluster = cluster,
                                             .context = tokens,
                                             .bf16_attention = is_bf16,
                                             .attention_share = attention_share,
                                             .ffn_share = ffn_share,
                                             .microbatches = microbatches};
        return asked_nodes ? capacity::afd_on(question, *latency, asked_nodes->attention, asked_nodes->ffn)
                           : capacity::best_afd(question, *latency);
    }

    std::string replay_table(const std::vector<TokenCost>& costs) const {
        TextTable table({{"device", true, 12},
                         {"tokens", false, 10},
                         {"attention", false, 14},
                         {"feed-forward", false, 14},
                         {"microbatch", false, 14},
                         {"a token", false, 14},
                         {"tokens/s/GPU", false, 14},
                         {"USD/M", false, 12}},
                        1);
        for (const TokenCost& cost : costs) {
            const auto& found = cost.split->replayed;
            if (!found) {
                table.add({cost.cluster.device, std::to_string(cost.tokens), "no nodes that were tried give it"});
                continue;
            }
            table.add({cost.cluster.device, std::to_string(cost.tokens), plural(found->shape.attention_nodes, "node"),
                       plural(found->shape.ffn_nodes, "node"), std::to_string(found->shape.tokens), human(found->token),
                       fmt::format("{:.1f}", found->tokens_per_second_per_gpu), or_dash(found->usd_per_million, 3)});
        }
        return fmt::format(
            "\nreplayed with {}, attention at {:.0f} % of the roofline, the feed-forward at {:.0f} % of the peak\n{}",
            plural(microbatches, "microbatch"), 100 * attention_share, 100 * ffn_share, table.text());
    }

    std::string split_table(const std::vector<TokenCost>& costs) const {
        TextTable table({{"device", true, 12},
                         {"tokens", false, 10},
                         {"attention", false, 14},
                         {"feed-forward", false, 14},
                         {"microbatch", false, 14},
                         {"tokens/s/GPU", false, 14},
                         {"USD/M", false, 12},
                         {"limit", true, 10},
                         {"least share of experts", true}},
                        1);
        for (const auto& [cluster, tokens, time, attention_usd, ffn_usd, split] : costs) {
            if (!split->nodes) {
                table.add({cluster.device, std::to_string(tokens), split->why_not});
                continue;
            }
            const SplitInstances& nodes = *split->nodes;
            table.add({cluster.device, std::to_string(tokens), fmt::format("{} nodes", nodes.attention_nodes),
                       fmt::format("{} nodes", nodes.ffn_nodes), fmt::format("{:.0f}", nodes.tokens),
                       fmt::format("{:.1f}", nodes.tokens_per_second_per_gpu), or_dash(nodes.usd_per_million, 3),
                       std::string(name_of(nodes.limit)), fmt::format("{:.3f}", split->least_sparsity)});
        }
        return fmt::format("\nattention and feed-forward on nodes of their own, {} a token\n{}", human(*latency),
                           table.text());
    }

    nlohmann::ordered_json as_json(const workloads::Model& of, const workloads::Architecture& language_model) const {
        nlohmann::ordered_json json{{"model", of.name}, {"network", language_model.name}};
        for (const std::int64_t tokens : contexts) {
            const TokenWork work = capacity::token_work(language_model, tokens);
            json["work"].push_back({{"context", tokens},
                                    {"cache_bytes", work.cache_bytes},
                                    {"attention_flops", work.attention_flops},
                                    {"attention_linear_flops", work.linear_flops},
                                    {"ffn_flops", work.ffn_flops}});
            for (const Cluster& cluster : clusters)
                json["costs"].push_back(cost_json(cost_of(language_model, cluster, tokens)));
        }
        return json;
    }

    static nlohmann::ordered_json replayed_json(const std::optional<capacity::AfdAnswer>& found) {
        if (!found) return nullptr;
        return {{"attention_nodes", found->shape.attention_nodes},
                {"ffn_nodes", found->shape.ffn_nodes},
                {"tokens", found->shape.tokens},
                {"token_ns", found->token.count()},
                {"tokens_per_second_per_gpu", found->tokens_per_second_per_gpu},
                {"usd_per_million", or_null(found->usd_per_million)}};
    }

    static nlohmann::ordered_json cost_json(const TokenCost& cost) {
        nlohmann::ordered_json json{{"device", cost.cluster.device},
                                    {"context", cost.tokens},
                                    {"attention_s", cost.time.attention},
                                    {"ffn_s", cost.time.ffn},
                                    {"attention_usd_per_million", or_null(cost.attention_usd)},
                                    {"ffn_usd_per_million", or_null(cost.ffn_usd)}};
        if (!cost.split) return json;
        json["least_sparsity"] = cost.split->least_sparsity;
        json["replayed"] = replayed_json(cost.split->replayed);
        if (!cost.split->nodes) {
            json["why_no_split"] = cost.split->why_not;
            return json;
        }
        const SplitInstances& nodes = *cost.split->nodes;
        json["split"] = {{"attention_nodes", nodes.attention_nodes},
                         {"ffn_nodes", nodes.ffn_nodes},
                         {"tokens", nodes.tokens},
                         {"tokens_per_second_per_gpu", nodes.tokens_per_second_per_gpu},
                         {"usd_per_million", or_null(nodes.usd_per_million)},
                         {"limit", name_of(nodes.limit)}};
        return json;
    }

    Options options;
    Console console;
    std::string model, context = "8k,32k", device;
    std::optional<Duration> latency;
    std::string attention_precision = "fp8";
    std::optional<Nodes> asked_nodes;
    std::int64_t microbatches = 3;
    double attention_share = capacity::usual_attention_share, ffn_share = capacity::usual_ffn_share;
    double price = 0;
    Bandwidth network{};
    std::vector<std::int64_t> contexts;
    std::vector<Cluster> clusters;
};

}  // namespace

void add_analyze(CLI::App& program) {
    add_command<Analyze>(
        program, "analyze", "what a token costs on each device at the roofline",
        {.synopsis = "MODEL [--context TOKENS,...] [--device DEVICE,...|all] [--latency TIME] [OPTION...]",
         .description =
             "Keys and values that a decoded token reads, its FLOPs, and what a million tokens take of a GPU's seconds "
             "and USD if products run at their peak and memory at its bandwidth: attention and feed-forward apart, as "
             "the Step-3 report counts them (arXiv 2507.19427). With --latency also how many nodes for attention and "
             "for the feed-forward the smallest instance takes that gives a token in that time, and the least share "
             "of its experts that a token may be sent to there; and, at shares of the roofline that are reached, the "
             "pipeline of both replayed: which nodes give most tokens a second and GPU, or what those of --nodes do.\n"
             "A roofline is what no kernel exceeds: for training steps use emulate.",
         .examples = {{"Step-3 on devices with fp8", "pipeweaver analyze step3-321b"},
                      {"How many H800s for 20 tokens a second",
                       "pipeweaver analyze deepseek-v3 --device h800,h20 --context 32k --latency 50ms"}},
         .see_also = {"pipeweaver emulate", "pipeweaver list devices"}});
}

}  // namespace pipeweaver::apps
