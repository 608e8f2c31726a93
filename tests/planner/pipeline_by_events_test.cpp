// First-stage and three-phase steps, held to an event-driven simulation that shares no code with the step builder: it
// makes its own tasks, orders, messages and exchanges, and asks for nothing but the time of a stage's pass or of one
// operator.
#include "pipeweaver/emulator/layer_costs.hpp"
#include "tests/support/event_clock.hpp"
#include "tests/support/random_job.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::testing;

namespace {

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
          dealt_(!phase_modules(partition).empty()) {}

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

    void send(std::size_t from, std::size_t to, const Message& message) {
        clock_.works[from].sends.push_back(clock_.messages.size());
        clock_.messages.push_back(message);
        clock_.messages.back().to = to;
    }

    std::int64_t node_of(std::size_t rank) const {
        return static_cast<std::int64_t>(rank) * setup_.layout.tp * setup_.layout.dp / 8;
    }

    // A tensor that goes from one rank to another, each GPU with its part.
    Message message_between(std::size_t from, std::size_t to, std::int64_t bytes) const {
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

    Message crossing(std::size_t from, std::size_t to, const LayerRange& part,
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
        auto arrival =
            gpus.size() == 1 ? Message{} : message_between(ranks_ - 1, 0, outputs / static_cast<std::int64_t>(tp));
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
    EventClock clock_;
    std::vector<std::vector<Cell>> cells_;  // per microbatch, per stage
};

// One case of a partition, with one stage on each rank or several. Returns how many transfers waited for a port.
std::size_t check_case(std::uint64_t number, const std::string& partition) {
    CAPTURE(number);
    Random random(number, 17);
    auto one = random_case(random, partition, random_layout(random), Recipe{.zero = static_cast<int>(random.below(2))});
    const auto& model = one.setup().model;
    const std::int64_t pp = one.setup().layout.pp;
    const std::int64_t most = std::min(model.modules[vit].architecture.layers, model.modules[llm].architecture.layers);
    one.request.chunks_per_rank = pp == 1 ? 1 : between(random, 1, std::max<std::int64_t>(1, most / pp));
    if (one.request.chunks_per_rank > 1) one.request.policy = "interleaved";
    if (random.below(4) == 0) one.request.recompute = {.everywhere = Recompute::selective};
    const auto emulated = planner::emulate(one.request, in_order);
    std::size_t waited = 0;
    for (std::size_t r = 0; r < emulated.replicas.size(); ++r) {
        CHECK(emulated.replicas[r].step.count() ==
              PipelineStep(one, emulated.partition, static_cast<std::int64_t>(r)).step());
        waited += emulated.replicas[r].waits.waited;
    }
    return waited;
}

std::size_t check_cases(const std::string& partition) {
    std::size_t waited = 0;
    for (std::uint64_t number = 0; number < 200; ++number) waited += check_case(number, partition);
    return waited;
}

}  // namespace

TEST_CASE("a first-stage step takes what an event-driven simulation of it takes") {
    CHECK(check_cases("first-stage") > 0);
}

TEST_CASE("a three-phase step takes what an event-driven simulation of it takes") {
    CHECK(check_cases("three-phase") > 0);
}
