// pipeweaver emulate: one step of a given layout and schedule: time, memory, and where both go.
#include "pipeweaver/planner/emulate.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/planner/anchor.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <sys/resource.h>

namespace pipeweaver::apps {

namespace {

constexpr std::string_view all_passes = "passes";  // of --trace

// "0,3": ranks of a pipeline, each once.
std::vector<std::int64_t> parse_ranks(const std::string& text, std::int64_t ranks) {
    std::set<std::int64_t> chosen;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(',', from), text.size());
        chosen.insert(parse_integer("--trace", text.substr(from, end - from), 0, ranks - 1));
        from = end + 1;
    }
    return {chosen.begin(), chosen.end()};
}

nlohmann::ordered_json reuse_json(const emulator::StoreStatistics& reuse) {
    return {{"hits", reuse.hits},
            {"misses", reuse.misses},
            {"evictions", reuse.evictions},
            {"blocks", reuse.entries},
            {"bytes", reuse.bytes}};
}

std::int64_t peak_memory_bytes() {
    rusage usage{};
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024 * std::int64_t{usage.ru_maxrss} : 0;
}

struct Emulate {
    explicit Emulate(CLI::App& app) : options(app) {
        console.add_to(app);
        asked.add_to(options);
        options.with_configuration();
        options.group("The run");
        options.integer("seed", limits.seed, 0, 9'007'199'254'740'991, "seed of the drawn batch (default 1)");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
        options.integer("repeat", repeat, 1, 1'000'000, "emulate so often in a row; run.json has the seconds of each");
        options.text("out", out, "DIR", "folder for emulation.json, run.json and trace.json.gz");
        options.writes();
        options.text("trace", trace, "passes|RANKS",
                     "trace the slowest replica: the passes of all its ranks, or the kernels of these ranks, like "
                     "0,3; needs --out");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (out.empty() && !trace.empty()) fail(ErrorKind::input, "--trace: needs --out, a folder for trace.json.gz");
        asked.workload.anchor_read = planner::read_anchor(asked.workload.anchor);
        const auto request = asked.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        std::vector<std::int64_t> traced;
        if (!trace.empty() && trace != all_passes) traced = parse_ranks(trace, request.job.setup->layout.pp);
        const auto base = without_what_if(request);
        std::vector<double> each;
        auto emulation = emulate(request, each);
        emulation.host = planner::host_bound(request, emulation, limits.executor());
        if (request.lengths) emulation.lengths = planner::long_context(*request.job.setup);
        emulation.precision = planner::precision_answer(request, emulation, limits.executor());
        emulation.price = planner::price_of_shapes(request, emulation, limits.executor());
        emulation.jitter = planner::jitter_of(request, emulation, limits.executor());
        emulation.gradients = planner::gradients_of(request, emulation, limits.executor());
        auto json = emit::emulation_json(request, emulation, base ? &*base : nullptr);
        std::vector<FileToWrite> files;
        if (!out.empty()) files = result_files(request, emulation, traced, json);
        const auto run = measured(start, each, request.job.setup->store != nullptr);
        const auto reuse = reuse_json(emulation.reuse);
        if (!out.empty()) write(std::move(files), run, reuse);
        if (console.json) {
            json["run"] = run;
            json["reuse"] = reuse;
            print_json(json);
        } else {
            print_text("{}", emit::emulation_table(request, emulation, base ? &*base : nullptr));
        }
    }

    std::optional<planner::Emulation> without_what_if(planner::EmulationRequest request) const {
        const emulator::Setup& setup = *request.job.setup;
        if (setup.what_if.empty()) return std::nullopt;
        auto as_it_is = std::make_shared<emulator::Setup>(with_recipe(setup, request.as_it_is.value_or(setup.recipe)));
        if (!setup.store) as_it_is->store.reset();
        request.job.setup = std::move(as_it_is);
        request.loader.reset();
        return planner::emulate(request, limits.executor());
    }

    planner::Emulation emulate(const planner::EmulationRequest& request, std::vector<double>& seconds) const {
        planner::Emulation emulation;
        for (std::int64_t i = 0; i < repeat; ++i) {
            const Stopwatch start;
            auto made = planner::try_emulate(request, limits.executor());
            if (made.why_not) fail_with_changes(*made.why_not, request);
            emulation = std::move(*made.emulation);
            seconds.push_back(start.seconds());
        }
        return emulation;
    }

    // What does not fit is told with what would.
    [[noreturn]] void fail_with_changes(const Error& why, const planner::EmulationRequest& request) const {
        std::string fits;
        if (why.kind() == ErrorKind::limit && request.schedules.empty())
            for (const auto& one :
                 planner::fitting_changes(asked, request, static_cast<std::uint64_t>(limits.seed), limits.executor()))
                fits += fmt::format("{}{} ({} on the fullest rank)", fits.empty() ? "; it fits with " : ", or ",
                                    one.options, human(one.peak));
        fail(why.kind(), "{}{}", why.what(), fits);
    }

    nlohmann::ordered_json measured(const Stopwatch& start, const std::vector<double>& each, bool reuse) const {
        auto json = limits.run(start);
        json.erase("budget_ns");
        json.erase("max_rounds");
        json["no_reuse"] = !reuse;
        json["emulate_seconds"] = each;
        json["peak_memory_bytes"] = peak_memory_bytes();
        return json;
    }

    std::vector<FileToWrite> result_files(const planner::EmulationRequest& request, const planner::Emulation& emulation,
                                          const std::vector<std::int64_t>& traced,
                                          const nlohmann::ordered_json& json) const {
        const std::filesystem::path folder(out);
        std::vector<FileToWrite> files{{folder / "emulation.json", json.dump(1) + "\n"}};
        std::vector<emit::RankKernels> ranks;
        ranks.reserve(traced.size());
        for (const std::int64_t rank : traced)
            ranks.push_back({rank, planner::kernels_of(request, emulation.slowest, rank)});
        if (trace == all_passes)
            files.push_back(
                {folder / "trace.json.gz",
                 emit::pass_trace(
                     planner::emulated_steps(request, emulation, {emulation.slowest}, limits.executor()).front(),
                     emulation.replicas[emulation.slowest])});
        if (!ranks.empty())
            files.push_back(
                {folder / "trace.json.gz", emit::kernel_trace(emulation.replicas[emulation.slowest], ranks)});
        return files;
    }

    // A trace that an earlier run left goes, where this one has none.
    void write(std::vector<FileToWrite> files, nlohmann::ordered_json run, const nlohmann::ordered_json& reuse) const {
        const std::filesystem::path folder(out);
        run["reuse"] = reuse;
        files.push_back({folder / "run.json", run.dump(1) + "\n"});
        remove_files(folder, {"trace.json.gz"}, write_files(files));
        console.say(fmt::format("{}: emulation.json, run.json{}", out, trace.empty() ? "" : ", trace.json.gz"));
    }

    Options options;
    Console console;
    planner::EmulateOptions asked;
    Limits limits;
    std::int64_t repeat = 1;
    std::string out, trace;
};

}  // namespace

void add_emulate(CLI::App& program) {
    add_command<Emulate>(
        program, "emulate", "how long a step takes, and where its time and memory go",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) [OPTION...]",
         .description =
             "Emulates one training step kernel by kernel, on a partition and a known schedule or on the schedule of "
             "a plan; nothing is searched. Prints step time, MFU, tokens per second, where the time of each rank "
             "goes, what its memory holds at the peak, the path that decides the step, and what was assumed.\n"
             "With --what-if it emulates the step twice, as it is and with other times of devices, links, operators "
             "or modules; --what-if gradients says which gradients are worth compressing. With --robust jitter 1,000 "
             "steps are replayed whose tasks and ranks vary.\n"
             "Equal parts are evaluated once; --no-reuse replays every kernel, to the same nanosecond and byte.",
         .examples = {{"A known model on 32 GPUs with 1F1B",
                       "pipeweaver emulate --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--microbatches 8"},
                      {"What faster tensor-parallel links would gain, with the kernels of two ranks for Perfetto",
                       "pipeweaver emulate --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--microbatches 8 --what-if examples/what-if.yaml --trace 0,3 --out emulated"}},
         .files = {{"emulation.json", "all figures, for a program"},
                   {"trace.json.gz", "passes, or the kernels of the traced ranks; opens in Perfetto"},
                   {"run.json", "what was measured: seconds, threads, memory, reuse"}},
         .see_also = {"pipeweaver plan", "pipeweaver validate", "docs/emulate.md", "docs/formats.md"},
         .usual = {"model", "cluster", "tp", "pp", "layout", "batch", "dataset", "microbatches", "recipe", "partition",
                   "policy", "schedule", "recompute", "what-if", "robust", "trace", "out", "json"}});
}

}  // namespace pipeweaver::apps
