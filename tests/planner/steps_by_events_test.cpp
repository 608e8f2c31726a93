// Steps of what engineers run, held to an event-driven simulation that shares no code with the step builder: it makes its
// own tasks, orders, messages and exchanges, and asks for nothing but the time of a stage's pass or of one operator.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/event_clock.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using costdb::CollectiveKind;
using workloads::Microbatch;

namespace {

constexpr std::size_t vit = 0, llm = 1;

std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

workloads::Model random_model(Random& random) {
    auto model = testing::small_model();
    auto& encoder = model.modules[vit].architecture;
    auto& decoder = model.modules[llm].architecture;
    encoder = testing::small_network(workloads::ModuleKind::vision_encoder, between(random, 4, 9),
                                     512 * between(random, 1, 2));
    decoder = testing::small_network(workloads::ModuleKind::language_model, between(random, 8, 20),
                                     1024 * between(random, 1, 2));
    auto& edge = model.edges.front();
    edge.projector_in = 4 * encoder.hidden;
    edge.projector_out = decoder.hidden;
    model.modules[vit].trainable = random.below(4) > 0;
    if (random.below(2) == 0) edge.projector_trainable = random.below(2) == 0;
    return model;
}

// Every replica's first microbatch has an image: a stage without a task has no place in a chain.
std::vector<Microbatch> random_batch(Random& random, std::int64_t count, std::int64_t replicas) {
    std::vector<Microbatch> batch;
    for (std::int64_t m = 0; m < count; ++m) {
        Microbatch one;
        const auto sample = static_cast<std::size_t>(m);
        one.samples = {sample};
        one.tokens = 8 * between(random, 16, 128);
        const std::int64_t images = between(random, m < replicas ? 1 : 0, 5);
        for (std::int64_t i = 0; i < images; ++i) {
            const std::int64_t tokens = 8 * between(random, 2, 40);
            one.items.push_back(
                {sample, static_cast<std::size_t>(i), {workloads::Modality::image, tokens, 4 * tokens, 0, false}});
            one.tokens += tokens;
        }
        one.lengths = {one.tokens};
        batch.push_back(one);
    }
    return batch;
}

struct Case {
    planner::EmulationRequest request;
    const Setup& setup() const { return *request.workload.setup; }
    Recompute recompute() const { return *request.recompute; }
};

Case random_case(Random& random, const std::string& partition, const Layout& layout, Recipe recipe) {
    Case one;
    planner::Request& workload = one.request.workload;
    recipe.action = Duration{20'000 * between(random, 0, 1)};
    const auto model = random_model(random);
    workload.setup = std::make_shared<Setup>(
        Setup{model, testing::small_cluster(layout.gpus()), layout, testing::small_costs(), recipe});
    workload.microbatches = random_batch(random, layout.dp * between(random, 1, 9), layout.dp);
    workload.sharing = partition::Sharing::in_turn;
    workload.partition = partition;
    constexpr std::array recomputes{Recompute::none, Recompute::half, Recompute::full};
    one.request.recompute = recomputes[random.below(recomputes.size())];
    one.request.chunks_per_rank = 1;
    one.request.any_memory = true;
    return one;
}

Layout random_layout(Random& random) {
    return {.tp = 1 << random.below(3), .pp = between(random, 1, 4), .dp = between(random, 1, 2)};
}

std::vector<Microbatch> of_replica(const Case& one, std::int64_t replica) {
    std::vector<Microbatch> mine;
    for (auto m = static_cast<std::size_t>(replica); m < one.request.workload.microbatches.size();
         m += static_cast<std::size_t>(one.setup().layout.dp))
        mine.push_back(one.request.workload.microbatches[m]);
    return mine;
}

std::vector<PassShape> shapes_of(const Microbatch& microbatch) {
    std::vector<PassShape> shapes(2);
    for (const auto& item : microbatch.items) shapes[vit].lengths.push_back(item.size.patches);
    shapes[llm].lengths = microbatch.lengths;
    return shapes;
}

bool trains_projector(const workloads::Model& model) {
    return model.edges.front().projector_trainable.value_or(model.modules[vit].trainable);
}

// Whether a backward of these layers computes anything.
bool goes_back(const workloads::Model& model, const LayerRange& part) {
    if (part.module == llm) return true;
    const bool last = part.first + part.count == model.modules[vit].architecture.layers;
    return model.modules[vit].trainable || (last && trains_projector(model));
}

// What GPUs exchange and update once their last task is done.
class AfterTasks {
public:
    explicit AfterTasks(const Setup& setup) : setup_(setup) {}

    std::int64_t parameters(const LayerRange& part, std::int64_t tp) const {
        const auto& module = setup_.model.modules[part.module];
        const auto& network = module.architecture;
        std::int64_t sum = 0;
        if (module.trainable)
            for (std::int64_t i = 0; i < part.count; ++i) sum += layer_parameters(part.module, part.first + i, tp);
        const bool last = part.first + part.count == network.layers;
        if (part.module == llm && part.first == 0) sum += workloads::embedding_parameters(network) / tp;
        if (part.module == llm && last) sum += workloads::head_parameters(network) / tp;
        if (part.module == vit && last && trains_projector(setup_.model)) sum += projector(tp);
        return sum;
    }

    std::int64_t layer_parameters(std::size_t module, std::int64_t layer, std::int64_t tp) const {
        return workloads::layer_parameter_parts(setup_.model.modules[module].architecture, layer).common(tp);
    }

    std::int64_t projector(std::int64_t tp) const {
        return workloads::projector_parameters(setup_.model.edges.front()) / tp;
    }

    // Of the copies of weights, `stride` GPUs apart.
    std::int64_t exchange(CollectiveKind kind, std::int64_t copies, std::int64_t stride, std::int64_t bytes) const {
        const std::int64_t per_node = std::clamp<std::int64_t>(8 / stride, 1, copies);
        costdb::Collective asked;
        asked.kind = kind;
        asked.dtype = kind == CollectiveKind::all_reduce ? costdb::Dtype::fp32 : costdb::Dtype::bf16;
        asked.gpus = copies;
        asked.gpus_per_node = per_node;
        asked.message = Bytes{bytes};
        asked.network = {setup_.cluster.network.bytes_per_second * per_node / 8};
        asked.node_link = setup_.cluster.node_link;
        const double factor = in_situ_factors(*setup_.costs, setup_.cluster.device).collectives;
        return std::llround(static_cast<double>(setup_.costs->cost(asked).duration.count()) * factor);
    }

    std::int64_t reduce(std::int64_t parameters, std::int64_t copies, std::int64_t stride) const {
        if (copies == 1 || parameters == 0 || setup_.recipe.zero == 3) return 0;
        if (setup_.recipe.zero == 0) return exchange(CollectiveKind::all_reduce, copies, stride, 4 * parameters);
        return exchange(CollectiveKind::reduce_scatter, copies, stride, 4 * parameters) +
               exchange(CollectiveKind::all_gather, copies, stride, 2 * parameters);
    }

    std::int64_t update(std::int64_t parameters, std::int64_t copies) const {
        if (parameters == 0) return 0;
        const std::int64_t own = setup_.recipe.zero == 0 ? parameters : (parameters + copies - 1) / copies;
        const costdb::Elementwise asked{Bytes{34 * own + 8 * parameters}, costdb::ElementwiseKind::optimizer};
        return setup_.costs->cost(asked).duration.count();
    }

private:
    const Setup& setup_;
};

// A chain of stages and what may be around it, from the partition's layers alone.
class PipelineStep {
public:
    PipelineStep(const Case& one, const partition::Partition& partition, std::int64_t replica)
        : case_(one),
          setup_(one.setup()),
          microbatches_(of_replica(one, replica)),
          stages_(partition.chains.front().stages),
          ranks_(static_cast<std::size_t>(setup_.layout.pp)),
          replica_(replica),
          costs_(setup_, replica),
          whole_(with_layout(setup_, {.tp = 1, .pp = 1, .dp = setup_.layout.gpus()})),
          dealt_(!partition.dealt.empty()) {}

    std::int64_t step() {
        for (std::size_t m = 0; m < microbatches_.size(); ++m) add_microbatch(m);
        auto programs = stages_.size() == ranks_ ? one_forward_one_backward() : interleaved();
        if (dealt_) add_phases(programs);
        const auto ends = clock_.run(programs);
        const AfterTasks after(setup_);
        const Layout& layout = setup_.layout;
        const LayerRange encoder{vit, 0, setup_.model.modules[vit].architecture.layers};
        const std::int64_t shared = dealt_ ? after.parameters(encoder, 1) : 0;
        std::int64_t makespan = 0, update = 0;
        for (std::size_t r = 0; r < ranks_; ++r) {
            std::int64_t mine = 0;
            for (std::size_t s = r; s < stages_.size(); s += ranks_)
                for (const LayerRange& part : stages_[s].parts) mine += after.parameters(part, layout.tp);
            const std::int64_t last = programs[r].empty() ? 0 : ends[programs[r].back()];
            CHECK(last >= 0);  // none is left waiting
            makespan = std::max(
                makespan, last + after.reduce(mine, layout.dp, layout.tp) + after.reduce(shared, layout.gpus(), 1));
            update = std::max(update, after.update(mine, layout.dp) + after.update(shared, layout.gpus()));
        }
        return makespan + update;
    }

private:
    struct Cell {
        std::optional<std::size_t> forward, backward;
    };

    // The last part of the stage that the microbatch passes; none: it has nothing to do there.
    const LayerRange* last_part(std::size_t stage, const std::vector<PassShape>& shapes) const {
        const LayerRange* found = nullptr;
        for (const LayerRange& part : stages_[stage].parts)
            if (!shapes[part.module].lengths.empty()) found = &part;
        return found;
    }

    std::size_t add_work(std::size_t rank, Duration pass) {
        clock_.works.push_back({rank, std::max<std::int64_t>(1, pass.count() + setup_.recipe.action.count())});
        return clock_.works.size() - 1;
    }

    void send(std::size_t from, std::size_t to, const testing::Message& message) {
        clock_.works[from].sends.push_back(clock_.messages.size());
        clock_.messages.push_back(message);
        clock_.messages.back().to = to;
    }

    std::int64_t node_of(std::size_t rank) const {
        return static_cast<std::int64_t>(rank) * setup_.layout.tp * setup_.layout.dp / 8;
    }

    // A tensor that goes from one rank to another, each GPU with its part.
    testing::Message message_between(std::size_t from, std::size_t to, std::int64_t bytes) const {
        const bool near = node_of(from) == node_of(to);
        const Bandwidth network{setup_.cluster.network.bytes_per_second / 8};
        const auto time_of = [&](std::int64_t size) {
            return setup_.costs
                ->cost(costdb::PointToPoint{near ? 2 : 1, Bytes{size}, network, setup_.cluster.node_link})
                .duration.count();
        };
        const std::int64_t lag = time_of(std::max<std::int64_t>(1, bytes));
        return {0, lag, std::max<std::int64_t>(0, lag - time_of(1)), near ? 0 : 1};
    }

    testing::Message crossing(std::size_t from, std::size_t to, const LayerRange& part,
                              const std::vector<PassShape>& shapes) const {
        if (from % ranks_ == to % ranks_) return {};
        const auto& network = setup_.model.modules[part.module].architecture;
        std::int64_t rows = shapes[part.module].positions(), columns = network.hidden;
        if (part.module == vit && part.first + part.count == network.layers) {
            rows /= 4;
            columns = setup_.model.edges.front().projector_out;
        }
        return message_between(from % ranks_, to % ranks_, 2 * rows * columns / setup_.layout.tp);
    }

    void add_microbatch(std::size_t m) {
        const auto shapes = shapes_of(microbatches_[m]);
        auto& row = cells_.emplace_back(stages_.size());
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            if (last_part(s, shapes) == nullptr) continue;
            const bool back = std::any_of(stages_[s].parts.begin(), stages_[s].parts.end(),
                                          [&](const LayerRange& part) { return goes_back(setup_.model, part); });
            const auto time = [&](PassKind pass) {
                return costs_.stage(stages_[s], shapes, pass, case_.recompute()).time;
            };
            row[s].forward = add_work(s % ranks_, time(PassKind::forward));
            if (back) row[s].backward = add_work(s % ranks_, time(PassKind::backward));
        }
        std::optional<std::size_t> before;
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            if (!row[s].forward) continue;
            if (before) {
                const auto& part = *last_part(*before, shapes);
                send(*row[*before].forward, *row[s].forward, crossing(*before, s, part, shapes));
                if (row[*before].backward)
                    send(*row[s].backward, *row[*before].backward, crossing(s, *before, part, shapes));
            }
            before = s;
        }
        send(*row[*before].forward, *row[*before].backward, {});
    }

    using Programs = std::vector<std::vector<std::size_t>>;

    // Rank r runs so many forwards ahead as there are ranks after it.
    Programs one_forward_one_backward() const {
        Programs programs(ranks_);
        for (std::size_t r = 0; r < ranks_; ++r) {
            std::vector<Cell> mine;
            for (const auto& row : cells_)
                if (row[r].forward) mine.push_back(row[r]);
            const std::size_t ahead = std::min(ranks_ - 1 - r, mine.size());
            for (std::size_t k = 0; k < mine.size() + ahead; ++k) {
                if (k < mine.size()) programs[r].push_back(*mine[k].forward);
                if (k >= ahead && mine[k - ahead].backward) programs[r].push_back(*mine[k - ahead].backward);
            }
        }
        return programs;
    }

    // Megatron-LM's: groups of as many microbatches as ranks go through all chunks.
    Programs interleaved() const {
        const std::size_t chunks = stages_.size() / ranks_, count = cells_.size() * chunks;
        std::vector<std::pair<std::size_t, std::size_t>> virtual_microbatches;  // chunk, microbatch
        for (std::size_t first = 0; first < cells_.size(); first += ranks_)
            for (std::size_t c = 0; c < chunks; ++c)
                for (std::size_t m = first; m < std::min(cells_.size(), first + ranks_); ++m)
                    virtual_microbatches.emplace_back(c, m);
        Programs programs(ranks_);
        for (std::size_t r = 0; r < ranks_; ++r) {
            const std::size_t ahead = std::min(count, 2 * (ranks_ - 1 - r) + (chunks - 1) * ranks_);
            for (std::size_t k = 0; k < count + ahead; ++k) {
                if (k < count) {
                    const auto [c, m] = virtual_microbatches[k];
                    if (const Cell& cell = cells_[m][c * ranks_ + r]; cell.forward)
                        programs[r].push_back(*cell.forward);
                }
                if (k >= ahead) {
                    const auto [c, m] = virtual_microbatches[k - ahead];
                    if (const Cell& cell = cells_[m][(chunks - 1 - c) * ranks_ + r]; cell.backward)
                        programs[r].push_back(*cell.backward);
                }
            }
        }
        return programs;
    }

    // GPU by GPU, whole images.
    void add_phases(Programs& programs) {
        LayerCosts costs(whole_, replica_);
        const LayerRange encoder{vit, 0, setup_.model.modules[vit].architecture.layers};
        struct Image {
            std::int64_t forward, backward;
        };
        std::vector<Image> images;
        std::int64_t outputs = 0;
        for (const Microbatch& microbatch : microbatches_)
            for (const auto& item : microbatch.items) {
                const std::vector<PassShape> shapes{PassShape{{item.size.patches}}, {}};
                const auto time = [&](PassKind pass) {
                    return costs.stage({RankId{0}, {encoder}}, shapes, pass, case_.recompute()).time.count();
                };
                images.push_back({time(PassKind::forward), time(PassKind::backward)});
                outputs += 2 * (item.size.patches / 4) * setup_.model.edges.front().projector_out;
            }
        std::stable_sort(images.begin(), images.end(), [](const Image& a, const Image& b) {
            return a.forward + a.backward > b.forward + b.backward;
        });
        struct Gpu {
            std::int64_t forward = 0, backward = 0;
            bool busy = false;
        };
        const auto tp = static_cast<std::size_t>(setup_.layout.tp);
        std::vector<Gpu> gpus(tp * ranks_);
        for (const Image& image : images) {
            auto& gpu = *std::min_element(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) {
                return a.forward + a.backward < b.forward + b.backward;
            });
            gpu = {gpu.forward + image.forward, gpu.backward + image.backward, true};
        }
        auto arrival = gpus.size() == 1 ? testing::Message{}
                                        : message_between(ranks_ - 1, 0, outputs / static_cast<std::int64_t>(tp));
        arrival.wire = 0;  // ports are not modelled for it
        for (std::size_t r = 0; r < ranks_; ++r) {
            Gpu slowest;
            for (std::size_t g = r * tp; g < (r + 1) * tp; ++g) {
                slowest.forward = std::max(slowest.forward, gpus[g].forward);
                slowest.backward = std::max(slowest.backward, gpus[g].backward);
                slowest.busy = slowest.busy || gpus[g].busy;
            }
            if (!slowest.busy) continue;
            const std::size_t first = add_work(r, Duration{slowest.forward});
            programs[r].insert(programs[r].begin(), first);
            for (const auto& row : cells_) send(first, *row.front().forward, arrival);
            if (!goes_back(setup_.model, encoder)) continue;
            const std::size_t last = add_work(r, Duration{slowest.backward});
            programs[r].push_back(last);
            for (const auto& row : cells_) send(*row.front().backward, last, arrival);
        }
    }

    const Case& case_;
    const Setup& setup_;
    std::vector<Microbatch> microbatches_;
    const std::vector<StageLayers>& stages_;
    std::size_t ranks_;
    std::int64_t replica_;
    LayerCosts costs_;
    Setup whole_;
    bool dealt_;
    testing::EventClock clock_;
    std::vector<std::vector<Cell>> cells_;  // per microbatch, per stage
};

// The longest of all replicas', by both.
void check_pipeline(Case& one) {
    const auto emulated = planner::emulate(one.request, in_order);
    for (std::int64_t r = 0; r < one.setup().layout.dp; ++r)
        CHECK(emulated.replicas[static_cast<std::size_t>(r)].step.count() ==
              PipelineStep(one, emulated.partition, r).step());
}

// One case of a partition, with one stage on each rank or several.
void check_case(std::uint64_t number, const std::string& partition) {
    CAPTURE(number);
    Random random(number, 17);
    auto one = random_case(random, partition, random_layout(random), Recipe{.zero = static_cast<int>(random.below(2))});
    const auto& model = one.setup().model;
    const std::int64_t pp = one.setup().layout.pp;
    const std::int64_t most = std::min(model.modules[vit].architecture.layers, model.modules[llm].architecture.layers);
    one.request.chunks_per_rank = pp == 1 ? 1 : between(random, 1, std::max<std::int64_t>(1, most / pp));
    if (one.request.chunks_per_rank > 1) one.request.policy = "interleaved";
    check_pipeline(one);
}

}  // namespace

TEST_CASE("a first-stage step takes what an event-driven simulation of it takes") {
    for (std::uint64_t number = 0; number < 200; ++number) check_case(number, "first-stage");
}

TEST_CASE("a three-phase step takes what an event-driven simulation of it takes") {
    for (std::uint64_t number = 0; number < 200; ++number) check_case(number, "three-phase");
}

namespace {

// A pass of one replica without a pipeline, as pieces that are computed one after the other. With ZeRO 3 the weights of
// each are gathered on a stream of their own as soon as the piece before begins, and its gradients scattered there when it
// has ended; that stream, too, does one thing after the other.
class WithoutPipeline {
public:
    WithoutPipeline(const Case& one, std::int64_t replica)
        : case_(one),
          setup_(one.setup()),
          microbatches_(of_replica(one, replica)),
          usual_(with_recipe(setup_, Recipe{.zero = 1})),
          costs_(usual_),
          after_(setup_) {}

    std::int64_t step() {
        for (const Microbatch& microbatch : microbatches_) {
            const auto shapes = shapes_of(microbatch);
            auto forward = pieces(shapes, false);
            run(forward);
            auto backward = pieces(shapes, true);
            std::reverse(backward.begin(), backward.end());
            run(backward);
        }
        std::int64_t parameters = 0;
        for (const std::size_t m : {vit, llm}) parameters += after_.parameters({m, 0, layers_of(m)}, setup_.layout.tp);
        return now_ + after_.reduce(parameters, setup_.layout.dp, setup_.layout.tp) +
               after_.update(parameters, setup_.layout.dp);
    }

private:
    // One piece: gathered, computed, scattered; and in a backward before it, what is computed again.
    struct Piece {
        std::int64_t gather = 0, compute = 0, scatter = 0;
        std::int64_t again = 0;
        bool goes_again = false;
    };

    std::int64_t layers_of(std::size_t module) const { return setup_.model.modules[module].architecture.layers; }

    std::int64_t blocks(const LayerRange& range, const std::vector<PassShape>& shapes, PassKind pass) {
        return costs_.layers(range, shapes[range.module], pass).time.count();
    }

    // What stands around the first block, or the last, in a stage of that block alone. Nothing goes back through the
    // blocks of a frozen encoder.
    std::int64_t around(const LayerRange& layer, const std::vector<PassShape>& shapes, PassKind pass) {
        const bool passes_block = pass == PassKind::forward || setup_.model.modules[layer.module].trainable;
        return costs_.stage({RankId{0}, {layer}}, shapes, pass).time.count() -
               (passes_block ? blocks(layer, shapes, pass) : 0);
    }

    void exchange(Piece& piece, std::int64_t parameters, bool gathers, bool scatters) const {
        if (setup_.recipe.zero < 3 || setup_.layout.dp == 1) return;
        const std::int64_t copies = setup_.layout.dp, stride = setup_.layout.tp;
        if (gathers) piece.gather = after_.exchange(CollectiveKind::all_gather, copies, stride, 2 * parameters);
        if (scatters) piece.scatter = after_.exchange(CollectiveKind::reduce_scatter, copies, stride, 4 * parameters);
    }

    std::int64_t recomputed(std::int64_t layers) const {
        if (case_.recompute() == Recompute::none) return 0;
        return case_.recompute() == Recompute::half ? (layers + 1) / 2 : layers;
    }

    // In the order of the forward.
    std::vector<Piece> pieces(const std::vector<PassShape>& shapes, bool backward) {
        std::vector<Piece> all;
        const std::int64_t tp = setup_.layout.tp;
        const PassKind pass = backward ? PassKind::backward : PassKind::forward;
        for (const std::size_t m : {vit, llm}) {
            if (shapes[m].lengths.empty()) continue;
            const auto& module = setup_.model.modules[m];
            const auto add = [&](std::int64_t compute, std::int64_t parameters, bool trained) {
                auto& piece = all.emplace_back();
                piece.compute = compute;
                // A projector's weight gradient alone needs no weights.
                exchange(piece, parameters, !backward || module.trainable, backward && trained);
            };
            const std::int64_t last = layers_of(m) - 1;
            if (m == llm)
                add(around({m, 0, 1}, shapes, pass), workloads::embedding_parameters(module.architecture) / tp, true);
            for (std::int64_t i = 0; i <= last && (!backward || m == llm || module.trainable); ++i) {
                add(blocks({m, i, 1}, shapes, pass), after_.layer_parameters(m, i, tp), module.trainable);
                if (!backward || i >= recomputed(last + 1)) continue;
                all.back().goes_again = true;
                all.back().again = blocks({m, i, 1}, shapes, PassKind::forward);
            }
            if (m == llm)
                add(around({m, last, 1}, shapes, pass), workloads::head_parameters(module.architecture) / tp, true);
            if (m == vit && (!backward || goes_back(setup_.model, {vit, 0, last + 1})))
                add(around({m, last, 1}, shapes, pass), after_.projector(tp), trains_projector(setup_.model));
        }
        return all;
    }

    // What a list of kernels does; its gather goes as soon as the list before has begun.
    void run_list(std::int64_t gather, std::int64_t compute, std::int64_t scatter) {
        std::int64_t ready = ended_;
        if (gather > 0) {
            data_ = std::max(data_, before_began_) + gather;
            ready = std::max(ready, data_);
        }
        before_began_ = ended_;
        ended_ = ready + compute;
        if (scatter > 0) data_ = std::max(data_, ended_) + scatter;
    }

    // The host's work for the task comes first: the first gather runs beside it.
    void run(const std::vector<Piece>& pieces) {
        ended_ = before_began_ = data_ = now_;
        if (setup_.recipe.action > Duration{0}) run_list(0, setup_.recipe.action.count(), 0);
        for (const Piece& piece : pieces) {
            if (piece.goes_again) run_list(piece.gather, piece.again, 0);
            run_list(piece.gather, piece.compute, piece.scatter);
        }
        now_ = std::max(ended_, data_);
    }

    const Case& case_;
    const Setup& setup_;
    std::vector<Microbatch> microbatches_;
    Setup usual_;
    LayerCosts costs_;
    AfterTasks after_;
    std::int64_t now_ = 0, ended_ = 0, before_began_ = 0, data_ = 0;
};

}  // namespace

TEST_CASE("a step without a pipeline takes what an event-driven simulation of it takes") {
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        Random random(number, 18);
        const Layout layout{.tp = 1 << random.below(3), .pp = 1, .dp = 1 << random.below(4)};
        constexpr std::array stages_of_zero{0, 1, 3};
        const Recipe recipe{.zero = stages_of_zero[random.below(3)]};
        const auto one = random_case(random, "balanced", layout, recipe);
        CAPTURE(recipe.zero);
        const auto emulated = planner::emulate(one.request, in_order);
        for (std::int64_t r = 0; r < layout.dp; ++r)
            CHECK(emulated.replicas[static_cast<std::size_t>(r)].step.count() == WithoutPipeline(one, r).step());
    }
}
