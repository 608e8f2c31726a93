// The options of a layout, and of the batch that layouts share: what is fixed, what is chosen, and what was.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <algorithm>

namespace pipeweaver::planner {

namespace {

constexpr std::int64_t usual_microbatches = 16;  // of a replica

void add_degree(OptionTable& options, const std::string& name, Degree& degree, std::int64_t most,
                const std::string& about) {
    options.parsed(
        name, "auto|N", about,
        [name, &degree, most](const std::string& text) {
            degree.automatic = text == "auto";
            if (degree.automatic) return;
            degree.number = integer_in(text, 1, most);
            if (!degree.number)
                fail(ErrorKind::input, "--{}: {}", name, must_be(text, "auto or " + a_whole_number(1, most)));
        },
        [&degree]() -> std::optional<std::string> {
            if (degree.automatic) return "auto";
            return degree.number ? std::optional(std::to_string(*degree.number)) : std::nullopt;
        });
}

GlobalBatch global_batch_of(const std::string& text) {
    constexpr std::int64_t most = 10'000'000;
    const bool of_microbatches = text.ends_with("mb");
    const auto count = integer_in(text.substr(0, text.size() - (of_microbatches ? 2 : 0)), 1, most);
    if (!count)
        fail(ErrorKind::input, "{}",
             must_be(text, fmt::format("a whole number of samples from 1 to {}, or of microbatches, like 64mb", most)));
    return {*count, of_microbatches};
}

// Which of the two nobody said, beside the other; empty: none.
std::string published_said(const Degree& tp, const Degree& pp) {
    if (tp.number.has_value() == pp.number.has_value()) return {};
    return fmt::format("; {0} is that of the model's published layout, {0} auto chooses one",
                       tp.number ? "--pp" : "--tp");
}

// The option's number, or that of the published layout.
std::optional<std::int64_t> number_of(const Degree& degree, std::int64_t published) {
    if (degree.number || degree.automatic || published == 0) return degree.number;
    return published;
}

emulator::ContextParallel context_of(const std::string& context) {
    return context == "ring" ? emulator::ContextParallel::ring : emulator::ContextParallel::all_to_all;
}

}  // namespace

void WorkloadOptions::add_layout(OptionTable& options) {
    options.choice("layout", layout_as, {std::string(automatic)},
                   "auto: choose tp, pp and dp, and what is not given of cp, ep and the ZeRO stage; --tp and --pp "
                   "beside it make all that is given your own layout, which is judged, too, and whose global batch "
                   "all layouts then have (--cp 1 holds for all)");
    add_degree(options, "tp", tp, 1024,
               "tensor parallel GPUs, or auto (default: the model's published layout, else auto)");
    add_degree(options, "pp", pp, 1024, "pipeline ranks, or auto (default: the model's published layout, else auto)");
    add_degree(options, "dp", dp, 65536, "replicas, or auto (default: the GPUs that are left)");
    add_degree(options, "cp", cp, 1024,
               "context parallel GPUs, each with a part of every sequence, beside each tensor parallel one, or auto "
               "(default 1)");
    add_degree(options, "ep", ep, 65536,
               "GPUs that share out the experts of a layer, or auto (default: as many as divide tp * cp and the "
               "experts)");
    options.choice("context", context, {"all-to-all", "ring"},
                   "with --cp, attention to whole sequences: heads are exchanged for parts of them (default: "
                   "all-to-all), or keys go round in a ring");
}

void WorkloadOptions::add_global_batch(OptionTable& options) {
    options.parsed(
        "global-batch", "N|Nmb",
        "samples of all replicas together to draw with --dataset or of a file of --batch, or with mb microbatches of "
        "--dataset, in place of --microbatches: the same batch in every layout",
        [this](const std::string& text) { global_batch = global_batch_of(text); },
        [this] { return global_batch ? std::optional(global_batch->text()) : std::nullopt; });
}

// A layout is chosen where "auto" is said, or neither the options nor the published layout give one.
bool WorkloadOptions::choose(const emulator::Setup& setup) const {
    if (is_any_layout() || overrides.any_zero) return true;
    for (const Degree* degree : {&tp, &pp, &dp, &cp, &ep})
        if (degree->automatic) return true;
    const auto own_tp = number_of(tp, setup.model.tp), own_pp = number_of(pp, setup.model.pp);
    if (!own_tp || !own_pp) return true;
    const bool given = tp.number || pp.number || dp.number;
    return !given && setup.cluster.gpus % (*own_tp * *own_pp * cp.number.value_or(1)) != 0;
}

emulator::Layout WorkloadOptions::layout(const emulator::Setup& setup) const {
    emulator::Layout layout;
    layout.tp = *number_of(tp, setup.model.tp);
    layout.pp = *number_of(pp, setup.model.pp);
    layout.cp = cp.number.value_or(1);
    layout.context = context_of(context);
    const std::int64_t replica = layout.tp * layout.pp * layout.cp, gpus = setup.cluster.gpus;
    if (gpus % replica != 0 && !dp.number)
        fail(ErrorKind::input, "--tp {}{} * --pp {} = {} GPUs do not divide the cluster's {}{}", layout.tp,
             layout.cp > 1 ? fmt::format(" * --cp {}", layout.cp) : "", layout.pp, replica, gpus,
             published_said(tp, pp));
    layout.dp = dp.number.value_or(gpus / replica);
    layout.ep =
        ep.number.value_or(emulator::default_ep(layout, setup.model, setup.recipe.execution.experts.tensor_parallel));
    return layout;
}

// That which is given beside --layout auto.
std::optional<LayoutAndZero> WorkloadOptions::own(const emulator::Setup& setup) const {
    if (!is_any_layout() || !(tp.number || pp.number || dp.number)) return std::nullopt;
    if (!number_of(tp, setup.model.tp) || !number_of(pp, setup.model.pp))
        fail(ErrorKind::input, "--layout auto: a layout of your own beside it needs --tp and --pp");
    const LayoutAndZero given{layout(setup), setup.recipe.zero};
    emulator::check(given.layout, setup.cluster, setup.model, setup.recipe.execution.experts.tensor_parallel);
    return given;
}

// None: every replica draws as many microbatches, or a batch is given.
std::optional<GlobalBatch> WorkloadOptions::global(const emulator::Setup& setup) const {
    if (global_batch || dataset.empty()) return global_batch;
    const auto given = own(setup);
    if (!given) return std::nullopt;
    return GlobalBatch{microbatches.value_or(usual_microbatches) * given->layout.dp, true};
}

workloads::DrawnBatch WorkloadOptions::drawn(const workloads::Model& of, std::uint64_t seed, std::int64_t count) const {
    return workloads::draw_batch(dataset, of, seed, count, how_packed());
}

workloads::DrawnBatch WorkloadOptions::drawn(const workloads::Model& of, std::uint64_t seed, const GlobalBatch& all,
                                             const workloads::Pipelines& pipelines) const {
    return all.of_microbatches ? workloads::draw_batch(dataset, of, seed, all.number, how_packed(), pipelines)
                               : workloads::draw_samples(dataset, of, seed, all.number, how_packed(), pipelines);
}

std::int64_t WorkloadOptions::microbatches_of_replica(const Job& job) const {
    const auto all = global(*job.setup);
    if (!all) return microbatches.value_or(usual_microbatches);
    const std::int64_t replicas = job.setup->layout.dp;
    const auto count = all->of_microbatches
                           ? all->number
                           : static_cast<std::int64_t>(drawn(job.setup->model, job.seed, *all).microbatches.size());
    return (count + replicas - 1) / replicas;
}

LayoutRequest WorkloadOptions::layout_request(const emulator::Setup& setup,
                                              const std::vector<workloads::Microbatch>& microbatches_given,
                                              std::uint64_t seed) const {
    const bool any = is_any_layout();
    LayoutRequest asked;
    asked.own = own(setup);
    const auto fixed = [&asked](const Degree& degree) { return asked.own ? std::nullopt : degree.number; };
    asked.setup = &setup;
    asked.tp = fixed(tp);
    asked.pp = fixed(pp);
    asked.dp = fixed(dp);
    asked.ep = fixed(ep);
    // No context parallelism is a word on all layouts: without it a layout of one's own has none either way.
    asked.cp = cp.number == 1 ? cp.number : fixed(cp);
    if (!any && !cp.automatic && !asked.cp) asked.cp = 1;
    asked.any_ep = ep.automatic || (any && !asked.ep);
    asked.any_zero = overrides.any_zero || (any && (asked.own || !overrides.zero));
    asked.context = context_of(context);
    asked.target = target;
    const auto all = global(setup);
    asked.for_each_replica = batch.empty() && !all;
    if (!batch.empty())
        asked.microbatches = microbatches_given;
    else if (all)
        asked.microbatches = drawn(setup.model, seed, *all).microbatches;
    else
        asked.microbatches = drawn(setup.model, seed, microbatches.value_or(usual_microbatches)).microbatches;
    if (asked.for_each_replica)
        asked.draw = [this, seed, &model = setup.model](std::int64_t replicas) {
            return drawn(model, seed, microbatches.value_or(usual_microbatches) * replicas).microbatches;
        };
    return asked;
}

void WorkloadOptions::choose_layout(emulator::Setup& setup, Job& job, const Batch* given,
                                    const Executor& execute) const {
    if (dataset.empty() && given == nullptr)
        fail(ErrorKind::input, "--tp, --pp: are needed for a job without a batch, whose layout nothing decides");
    std::vector<workloads::Microbatch> microbatches_given;  // for no layout yet
    if (given != nullptr) microbatches_given = workloads::pack(given->samples, setup.model, how_packed());
    job.layout_choice =
        planner::choose_layout(layout_request(setup, microbatches_given, job.seed), execute, layout_time);
    const LayoutTried& best = job.layout_choice->best();
    const auto chosen = in_layout(setup, {best.layout, best.zero});
    setup.layout = chosen.layout;
    setup.model = chosen.model;  // whose heads may be padded
    setup.recipe = chosen.recipe;
}

std::optional<WorkloadOptions> WorkloadOptions::with_own(const Job& job) const {
    if (!job.layout_choice || job.layout_choice->best().is_own) return std::nullopt;
    const auto& tried = job.layout_choice->tried;
    if (std::none_of(tried.begin(), tried.end(), [](const LayoutTried& one) { return one.is_own; }))
        return std::nullopt;
    WorkloadOptions fixed = *this;
    if (const auto all = global(*job.setup)) {
        fixed.global_batch = all;
        fixed.microbatches.reset();
    }
    fixed.layout_as.clear();
    return fixed;
}

WorkloadOptions WorkloadOptions::with_chosen(const Job& job) const {
    const emulator::Setup& setup = *job.setup;
    WorkloadOptions fixed = *this;
    if (const auto all = global(setup)) {
        fixed.global_batch = all;
        fixed.microbatches.reset();
    }
    if (const auto& built = setup.model.built; built && !built->source.empty()) fixed.encoders = built->framework;
    fixed.lora_apart = has_lora_apart();
    if (automatic_headroom) {
        fixed.automatic_headroom = fixed.usual_headroom_is_auto = false;
        fixed.headroom = setup.headroom;
    }
    if (!job.layout_choice) return fixed;
    const emulator::Layout& chosen = setup.layout;
    const auto unless = [](std::int64_t usual, std::int64_t degree) {
        return degree == usual ? Degree{} : Degree{degree, false};
    };
    fixed.layout_as.clear();
    fixed.tp = {chosen.tp, false};
    fixed.pp = {chosen.pp, false};
    fixed.dp = {chosen.dp, false};
    fixed.cp = unless(1, chosen.cp);
    fixed.ep =
        unless(emulator::default_ep(chosen, setup.model, setup.recipe.execution.experts.tensor_parallel), chosen.ep);
    if (!is_any_layout() && !overrides.any_zero) return fixed;
    fixed.overrides.any_zero = false;
    fixed.overrides.zero = setup.recipe.zero;
    if (setup.recipe.zero >= 2) fixed.overrides.bucket = Bytes{};
    return fixed;
}

}  // namespace pipeweaver::planner
