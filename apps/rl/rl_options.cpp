#include "apps/rl/rl_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/rl/encoders.hpp"
#include "pipeweaver/rl/lengths.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pipeweaver::apps {

namespace {

constexpr std::int64_t most_gpus = 4096;
constexpr std::int64_t longest_ns = 360'000'000'000'000;  // 100 hours
constexpr std::int64_t most_tokens = 500'000'000;         // of a step: their times add up to less than 64 bits

MeasuredPart parse_measured(const std::string& text) {
    const auto colon = text.rfind(':');
    const auto gpus = colon == std::string::npos ? std::nullopt : integer_in(text.substr(colon + 1), 1, most_gpus);
    if (!gpus) fail(ErrorKind::input, "{}", must_be(text, "TIME:GPUS, like 120s:64"));
    const Duration time = parse_duration(text.substr(0, colon));
    if (time.count() < 1 || time.count() > longest_ns)
        fail(ErrorKind::input, "{}", must_be(text, "a time above 0 and up to 100 hours"));
    return {time, *gpus};
}

Duration parse_host(const std::string& text) {
    const Duration time = parse_duration(text);
    if (time.count() > 1'000'000'000) fail(ErrorKind::input, "{}", must_be(text, "a time up to 1 s"));
    return time;
}

Duration parse_part(const std::string& text) {
    const Duration time = parse_duration(text);
    if (time.count() > longest_ns) fail(ErrorKind::input, "{}", must_be(text, "a time up to 100 hours"));
    return time;
}

// GPUs of a node, of which large ones hold several instances.
std::int64_t usual_group(const workloads::Cluster& cluster) {
    return std::min({cluster.gpus_per_node, cluster.gpus, std::int64_t{8}});
}

// Times of the steps that are played add up to no more than 64 bits hold, however few GPUs there are.
void require_countable(const rl::Job& job) {
    const double most_ns = 3e18 / (job.steps_off == 0 ? 1. : 3. * static_cast<double>(job.steps_off + 1) + 7);
    const auto sum = [](const std::vector<Duration>& times) {
        double all = 0;
        for (const Duration one : times) all += static_cast<double>(one.count());
        return all;
    };
    double tokens = 0, longest = 0;
    for (const std::int64_t one : job.answers) {
        tokens += static_cast<double>(one);
        longest = std::max(longest, static_cast<double>(one));
    }
    const rl::Decoding& decoding = job.decoding;
    const double in_front = static_cast<double>(decoding.token.size()) *
                            (longest + static_cast<double>(decoding.prompt_tokens)) *
                            static_cast<double>(decoding.front_ps) / 1000;
    const double generation = tokens * (static_cast<double>(decoding.token.back().count()) + in_front) +
                              static_cast<double>(job.answers.size()) * static_cast<double>(decoding.prompt.count());
    if (generation > most_ns || sum(job.inference) + sum(job.training) > most_ns)
        fail(ErrorKind::limit, "--answers: take a GPU more than a century{}: allowed are fewer or shorter ones",
             job.steps_off == 0 ? "" : " in steps off policy");
}

// The language model that generates and is trained.
const workloads::Architecture& backbone_of(const workloads::Model& model) {
    const auto& network = model.modules[model.backbone()].architecture;
    if (network.kind == workloads::ModuleKind::language_model) return network;
    fail(ErrorKind::input, "--model: the backbone of '{}' is no language model: allowed are models that have one",
         model.name);
}

}  // namespace

void RlOptions::add_answers(Options& options) {
    options.group("A step's answers");
    options.text("lengths", lengths, "FILE",
                 "tokens of answers: a file with a number in each line, or 0:256,50:2k,100:8k by percent, or "
                 "mean:3k,longest:8k");
    options.integer("answers", answers, 1, rl::most_answers, "of a step (default: 512)");
    options.integer("group", group, 1, rl::most_answers, "answers to one prompt, judged together (default: 1)");
    options.integer("prompt", prompt, 1, rl::longest_answer, "tokens of a prompt's text (default: 512)");
    options.text(
        "items", items, "ITEMS",
        "what encoders read of each prompt: images of so many pixels a side, a clip, audio, like 2x896px, 8s@2fps "
        "or 1x448px+30s-audio (with --model)");
    options.integer("seed", seed, 0, 1'000'000'000, "of the order in which answers come (default: 1)");
}

void RlOptions::add_gpus(Options& options) {
    options.group("GPUs and layouts");
    options.text("cluster", cluster, "CLUSTER", "with its GPUs, like h100-sxm:64, or a file");
    options.text("generation-cluster", generation_cluster, "CLUSTER",
                 "further GPUs, of another kind, which generate alone, like h20-sxm:32 (with --model)");
    options.integer("instance", instance, 1, most_gpus,
                    "GPUs of one that generates (default: those of a node, up to 8)");
    options.integer("generating", generating, 1, most_gpus,
                    "GPUs that generate, where they do nothing else (default: as many as are best)");
    options.integer("trainer", trainer, 1, most_gpus,
                    "training has a multiple of so many (default: those of a node, up to 8)");
    options.integer("steps-off", steps_off, 0, 64,
                    "that generation on its own GPUs may be ahead of training (default: 0, on policy)");
    options.choice("objective", objective, {"time", "usd"}, "of a step, that the split has least of (default: time)");
    options.number("price", price, 0, 10'000, "USD for a GPU-hour (default: the cluster's, where it has one)");
    options.number("generation-price", generation_price, 0, 10'000,
                   "the same of --generation-cluster (default: that cluster's)");
}

void RlOptions::add_speeds(Options& options) {
    const auto measured = [&](const std::string& name, std::optional<MeasuredPart>& part, const std::string& about) {
        options.parsed(name, "TIME:GPUS", about, [&part](const std::string& text) { part = parse_measured(text); });
    };
    const auto time = [&](const std::string& name, auto& value, const std::string& about) {
        options.parsed(name, "TIME", about, [&value](const std::string& text) { value = parse_part(text); });
    };
    options.group("What parts take");
    options.text("model", model, "MODEL",
                 "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json: parts that are not measured");
    measured("generation", generation, "measured: all answers of a step on so many GPUs, like 120s:64");
    measured("inference", inference, "measured: rewards and references of a step");
    measured("training", training, "measured: training on a step");
    options.choice("precision", precision, {"bf16", "fp8"}, "of weights that generate (default: bf16)");
    options.integer("slots", slots, 1, 4096,
                    "answers that an instance decodes at once (default: what memory holds; measured: as many)");
    options.number("decode-share", decode_share, 0.05, 1, "of the roofline that decoding reaches (default: 0.6)");
    options.parsed("host", "TIME", "of each token step, beside the GPUs' (default: 200us a block)",
                   [this](const std::string& text) { host = parse_host(text); });
    options.number("mfu", mfu, 0.05, 1, "share of the bf16 peak that training and inference reach (default: 0.1)");
    options.number("passes", inference_passes, 0, 20, "forwards of inference over each answer (default: 2)");
    time("overhead", overhead, "of training each step, beside its answers (default: 10s, in a measured --training 0s)");
    time("switching", switching, "from generating to training and back on the same GPUs (default: none)");
    time("move", move, "of the last answers to other instances (default: none)");
    options.parsed("weights", "BYTES", "that instances get after training, like 470GB (default: the model's)",
                   [this](const std::string& text) { weights = parse_bytes(text); });
    options.parsed("weights-speed", "SPEED",
                   "at which they are handed over at most (default: 20GB/s, to GPUs that do not train 40GB/s)",
                   [this](const std::string& text) { weights_speed = parse_bandwidth(text); });
}

void RlOptions::add_to(Options& options) {
    add_answers(options);
    add_gpus(options);
    add_speeds(options);
}

workloads::Sample RlOptions::one_prompt(const workloads::Model& of) const {
    if (items.empty()) {
        workloads::Sample text;
        text.text_tokens = prompt;
        return text;
    }
    auto drawn = workloads::try_draw(fmt::format("constant-{}+{}", prompt, items), of, 0, 0);
    if (!drawn.why_not.empty()) fail(ErrorKind::input, "--items: {}", drawn.why_not);
    const bool makes = std::any_of(drawn.sample.items.begin(), drawn.sample.items.end(),
                                   [](const workloads::Item& item) { return item.target; });
    if (makes)
        fail(ErrorKind::input, "--items: {} makes such items and reads none: allowed are those that its encoders read",
             of.name);
    return std::move(drawn.sample);
}

std::int64_t RlOptions::prompt_tokens() const {
    return items.empty() ? prompt : one_prompt(workloads::find_model(model)).tokens();
}

void RlOptions::price_generation(const workloads::Cluster& on, rl::Job& job, std::vector<std::string>& notes) const {
    if (generation && generation->gpus % job.instance != 0)
        fail(ErrorKind::input, "--generation: {} GPUs are no multiple of the {} of an instance (--instance)",
             generation->gpus, job.instance);
    if (model.empty()) {
        // Token steps that take the same however many answers they have: of no more than those that were measured.
        const std::int64_t instances = generation->gpus / job.instance;
        const auto measured = (static_cast<std::int64_t>(job.answers.size()) + instances - 1) / instances;
        job.decoding.token.assign(static_cast<std::size_t>(slots.value_or(measured)), Duration{1'000'000});
        notes.push_back(fmt::format("without --model a token step takes the same for up to {} of an instance",
                                    plural(job.decoding.token.size(), "answer")));
    } else {
        const auto found = workloads::find_model(model);
        const auto& device = workloads::device(on.device);
        const workloads::Sample asked = one_prompt(found);
        const rl::Encoders encoders = rl::encoders_of(found, asked);
        const Duration of_host = host.value_or(rl::usual_host(backbone_of(found)));
        const auto sum = std::accumulate(job.answers.begin(), job.answers.end(), std::int64_t{0});
        const auto decoding =
            rl::decoding_of({.network = backbone_of(found),
                             .device = device,
                             .gpus = job.instance,
                             .fp8 = precision == "fp8",
                             .share = decode_share,
                             .host = of_host,
                             .prompt_tokens = asked.tokens(),
                             .mean_answer = sum / static_cast<std::int64_t>(job.answers.size()),
                             .longest_answer = *std::max_element(job.answers.begin(), job.answers.end()),
                             .encoder_flops = encoders.forward_flops,
                             .encoder_weights = encoders.weights,
                             .slots = slots});
        if (!decoding)
            fail(ErrorKind::limit, "--instance: {} GPUs of {} do not hold {} and one answer: allowed are more",
                 job.instance, device.name, found.name);
        job.decoding = *decoding;
        if (!generation)
            notes.push_back(
                fmt::format("generation at {:.0f} % of the roofline of {} and {} of host a token step, {} answers at "
                            "once an instance",
                            100 * decode_share, device.name, human(of_host), job.decoding.token.size()));
    }
    require_countable(job);
    if (!generation) return;
    job.decoding = rl::fitted(job.decoding, job.answers, generation->gpus / job.instance, generation->time);
}

void RlOptions::price_work(RlQuestion& question) const {
    rl::Job& job = question.job;
    const auto measured = [&](const MeasuredPart& part) {
        return rl::shares_of(part.time, part.gpus, job.answers, prompt_tokens());
    };
    const auto found = model.empty() ? std::nullopt : std::optional(workloads::find_model(model));
    const auto encoders = found ? rl::encoders_of(*found, one_prompt(*found)) : rl::Encoders{};
    const auto priced = [&](double forwards, double encoder_flops) {
        return rl::forward_times(backbone_of(*found), workloads::device(question.cluster.device), mfu, forwards,
                                 job.answers, prompt_tokens(), encoder_flops);
    };
    job.training = training ? measured(*training) : priced(3, encoders.training_flops);
    job.inference = inference       ? measured(*inference)
                    : model.empty() ? std::vector<Duration>(job.answers.size())
                                    : priced(inference_passes, inference_passes * encoders.forward_flops);
    if (!items.empty())
        question.notes.push_back(fmt::format("{} tokens of {} in each prompt, encoded anew for every answer",
                                             prompt_tokens() - prompt, items));
    else if (encoders.weights > Bytes{})
        question.notes.push_back("encoders read nothing: --items was not given");
    if (!model.empty() && (!training || !inference))
        question.notes.push_back(fmt::format("{} at {:.0f} % of the bf16 peak",
                                             training    ? "inference"
                                             : inference ? "training"
                                                         : "inference and training",
                                             100 * mfu));
    if (model.empty() && !inference) question.notes.push_back("no inference: --inference was not given");
    if (!training) job.overhead = rl::usual_overhead;
    if (overhead)
        job.overhead = *overhead;
    else if (!training)
        question.notes.push_back(
            fmt::format("{} of each step beside its answers: --overhead was not given", human(job.overhead)));
    job.weights = weights_time(question.cluster, job.instance, rl::usual_weights_speed);
    job.weights_apart = weights_time(question.cluster, job.instance, rl::usual_weights_speed_apart);
    if (!handed_over()) question.notes.push_back("new weights come in no time: --weights was not given");
}

std::optional<Bytes> RlOptions::handed_over() const {
    if (weights || model.empty()) return weights;
    const auto found = workloads::find_model(model);
    return rl::weights_of(backbone_of(found), false) + rl::encoders_of(found, one_prompt(found)).trained;
}

Duration RlOptions::weights_time(const workloads::Cluster& to, std::int64_t instance_gpus,
                                 Bandwidth usual_speed) const {
    const Bandwidth speed_at_most = weights_speed.value_or(usual_speed);
    const auto bytes = handed_over();
    if (!bytes) return {};
    for (const Bandwidth speed : {to.network, to.node_link, speed_at_most})
        if (speed.bytes_per_second > 0 && bytes->count / speed.bytes_per_second > longest_ns / 1'000'000'000)
            fail(ErrorKind::input, "--weights: {} take more than 100 hours by a link of {}: allowed are fewer",
                 human(*bytes), to.name);
    return rl::weights_time(to, *bytes, instance_gpus, speed_at_most);
}

void RlOptions::add_others(RlQuestion& question) const {
    if (generation_cluster.empty()) return;
    if (model.empty() || generation)
        fail(ErrorKind::input, "--generation-cluster: goes with --model and without --generation, measured on others");
    if (generating)
        fail(ErrorKind::input, "--generating: does not go with --generation-cluster, of which every number is tried");
    workloads::Cluster others = workloads::find_cluster(generation_cluster);
    if (generation_price > 0) others.price_per_gpu_hour = generation_price;
    if (others.gpus < 1 || others.gpus > most_gpus)
        fail(ErrorKind::input, "--generation-cluster: {}",
             must_be(others.gpus, fmt::format("with 1 to {} GPUs", most_gpus)));
    if (objective == "usd" && others.price_per_gpu_hour <= 0)
        fail(ErrorKind::input, "--objective: usd goes with a price of both: give --generation-price USD");
    rl::Job job = question.job;
    job.generators = others.gpus;
    job.instance = instance.value_or(usual_group(others));
    if (job.instance > others.gpus)
        fail(ErrorKind::input, "--instance: {}",
             must_be(job.instance, fmt::format("at most the {} GPUs of --generation-cluster", others.gpus)));
    price_generation(others, job, question.notes);
    job.weights_apart = weights_time(others, job.instance, rl::usual_weights_speed_apart);
    const auto micro_usd = [](double usd) { return std::max<std::int64_t>(1, std::llround(usd * 1e6)); };
    job.generator_price = micro_usd(others.price_per_gpu_hour);
    job.trainer_price = micro_usd(question.cluster.price_per_gpu_hour);
    question.with_others = std::move(job);
    question.others = std::move(others);
}

RlQuestion RlOptions::question() const {
    const bool is_priced = !model.empty() || (generation && training);
    require_given({{!cluster.empty(), "--cluster CLUSTER", "the GPUs"},
                   {!lengths.empty(), "--lengths FILE", "tokens of answers, or quantiles"},
                   {is_priced, "--model MODEL", "or --generation TIME:GPUS and --training TIME:GPUS"}});
    if (!items.empty() && model.empty()) fail(ErrorKind::input, "--items: goes with --model, whose encoders read them");
    RlQuestion question{
        .cluster = workloads::find_cluster(cluster), .job = {}, .others = {}, .with_others = {}, .notes = {}};
    if (price > 0) question.cluster.price_per_gpu_hour = price;
    rl::Job& job = question.job;
    job.gpus = question.cluster.gpus;
    if (job.gpus < 1 || job.gpus > most_gpus)
        fail(ErrorKind::input, "--cluster: {}", must_be(job.gpus, fmt::format("with 1 to {} GPUs", most_gpus)));
    const std::int64_t node = usual_group(question.cluster);
    job.instance = instance.value_or(node);
    job.trainer = trainer.value_or(node);
    job.generating = generating;
    if (generating && (*generating % job.instance != 0 || *generating > job.gpus - job.trainer))
        fail(ErrorKind::input, "--generating: {}",
             must_be(*generating, fmt::format("a multiple of the {} GPUs of an instance that leaves {} of {} to train",
                                              job.instance, job.trainer, job.gpus)));
    if (std::max(job.instance, job.trainer) > job.gpus)
        fail(ErrorKind::input, "{}: {}", job.instance > job.gpus ? "--instance" : "--trainer",
             must_be(std::max(job.instance, job.trainer), fmt::format("at most the {} GPUs of the cluster", job.gpus)));
    if (objective == "usd" && question.cluster.price_per_gpu_hour <= 0)
        fail(ErrorKind::input, "--objective: usd goes with a price: give --price USD for a GPU-hour");
    job.answers = rl::drawn(rl::lengths_of(lengths), answers, static_cast<std::uint64_t>(seed));
    if (std::accumulate(job.answers.begin(), job.answers.end(), std::int64_t{0}) > most_tokens)
        fail(ErrorKind::input, "--answers: have more than {} tokens together, allowed are up to so many", most_tokens);
    for (std::size_t i = 0; i < job.answers.size(); ++i) job.groups.push_back(i / static_cast<std::size_t>(group));
    job.steps_off = steps_off;
    price_generation(question.cluster, job, question.notes);
    price_work(question);
    job.switching = switching.value_or(Duration{});
    if (!switching) question.notes.push_back("switching takes no time: --switching was not given");
    job.move = move.value_or(Duration{});
    if (!move) question.notes.push_back("moved tails move in no time: --move was not given");
    if (!trainer)
        question.notes.push_back("whether training fits was not asked: give --trainer the fewest GPUs that do");
    add_others(question);
    require_countable(question.job);
    if (question.with_others) require_countable(*question.with_others);
    return question;
}

}  // namespace pipeweaver::apps
