#include "pipeweaver/emulator/step.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

struct Small : testing::SmallWorkload {
    // Units of two images at most, whatever the cost tables say.
    StepInput input() const {
        auto partition = cut("dip");
        partition.unit_items[0] = 2;
        auto input = SmallWorkload::input(partition);
        input.name = "small";
        return input;
    }
};

std::size_t tasks_of(const Problem& problem, const std::string& module, TaskKind kind, std::int64_t microbatch) {
    return static_cast<std::size_t>(std::count_if(problem.tasks.begin(), problem.tasks.end(), [&](const Task& task) {
        return task.module == module && task.kind == kind && task.microbatch == microbatch;
    }));
}

}  // namespace

TEST_CASE("each unit passes every stage of its chain, forward and backward") {
    const Small setup;
    const auto input = setup.input();
    const auto step = require_step(build_step(input));
    const auto stages = input.chains[0].stages.size();

    CHECK(tasks_of(step.problem, "vit", TaskKind::forward, 0) == 3 * stages);  // 5 images in units of 2, 2, 1
    CHECK(tasks_of(step.problem, "vit", TaskKind::backward, 0) == 3 * stages);
    CHECK(tasks_of(step.problem, "vit", TaskKind::forward, 1) == 0);  // text only
    CHECK(tasks_of(step.problem, "llm", TaskKind::forward, 1) == input.chains[1].stages.size());
    CHECK(step.problem.pairs.size() * 2 == step.problem.tasks.size());
}

TEST_CASE("the language model waits for all of its images, and their gradients for it") {
    const Small setup;
    const auto step = require_step(build_step(setup.input()));
    const auto& problem = step.problem;
    std::size_t into_llm = 0, out_of_llm = 0;
    for (const Edge& edge : problem.edges) {
        const Task& from = problem.tasks[index(edge.from)];
        const Task& to = problem.tasks[index(edge.to)];
        if (from.module == "vit" && to.module == "llm" && from.microbatch == 0) ++into_llm;
        if (from.module == "llm" && to.module == "vit" && from.microbatch == 0) ++out_of_llm;
        CHECK(from.microbatch == to.microbatch);
    }
    CHECK(into_llm == 3);
    CHECK(out_of_llm == 3);
}

TEST_CASE("transfers carry the rows and bytes of the next module's input") {
    const Small setup;
    const auto step = require_step(build_step(setup.input()));
    for (const Transfer& transfer : step.transfers) {
        const Task& from = step.problem.tasks[index(step.problem.edges[transfer.edge].from)];
        const Task& to = step.problem.tasks[index(step.problem.edges[transfer.edge].to)];
        if (from.kind != TaskKind::forward || from.module != "vit" || to.module != "llm") continue;
        const std::int64_t images = from.microbatch == 0 ? (from.item == 2 ? 1 : 2) : 2;
        CHECK(transfer.rows == images * 64);
        CHECK(transfer.columns == 2048);
        CHECK(transfer.message == Bytes{2 * images * 64 * 2048 / 2});
    }
}

TEST_CASE("a pair holds its blocks' activations, or their inputs where they are recomputed") {
    const Small setup;
    const auto input = setup.input();
    const auto step = require_step(build_step(input));
    const auto& llm = setup.model.modules[1].architecture;
    const auto first = std::find_if(step.problem.pairs.begin(), step.problem.pairs.end(), [&](const Pair& pair) {
        const Task& task = step.problem.tasks[index(pair.forward)];
        return task.module == "llm" && task.microbatch == 1 &&
               task.stage == step.problem.stages[input.chains[0].stages.size()].stage;
    });
    REQUIRE(first != step.problem.pairs.end());
    const std::int64_t layers = input.chains[1].stages[0].parts[0].count;
    const Bytes block = workloads::layer_activations(llm, 1024, 2), boundary = workloads::layer_input(llm, 1024, 2);

    CHECK(first->modes[0].held == layers * block + boundary);
    CHECK(first->modes[2].held == (layers + 1) * boundary);
    CHECK(first->modes[0].forward == first->modes[2].forward);
    CHECK(first->modes[2].backward > first->modes[1].backward);
    CHECK(first->modes[1].backward > first->modes[0].backward);
    CHECK(first->modes[2].forward_transient == block);
}

TEST_CASE("activations of one layer are the documented sum") {
    // h 2048, ffn 8192 gated, 16 heads of 128, 1024 positions on 2 GPUs: 512 * (8 h + 6 h + 2 h + 6 * 8192) bytes
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    CHECK(workloads::layer_activations(network, 1024, 2) == Bytes{512 * (8 * 2048 + 6 * 2048 + 2 * 2048 + 6 * 8192)});
}

TEST_CASE("weights, gradients and optimizer state take 18 bytes a parameter on one replica") {
    const Small setup;
    const auto step = require_step(build_step(setup.input()));
    std::int64_t parameters = 1024 * 2048;  // the projector
    for (const auto& module : setup.model.modules) parameters += workloads::matrix_parameters(module.architecture);
    Bytes sum;
    for (const auto& rank : step.memory) sum += rank.weights + rank.gradients + rank.optimizer;
    CHECK(sum == Bytes{18 * parameters / setup.layout.tp});
}

TEST_CASE("a frozen encoder has no backward, and its forwards keep nothing") {
    Small setup;
    setup.model.modules[0].trainable = false;
    const auto step = require_step(build_step(setup.input()));
    for (const Task& task : step.problem.tasks) {
        if (task.module != "vit") continue;
        CHECK(task.kind == TaskKind::forward);
        CHECK(task.acquire == task.release);
    }
    CHECK(tasks_of(step.problem, "llm", TaskKind::backward, 0) == setup.input().chains[1].stages.size());
}

TEST_CASE("gradients pass by a frozen encoder that stands between trained modules of a chain") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1}, {2, 2});
    workloads::Module ear = setup.model.modules.front();
    ear.name = "ear";
    ear.modalities = {workloads::Modality::audio};
    ear.trainable = false;
    setup.model.modules.insert(setup.model.modules.begin() + 1, ear);
    setup.model.edges = {{0, 2, 4, 4096, 2048}, {1, 2, 2, 0, 0}};
    for (auto& microbatch : setup.microbatches)
        microbatch.items.push_back({microbatch.samples.front(), 9, {workloads::Modality::audio, 64, 512, 0, false}});
    const auto partition = setup.cut("uniform", 4);  // stages of the ear alone
    const auto step = require_step(build_step(setup.input(partition)));
    std::size_t of_the_ear = 0;
    for (const Task& task : step.problem.tasks)
        if (step.problem.stages[static_cast<std::size_t>(*task.stage)].parts.size() == 1 &&
            step.problem.stages[static_cast<std::size_t>(*task.stage)].parts.front().module == "ear") {
            CHECK(task.kind == TaskKind::forward);
            ++of_the_ear;
        }
    CHECK(of_the_ear >= 2);
    CHECK(tasks_of(step.problem, partition.chains.front().name, TaskKind::backward, 0) >= 2);
}

TEST_CASE("a frozen module behind a trained one passes gradients on, at less than a full backward") {
    Small setup;
    const auto trained = require_step(build_step(setup.input()));
    setup.model.modules[1].trainable = false;
    const auto frozen = require_step(build_step(setup.input()));
    REQUIRE(frozen.problem.tasks.size() == trained.problem.tasks.size());
    for (std::size_t i = 0; i < frozen.problem.tasks.size(); ++i)
        if (frozen.problem.tasks[i].module == "llm" && frozen.problem.tasks[i].kind == TaskKind::backward)
            CHECK(frozen.problem.tasks[i].duration < trained.problem.tasks[i].duration);
}

TEST_CASE("model FLOPs are three forwards of every trained module, and one of a frozen first one") {
    Small setup;
    const auto forward = [&](std::size_t m) {
        double sum = 0;
        const auto& network = setup.model.modules[m].architecture;
        for (const auto& microbatch : setup.microbatches) {
            const auto shape = partition::shape_in(setup.model.modules[m], microbatch, 0, 100);
            if (shape.lengths.empty()) continue;
            const auto positions = static_cast<double>(shape.positions());
            sum += static_cast<double>(network.layers) *
                   workloads::layer_flops(network, 0, positions, workloads::attention_pairs(network, shape.lengths));
            if (m == 1) sum += workloads::head_flops(network, positions);
        }
        return sum;
    };
    CHECK(require_step(build_step(setup.input())).model_flops == doctest::Approx(3 * forward(0) + 3 * forward(1)));
    setup.model.modules[0].trainable = false;
    CHECK(require_step(build_step(setup.input())).model_flops == doctest::Approx(forward(0) + 3 * forward(1)));
}

TEST_CASE("replicas add a tail of gradient reduction to every rank, and a smaller optimizer step") {
    Small setup;
    const auto alone = require_step(build_step(setup.input()));
    setup.layout.dp = 2;
    setup.cluster = testing::small_cluster(8);
    const auto two = require_step(build_step(setup.input()));
    for (const Rank& rank : alone.problem.ranks) CHECK(rank.tail == Duration{0});
    for (const Rank& rank : two.problem.ranks) CHECK(rank.tail > Duration{0});
    CHECK(two.optimizer < alone.optimizer);
}

TEST_CASE("tied embeddings are summed over the first and last rank, and held by both") {
    Small setup;
    const auto untied = require_step(build_step(setup.input()));
    setup.model.modules[1].architecture.tied_embeddings = true;
    const auto tied = require_step(build_step(setup.input()));
    CHECK(tied.problem.ranks.front().tail > Duration{0});
    CHECK(tied.problem.ranks.back().tail > Duration{0});
    CHECK(tied.memory.back().weights == untied.memory.back().weights);
}

TEST_CASE("utilization is of all GPUs' dense peak over the whole step") {
    const Small setup;
    const double peak = workloads::device(setup.cluster.device).bf16_flops;
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const double flops = 4 * peak / 2;  // what four GPUs do in half a second
    CHECK(model_flops_utilization(flops, setup.cluster, layout, std::chrono::seconds(1)) == doctest::Approx(0.5));
}

TEST_CASE("a model that does not fit names the rank and what is short") {
    Small setup;
    setup.model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, 80, 16384);
    const auto built = build_step(setup.input());
    CHECK_FALSE(built.step);
    REQUIRE(built.shortage);
    CHECK(built.shortage->rank == RankId{0});
    CHECK(built.shortage->held.total() - built.shortage->usable == built.shortage->short_by());
    const auto text = built.shortage->text();
    CHECK(text.find("rank 0: weights, gradients, optimizer state and buffers need") == 0);
    CHECK(text.find("GiB short") != std::string::npos);
    CHECK_THROWS_WITH_AS(static_cast<void>(require_step(built)), text.c_str(), Error);
}

TEST_CASE("a task that does not fit on top of its rank's static memory is a shortage too, and is named") {
    const Small setup;
    auto input = setup.input();
    const auto step = require_step(build_step(input));
    input.capacity = Bytes{1};
    for (const StaticMemory& rank : step.memory) input.capacity = std::max(*input.capacity, rank.total() + Bytes{1});
    const auto built = build_step(input);
    REQUIRE(built.shortage);
    CHECK(built.shortage->passes > Bytes{});
    const auto place = fmt::format("does not fit rank {} even alone", index(built.shortage->rank));
    CHECK(built.shortage->text().find(place) != std::string::npos);
}

TEST_CASE("an update that holds more than is usable is a shortage, what passes give up beside it included") {
    Small setup;
    setup.recipe.state.update = 1000;
    auto input = setup.input();
    input.capacity = Bytes{std::int64_t{1} << 50};
    const auto step = require_step(build_step(input));
    Bytes most;
    for (const StaticMemory& rank : step.memory) {
        const std::int64_t trained = rank.optimizer.count / setup.recipe.state.optimizer;
        CHECK(rank.at_update == rank.weights + rank.gradients + rank.optimizer + Bytes{1000 * trained});
        CHECK(rank.at_update > rank.total());
        most = std::max(most, rank.at_update);
    }
    input.capacity = most - Bytes{1};
    const auto built = build_step(input);
    REQUIRE(built.shortage);
    CHECK(built.shortage->needed() == most);
    // Beside it a rank may hold more when passes run.
    std::vector<Bytes> replayed(step.memory.size(), Bytes{1});
    replayed[0] = most + Bytes{1};
    const auto peaks = peaks_of(step, replayed);
    CHECK(peaks[0] == most + Bytes{1});
    for (std::size_t r = 1; r < peaks.size(); ++r) CHECK(peaks[r] == step.memory[r].at_update);
}

TEST_CASE("a layout must use the cluster's GPUs and divide the model") {
    const Small setup;
    CHECK_THROWS_WITH_AS(check({.tp = 2, .pp = 4, .dp = 1}, setup.cluster, setup.model),
                         "--tp 2 * --pp 4 * --dp 1 = 8 GPUs, the cluster 'h100-sxm' has 4", Error);
    CHECK_THROWS_WITH_AS(
        check({.tp = 3, .pp = 1, .dp = 1}, testing::small_cluster(3), setup.model),
        "--tp: 3 does not divide the 8 attention heads of module 'vit'; the next smaller that divides those of every "
        "module is 2",
        Error);
    auto odd = setup.model;
    odd.modules[0].architecture.heads = 18;  // 3 would do for it alone
    CHECK_THROWS_WITH_AS(
        check({.tp = 4, .pp = 1, .dp = 1}, testing::small_cluster(4), odd),
        "--tp: 4 does not divide the 18 attention heads of module 'vit'; the next smaller that divides those of every "
        "module is 2",
        Error);
    CHECK_THROWS_WITH_AS(check({.tp = 1, .pp = 7, .dp = 1}, testing::small_cluster(7), setup.model),
                         "--pp: 7 ranks are more than the 6 layers of module 'vit'", Error);
}

TEST_CASE("a language model sends a generator's unit the tokens that condition it, and every stage sends them on") {
    using namespace workloads;
    Small setup;
    auto dit = testing::small_network(ModuleKind::diffusion_transformer, 4, 1024);
    dit.cross_attention_dim = 512;
    const auto llm = testing::small_network(ModuleKind::language_model, 2, 2048);
    setup.model.modules = {{"llm", llm, PassUnit::microbatch, {Modality::text}, true},
                           {"dit", dit, PassUnit::items, {Modality::video}, true}};
    setup.model.edges = {{.from = 0, .to = 1, .projector_in = 2048, .projector_out = 512}};
    StepInput input;
    input.setup = &setup;
    input.chains = {{"llm", {{RankId{0}, {{0, 0, 2}}}}}, {"dit", {{RankId{0}, {{1, 0, 2}}}, {RankId{1}, {{1, 2, 2}}}}}};
    // Samples of 600 and 424 tokens; a clip of 2048 positions for the first.
    input.units = {{{{{{{600, 424}}, {}}, {}}}, {{{{}, {{2048}, {600}}}, {0}}}}};

    const auto step = require_step(build_step(input));

    std::size_t into = 0, inside = 0;
    for (const Transfer& transfer : step.transfers) {
        const Edge& edge = step.problem.edges[transfer.edge];
        const auto& from = step.problem.tasks[index(edge.from)].module;
        const auto& to = step.problem.tasks[index(edge.to)].module;
        if (from != to) {
            ++into;
            CHECK((transfer.rows == 600 && transfer.columns == 512));
        } else {
            ++inside;
            CHECK((transfer.rows == 2048 + 300 && transfer.columns == 1024));  // 600 x 512 = 300 x 1024
        }
    }
    CHECK(into == 2);  // forward and gradient
    CHECK(inside == 2);
    // Nothing but the generator's loss drives the language model: it has no head, and its FLOPs are three forwards.
    const double pairs = (600.0 * 600 + 424.0 * 424) / 2;
    const double expected = 2 * layer_flops(llm, 0, 1024, pairs) +
                            4 * layer_flops(dit, 0, 2048, 2048.0 * 2048, {.tokens = 600, .pairs = 2048.0 * 600});
    CHECK(step.model_flops == doctest::Approx(3 * expected));
}

TEST_CASE("embeddings of layers are one product, and travel to the stages whose layers they are") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    testing::SmallWorkload with(layout, {0}), without(layout, {0});
    with.model.modules[1].architecture.layer_embedding = 64;  // of 8 layers of width 2048
    const auto& network = with.model.modules[1].architecture;
    CHECK(head_flops(network, 10) - head_flops(without.model.modules[1].architecture, 10) == 2. * 10 * 8 * 64 * 2048);
    const auto found = [&](PassKind pass, std::string_view name) {
        const auto all = embedding_operators(network, {{1024}}, layout, pass, {});
        const auto one = std::find_if(all.begin(), all.end(), [&](const Operator& op) { return op.name == name; });
        REQUIRE(one != all.end());
        return one->query;
    };
    const auto product = std::get<costdb::Gemm>(found(PassKind::forward, "layer embeddings"));
    CHECK((product.m == 512 && product.n == 8 * 64 && product.k == 2048));
    for (const PassKind pass : {PassKind::forward, PassKind::backward})
        CHECK(std::get<costdb::Collective>(found(pass, "embedding sum")).message == Bytes{2 * 1024 * (2048 + 8 * 64)});
    // Behind four of eight layers.
    const auto messages = [](const testing::SmallWorkload& workload) {
        const auto cut = workload.cut("megatron");
        const auto step = require_step(build_step(workload.input(cut)));
        Bytes sum{};
        for (const Transfer& transfer : step.transfers) sum += transfer.message;
        return sum;
    };
    const StageLayers first = with.cut("megatron").chains[0].stages[0];
    const std::int64_t to_come = 8 - first.parts.back().first - first.parts.back().count;
    REQUIRE(to_come > 0);
    // Forward and backward.
    CHECK(messages(with) - messages(without) == Bytes{2 * 2 * 1024 * to_come * 64 / 2});
}

TEST_CASE("every pass says whose modules' time it is, also where a stage has layers of two") {
    const testing::SmallWorkload setup;
    const auto partition = setup.cut("balanced");
    const auto input = setup.input(partition);
    const auto step = require_step(build_step(input));
    REQUIRE(step.mix.size() == step.problem.tasks.size());
    LayerCosts costs(setup);
    std::size_t mixed = 0;
    for (std::size_t i = 0; i < step.mix.size(); ++i) {
        const Task& task = step.problem.tasks[i];
        const auto& stage = input.chains[0].stages[static_cast<std::size_t>(*task.stage)];
        const auto& shapes = input.units[static_cast<std::size_t>(*task.microbatch)][0][step.unit[i]].shapes;
        const auto pass = task.kind == TaskKind::forward ? PassKind::forward : PassKind::backward;
        double sum = 0;
        for (const ModulePart& one : step.mixes[step.mix[i]]) {
            const auto own = std::find_if(stage.parts.begin(), stage.parts.end(),
                                          [&](const LayerRange& range) { return range.module == one.module; });
            REQUIRE(own != stage.parts.end());
            const auto time = static_cast<double>(costs.stage({stage.rank, {*own}}, shapes, pass).time.count());
            CHECK(one.part == doctest::Approx(time / static_cast<double>(task.duration.count())).epsilon(1e-9));
            sum += one.part;
        }
        CHECK(sum == doctest::Approx(1));
        mixed += step.mixes[step.mix[i]].size() > 1 ? 1 : 0;
    }
    CHECK(mixed > 0);
    CHECK(mixed < step.mix.size());
}
