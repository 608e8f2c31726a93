// What torchtitan 0.3.0 and PyTorch 2.13.0 require of a launch.
#include "launch/read/values.hpp"
#include "launch/rules/rule.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace pipeweaver::launch {

namespace in_titan_rules {

namespace {

using L = TitanLaunch;

constexpr std::string_view dims = "torchtitan/distributed/parallel_dims.py";
constexpr std::string_view pipeline = "torchtitan/distributed/pipeline_parallel.py";
constexpr std::string_view trainer = "torchtitan/trainer.py";
constexpr std::string_view decoder = "torchtitan/models/common/decoder.py";
constexpr std::string_view schedules = "torch/distributed/pipelining/schedules.py";

bool pipelined(const L& l) { return l.pp > 1; }
std::int64_t microbatches(const L& l) { return l.local_batch / l.microbatch; }

Why known_settings(const L& l, std::int64_t) {
    if (l.not_known.empty()) return std::nullopt;
    return fmt::format("{} {} none", fmt::join(l.not_known, ", "), l.not_known.size() > 1 ? "are" : "is");
}

Why some_shards(const L& l, std::int64_t gpus) {
    if (l.shard == 0) return "parallelism.data_parallel_shard_degree is 0";
    if (l.shards(gpus) < 1) return fmt::format("no GPU of {} is left for them", gpus);
    return std::nullopt;
}

Why world(const L& l, std::int64_t gpus) {
    const std::int64_t product = l.replicate * l.shards(gpus) * l.cp * l.tp * l.pp;
    if (l.shard == 0 || l.shards(gpus) < 1 || product == gpus) return std::nullopt;
    return fmt::format("{} x {} x {} x {} x {} = {}, there are {} GPUs", l.replicate, l.shards(gpus), l.cp, l.tp, l.pp,
                       product, gpus);
}

Why expert_mesh(const L& l, std::int64_t gpus) {
    const std::int64_t together = l.shards(gpus) * l.cp * l.tp;
    if (l.ep == 1 || together % l.ep == 0) return std::nullopt;
    return fmt::format("{} GPUs, ep {}", together, l.ep);
}

Why local_batch(const L& l, std::int64_t) {
    if (!pipelined(l) || l.local_batch % l.microbatch == 0) return std::nullopt;
    return fmt::format("{} samples in microbatches of {}", l.local_batch, l.microbatch);
}

Why graphs(const L& l, std::int64_t) {
    if (!pipelined(l) || !l.cuda_graphs) return std::nullopt;
    return "training.disable_cuda_graphs is not said";
}

Why typechecking(const L& l, std::int64_t) {
    if (!pipelined(l) || !l.typechecking) return std::nullopt;
    return "debug.spmd_typechecking is said";
}

Why sequence(const L& l, std::int64_t) {
    const std::int64_t by = (l.sequence_parallel ? l.tp : 1) * (l.cp > 1 ? 2 * l.cp : 1);
    if (l.seq_len % by == 0) return std::nullopt;
    return fmt::format("{} tokens, {}", l.seq_len, by);
}

Why global_batch(const L& l, std::int64_t gpus) {
    const std::int64_t together = l.local_batch * l.dp(gpus);
    if (l.global_batch < 0 || (l.global_batch > 0 && l.global_batch % together == 0)) return std::nullopt;
    return fmt::format("{} samples, {} x {}", l.global_batch, l.local_batch, l.dp(gpus));
}

Why tied(const L& l, std::int64_t) {
    if (!pipelined(l) || !l.tied_embeddings) return std::nullopt;
    return "the model ties them: NotImplementedError";
}

Why heads(const L& l, std::int64_t) {
    if (l.tp == 1) return std::nullopt;
    if (l.heads % l.tp != 0) return fmt::format("{} heads, tp {}", l.heads, l.tp);
    if (l.kv_heads % l.tp != 0) return fmt::format("{} key and value heads, tp {}", l.kv_heads, l.tp);
    return std::nullopt;
}

Why experts(const L& l, std::int64_t) {
    if (l.ep == 1 || l.experts == 0 || l.experts % l.ep == 0) return std::nullopt;
    return fmt::format("{} experts, ep {}", l.experts, l.ep);
}

Why known_schedule(const L& l, std::int64_t) {
    if (!pipelined(l) || titan_schedule(l.schedule)) return std::nullopt;
    return fmt::format("'{}' is none", l.schedule);
}

Why stages(const L& l, std::int64_t) {
    if (!pipelined(l) || !titan_schedule(l.schedule)) return std::nullopt;
    auto found = stages_of(l);
    if (found.why_not.empty()) return std::nullopt;
    return std::move(found.why_not);
}

// Of a launch whose stages are known; else nothing.
std::optional<std::int64_t> stages_of_rank(const L& l) {
    if (!pipelined(l) || !titan_schedule(l.schedule)) return std::nullopt;
    const auto found = stages_of(l);
    if (!found.why_not.empty() || found.stages % l.pp != 0) return std::nullopt;
    return found.stages / l.pp;
}

Why stage_ranks(const L& l, std::int64_t) {
    if (!pipelined(l) || !titan_schedule(l.schedule)) return std::nullopt;
    const auto found = stages_of(l);
    if (!found.why_not.empty() || found.stages % l.pp == 0) return std::nullopt;
    return fmt::format("{} stages, pp {}", found.stages, l.pp);
}

Why v_stages(const L& l, std::int64_t) {
    const auto each = stages_of_rank(l);
    if (!each || !titan_schedule(l.schedule)->v || *each == 2) return std::nullopt;
    return fmt::format("{} has {} of a rank", l.schedule, *each);
}

Why csv_there(const L& l, std::int64_t) {
    std::error_code ignored;
    if (!pipelined(l) || l.csv.empty() || std::filesystem::is_regular_file(l.csv, ignored)) return std::nullopt;
    return fmt::format("there is no file '{}'", l.csv);
}

Why concrete(const L& l, std::int64_t) {
    const auto known = titan_schedule(l.schedule);
    if (!pipelined(l) || !l.csv.empty() || !known || known->name != "PipelineScheduleSingle") return std::nullopt;
    return "PipelineScheduleSingle has no order";
}

Why has_order(const L& l, std::int64_t) {
    const auto known = titan_schedule(l.schedule);
    if (!pipelined(l) || !l.csv.empty() || !known || known->name != "PipelineScheduleMulti") return std::nullopt;
    return "PipelineScheduleMulti has an order of a CSV file alone";
}

// 1F1B and DualPipeV.
Why enough_microbatches(const L& l, std::int64_t) {
    const auto each = stages_of_rank(l);
    const auto known = titan_schedule(l.schedule);
    if (!each || !l.csv.empty() || (known->name != "1F1B" && known->name != "DualPipeV")) return std::nullopt;
    if (microbatches(l) >= *each * l.pp) return std::nullopt;
    return fmt::format("{} microbatches, {} stages", microbatches(l), *each * l.pp);
}

// Interleaved1F1B and InterleavedZeroBubble.
Why rounds(const L& l, std::int64_t) {
    const auto known = titan_schedule(l.schedule);
    if (!pipelined(l) || !l.csv.empty() || !known || !known->name.starts_with("Interleaved")) return std::nullopt;
    const std::int64_t rounds = std::max<std::int64_t>(1, microbatches(l) / l.pp);
    if (microbatches(l) % rounds == 0) return std::nullopt;
    return fmt::format("{} microbatches in {} rounds", microbatches(l), rounds);
}

}  // namespace

}  // namespace in_titan_rules

const std::vector<TitanSchedule>& titan_schedules() {
    static const std::vector<TitanSchedule> all{{.name = "1F1B", .single = true, .policy = "1f1b"},
                                                {.name = "GPipe", .single = true, .policy = "gpipe"},
                                                {.name = "Interleaved1F1B", .policy = "interleaved"},
                                                {.name = "LoopedBFS", .policy = "gpipe"},
                                                {.name = "InterleavedZeroBubble", .policy = "interleaved"},
                                                {.name = "PipelineScheduleSingle", .single = true},
                                                {.name = "PipelineScheduleMulti"},
                                                {.name = "ZBVZeroBubble", .v = true, .policy = "zb-v"},
                                                {.name = "DualPipeV", .v = true, .policy = "zb-v"}};
    return all;
}

std::optional<TitanSchedule> titan_schedule(std::string_view name) {
    for (const TitanSchedule& one : titan_schedules())
        if (in_lower_case(one.name) == in_lower_case(name)) return one;
    return std::nullopt;
}

std::span<const TitanRule> titan_rules() {
    using namespace in_titan_rules;
    static const std::array rules{
        TitanRule{"known-settings", "settings of parallelism, training and activation checkpointing are those it has",
                  "torchtitan/config/configs.py", Phase::arguments, known_settings},
        TitanRule{"shards", "there is a shard of the weights: data_parallel_shard_degree -1, or 1 and more", dims,
                  Phase::groups, some_shards},
        TitanRule{"world", "replicate x shard x cp x tp x pp are the GPUs", dims, Phase::groups, world},
        TitanRule{"expert-mesh", "shard x cp x tp are a multiple of ep", dims, Phase::groups, expert_mesh},
        TitanRule{"microbatch", "with a pipeline the local batch is a multiple of the microbatch", trainer,
                  Phase::arguments, local_batch},
        TitanRule{"cuda-graphs", "a pipeline goes without CUDA graphs: training.disable_cuda_graphs", trainer,
                  Phase::arguments, graphs},
        TitanRule{"typechecking", "SPMD type checking goes without a pipeline", trainer, Phase::arguments,
                  typechecking},
        TitanRule{"sequence",
                  "the sequence is a multiple of tp with sequence parallelism, times 2 x cp where cp is above 1",
                  trainer, Phase::configuration, sequence},
        TitanRule{"global-batch", "the global batch is a multiple of the local batch x the replicas", trainer,
                  Phase::configuration, global_batch},
        TitanRule{"tied-embeddings", "tied embeddings go without a pipeline", decoder, Phase::configuration, tied},
        TitanRule{"heads", "heads, and key and value heads, are a multiple of tp", decoder, Phase::configuration,
                  heads},
        TitanRule{"experts", "the experts are a multiple of ep", "torchtitan/models/common/token_dispatcher.py",
                  Phase::configuration, experts},
        TitanRule{"schedule", "the schedule is one of torch.distributed.pipelining's", schedules, Phase::build,
                  known_schedule},
        TitanRule{
            "stages",
            "layers make stages: none is empty, what the ends have less is no more than a stage has, single-stage "
            "schedules have 1 a rank, others 2 and more where layers per stage are said",
            pipeline, Phase::build, stages},
        TitanRule{"stages-by-pp", "the stages are a multiple of pp", pipeline, Phase::build, stage_ranks},
        TitanRule{"v-stages", "ZBVZeroBubble and DualPipeV have 2 stages a rank", pipeline, Phase::build, v_stages},
        TitanRule{"csv", "the schedule's CSV file is there", pipeline, Phase::step, csv_there},
        TitanRule{"abstract-schedule", "PipelineScheduleSingle takes a CSV file", pipeline, Phase::step, concrete},
        TitanRule{"empty-schedule", "PipelineScheduleMulti takes a CSV file", schedules, Phase::step, has_order},
        TitanRule{"enough-microbatches", "1F1B and DualPipeV take as many microbatches as stages", schedules,
                  Phase::step, enough_microbatches},
        TitanRule{"rounds",
                  "Interleaved1F1B and InterleavedZeroBubble take whole rounds: max(1, microbatches / pp) of them",
                  schedules, Phase::step, rounds},
    };
    return rules;
}

}  // namespace pipeweaver::launch
