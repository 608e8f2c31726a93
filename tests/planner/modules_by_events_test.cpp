// Steps whose modules have copies, held to an event-driven simulation that shares no code with the step builder: it
// cuts units, deals them to copies, makes its own tasks, orders, messages and exchanges. It asks for the time of a pass
// of a module in a layout that all modules might have, and of the gather at its edge by itself; of hybrid sharing alone
// for that of the module with its copies.
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/event_clock.hpp"
#include "tests/support/random_job.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::testing;

namespace {

using Lengths = std::vector<std::int64_t>;

std::int64_t sum_of(const Lengths& lengths) {
    std::int64_t sum = 0;
    for (const std::int64_t length : lengths) sum += length;
    return sum;
}

// What copies of the encoder have of a unit's images.
struct Taken {
    Lengths fullest;                  // whole images of the copy that computes longest
    std::int64_t most_positions = 0;  // of the copy that holds most
};

// Longest first, each image to the copy with the least work so far: 24 h^2 of products a position in a block with a
// feed-forward of 4 h, 4 h for each that it attends to.
Taken dealt_over(const Lengths& images, std::int64_t copies, std::int64_t hidden) {
    const auto work = [hidden](std::int64_t length) { return length * (24 * hidden + 4 * length); };
    Lengths order = images;
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return work(a) > work(b); });
    std::vector<Lengths> of_copy(static_cast<std::size_t>(copies));
    Lengths load(of_copy.size());
    for (const std::int64_t length : order) {
        const auto least = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
        load[least] += work(length);
        of_copy[least].push_back(length);
    }
    Taken taken;
    taken.fullest = of_copy[static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin())];
    for (const Lengths& one : of_copy) taken.most_positions = std::max(taken.most_positions, sum_of(one));
    return taken;
}

// Whole images by copy, and a part of the others.
Taken hybrid_over(const workloads::Architecture& network, const Lengths& images, const ModuleLayout& layout) {
    std::int64_t most = 0, split = 0;
    for (const Share& share : shares_of(network, {images}, layout)) {
        std::int64_t whole = 0;
        for (const Piece& piece : share.whole) whole += piece.end - piece.first;
        for (const Piece& piece : share.part) split += piece.end - piece.first;
        most = std::max(most, whole);
    }
    return {{}, most + (split + layout.copies - 1) / layout.copies};
}

class ModulesStep {
public:
    ModulesStep(const Case& one, const partition::Partition& partition, std::int64_t replica)
        : case_(one),
          setup_(one.setup()),
          partition_(partition),
          own_(partition.layouts[vit]),
          microbatches_(of_replica(one, replica)),
          ranks_(static_cast<std::size_t>(setup_.layout.pp)),
          of_llm_(setup_, replica),
          alone_(with_layout(setup_, layout_alone())),
          of_vit_(alone_, replica),
          of_hybrid_(setup_, partition.layouts, replica) {}

    std::int64_t step(bool interleaved) {
        for (const Microbatch& microbatch : microbatches_) add_microbatch(microbatch);
        const auto programs = interleaved ? in_groups() : all_forwards_first();
        const auto ends = clock_.run(programs);
        const AfterTasks after(setup_);
        const std::int64_t copies = own_.copies * setup_.layout.dp;
        std::int64_t makespan = 0, update = 0;
        for (std::size_t r = 0; r < ranks_; ++r) {
            std::array<std::int64_t, 2> mine{};
            for (const std::size_t m : {vit, llm})
                for (const StageLayers& stage : partition_.chains[m].stages)
                    if (index(stage.rank) == r)
                        mine[m] += after.parameters(stage.parts.front(), m == vit ? own_.tp : setup_.layout.tp);
            const std::int64_t last = programs[r].empty() ? 0 : ends[programs[r].back()];
            CHECK(last >= 0);  // none is left waiting
            makespan = std::max(makespan, last + after.reduce(mine[llm], setup_.layout.dp, setup_.layout.tp) +
                                              after.reduce(mine[vit], copies, own_.tp));
            update = std::max(update, after.update(mine[llm], setup_.layout.dp) + after.update(mine[vit], copies));
        }
        return makespan + update;
    }

private:
    struct Cell {
        std::optional<std::size_t> forward, backward;
    };
    using Passes = std::vector<Cell>;  // of a unit, per stage of its chain
    struct Units {
        std::array<std::vector<Passes>, 2> of;  // per module
    };

    // Copies that deal are as replicas are; those that split, as context parallelism of the whole model.
    Layout layout_alone() const {
        Layout layout = setup_.layout;
        layout.tp = own_.tp;
        (own_.sharing == Sharing::dealt ? layout.dp : layout.cp) *= own_.copies;
        return layout;
    }

    std::size_t add_work(std::size_t rank, std::int64_t ns) {
        clock_.works.push_back({rank, std::max<std::int64_t>(1, ns + setup_.recipe.action.count())});
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

    // What each GPU of a rank sends to its like on another.
    Message message_of(std::size_t from, std::size_t to, std::int64_t bytes) const {
        const std::size_t source = clock_.works[from].rank, target = clock_.works[to].rank;
        if (source == target) return {};
        const bool near = node_of(source) == node_of(target);
        const Bandwidth network{setup_.cluster.network.bytes_per_second / 8};
        const auto time_of = [&](std::int64_t size) {
            return setup_.costs
                ->cost(costdb::PointToPoint{near ? 2 : 1, Bytes{size}, network, setup_.cluster.node_link})
                .duration.count();
        };
        const std::int64_t lag = time_of(std::max<std::int64_t>(1, bytes));
        return {0, lag, std::max<std::int64_t>(0, lag - time_of(1)), near ? 0 : 1};
    }

    void join(const Cell& before, const Cell& after, std::int64_t bytes) {
        send(*before.forward, *after.forward, message_of(*before.forward, *after.forward, bytes));
        if (before.backward)
            send(*after.backward, *before.backward, message_of(*after.backward, *before.backward, bytes));
    }

    // All images of a unit are gathered, in parts as large as the largest; their gradients are scattered.
    std::int64_t at_edge(const Lengths& images, bool backward) const {
        const std::int64_t columns = setup_.model.edges.front().projector_out;
        const std::int64_t rows = own_.sharing == Sharing::split ? (sum_of(images) / 4 + own_.copies - 1) / own_.copies
                                                                 : dealt(images).most_positions / 4;
        const costdb::Collective asked{.kind = backward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                                       .dtype = costdb::Dtype::bf16,
                                       .gpus = setup_.layout.tp,
                                       .gpus_per_node = 8,
                                       .message = Bytes{2 * own_.copies * rows * columns},
                                       .network = setup_.cluster.network,
                                       .node_link = setup_.cluster.node_link};
        const double factor = in_situ_factors(*setup_.costs, setup_.cluster.device).factors.traffic;
        return std::llround(static_cast<double>(setup_.costs->cost(asked).duration.count()) * factor);
    }

    Taken dealt(const Lengths& images) const {
        return dealt_over(images, own_.copies, setup_.model.modules[vit].architecture.hidden);
    }

    std::int64_t vit_pass(const StageLayers& stage, const Lengths& images, PassKind pass) {
        std::vector<PassShape> shapes(2);
        shapes[vit].lengths = own_.sharing == Sharing::dealt ? dealt(images).fullest : images;
        if (own_.sharing == Sharing::hybrid)
            return of_hybrid_.stage(stage, shapes, pass, case_.recompute()).time.count();
        const std::int64_t blocks = of_vit_.stage(stage, shapes, pass, case_.recompute()).time.count();
        const LayerRange& part = stage.parts.front();
        const bool last = part.first + part.count == setup_.model.modules[vit].architecture.layers;
        return blocks + (last ? at_edge(images, pass != PassKind::forward) : 0);
    }

    // Positions that the fullest copy has to send.
    std::int64_t most_positions(const Lengths& images) const {
        if (own_.sharing == Sharing::dealt) return dealt(images).most_positions;
        if (own_.sharing == Sharing::split) return (sum_of(images) + own_.copies - 1) / own_.copies;
        return hybrid_over(setup_.model.modules[vit].architecture, images, own_).most_positions;
    }

    std::int64_t bytes_of_vit(const Lengths& images, std::int64_t rows, std::int64_t columns) const {
        const std::int64_t all = sum_of(images);
        return 2 * ((rows * most_positions(images) + all - 1) / all) * columns / own_.tp;
    }

    // As few units as their size allows, of sizes that differ by one at most.
    std::vector<Lengths> units_of(const Lengths& images) const {
        const auto most = static_cast<std::size_t>(partition_.unit_items[vit]);
        const std::size_t count =
            most == 0 ? std::min<std::size_t>(1, images.size()) : (images.size() + most - 1) / most;
        std::vector<Lengths> units(count);
        std::size_t next = 0;
        for (std::size_t u = 0; u < count; ++u)
            for (std::size_t left = images.size() / count + (u < images.size() % count ? 1 : 0); left > 0; --left)
                units[u].push_back(images[next++]);
        return units;
    }

    Passes add_unit(std::size_t module, const std::vector<PassShape>& shapes) {
        Passes row;
        for (const StageLayers& stage : partition_.chains[module].stages) {
            const auto time = [&](PassKind pass) {
                return module == vit ? vit_pass(stage, shapes[vit].lengths, pass)
                                     : of_llm_.stage(stage, shapes, pass, case_.recompute()).time.count();
            };
            Cell& cell = row.emplace_back();
            cell.forward = add_work(index(stage.rank), time(PassKind::forward));
            if (goes_back(setup_.model, stage.parts.front()))
                cell.backward = add_work(index(stage.rank), time(PassKind::backward));
        }
        return row;
    }

    void add_microbatch(const Microbatch& microbatch) {
        const auto whole = shapes_of(microbatch);
        const auto& network = setup_.model.modules[vit].architecture;
        Units& units = units_.emplace_back();
        const auto images = units_of(whole[vit].lengths);
        for (const Lengths& mine : images) {
            const auto& row = units.of[vit].emplace_back(add_unit(vit, {PassShape{mine}, {}}));
            for (std::size_t s = 0; s + 1 < row.size(); ++s)
                join(row[s], row[s + 1], bytes_of_vit(mine, sum_of(mine), network.hidden));
        }
        const auto& row = units.of[llm].emplace_back(add_unit(llm, {{}, whole[llm]}));
        for (std::size_t s = 0; s + 1 < row.size(); ++s)
            join(row[s], row[s + 1],
                 2 * microbatch.tokens * setup_.model.modules[llm].architecture.hidden / setup_.layout.tp);
        for (std::size_t u = 0; u < images.size(); ++u)
            join(units.of[vit][u].back(), row.front(),
                 bytes_of_vit(images[u], sum_of(images[u]) / 4, setup_.model.edges.front().projector_out));
        send(*row.back().forward, *row.back().backward, {});
    }

    using Programs = std::vector<std::vector<std::size_t>>;

    struct Place {
        std::size_t module, stage;  // of its chain
    };

    std::vector<Place> places() const {
        std::vector<Place> all;
        for (const std::size_t m : {vit, llm})
            for (std::size_t s = 0; s < partition_.chains[m].stages.size(); ++s) all.push_back({m, s});
        return all;
    }

    void append(Programs& programs, const Place& place, std::size_t microbatch, bool backward) const {
        for (const Passes& row : units_[microbatch].of[place.module]) {
            const auto& work = backward ? row[place.stage].backward : row[place.stage].forward;
            if (work) programs[clock_.works[*work].rank].push_back(*work);
        }
    }

    // Stage by stage, each with all microbatches.
    Programs all_forwards_first() const {
        Programs programs(ranks_);
        auto along = places();
        for (const bool backward : {false, true}) {
            for (const Place& place : along)
                for (std::size_t m = 0; m < units_.size(); ++m) append(programs, place, m, backward);
            std::reverse(along.begin(), along.end());
        }
        return programs;
    }

    // Megatron-LM's interleaved 1F1B over the stages of both: groups of as many microbatches as ranks.
    Programs in_groups() const {
        const auto along = places();
        const std::size_t chunks = along.size() / ranks_;
        std::vector<std::pair<std::size_t, std::size_t>> rows;  // chunk, microbatch
        for (std::size_t first = 0; first < units_.size(); first += ranks_)
            for (std::size_t c = 0; c < chunks; ++c)
                for (std::size_t m = first; m < std::min(units_.size(), first + ranks_); ++m) rows.emplace_back(c, m);
        Programs programs(ranks_);
        for (std::size_t r = 0; r < ranks_; ++r) {
            const std::size_t ahead = std::min(rows.size(), 2 * (ranks_ - 1 - r) + (chunks - 1) * ranks_);
            for (std::size_t k = 0; k < rows.size() + ahead; ++k) {
                if (k < rows.size()) append(programs, along[rows[k].first * ranks_ + r], rows[k].second, false);
                if (k >= ahead)
                    append(programs, along[(chunks - 1 - rows[k - ahead].first) * ranks_ + r], rows[k - ahead].second,
                           true);
            }
        }
        return programs;
    }

    const Case& case_;
    const Setup& setup_;
    const partition::Partition& partition_;
    ModuleLayout own_;  // of the encoder
    std::vector<Microbatch> microbatches_;
    std::size_t ranks_;
    LayerCosts of_llm_;
    Setup alone_;
    LayerCosts of_vit_, of_hybrid_;
    EventClock clock_;
    std::vector<Units> units_;  // per microbatch
};

// A layout of the encoder with copies, that its heads allow.
std::string random_sharing(Random& random, const Case& one) {
    const std::int64_t tp = one.setup().layout.tp, heads = one.setup().model.modules[vit].architecture.heads;
    std::int64_t own = 1;
    while (2 * own < tp && 2 * own <= heads && random.below(2) == 0) own *= 2;
    constexpr std::array ways{"dealt", "split", "hybrid"};
    return fmt::format("vit={}:{}", own, ways[heads % tp == 0 ? random.below(ways.size()) : 0]);
}

Case random_modules(Random& random) {
    for (;;) {
        Layout layout = random_layout(random);
        layout.tp = std::int64_t{2} << random.below(3);
        auto one = random_case(random, random.below(2) == 0 ? "modules" : "dip", layout,
                               Recipe{.zero = static_cast<int>(random.below(2))});
        if (!conflict(layout, one.setup().model)) return one;
    }
}

struct Seen {
    std::size_t dealt = 0, split = 0, hybrid = 0, interleaved = 0, waited = 0;
};

void check_case(std::uint64_t number, Seen& seen) {
    CAPTURE(number);
    Random random(number, 46);
    auto one = random_modules(random);
    const std::string text = random_sharing(random, one);
    CAPTURE(text);
    one.request.job.layouts = partition::parse_module_tp(text, one.setup());
    // Groups of microbatches are whole: with others the order may not run.
    auto& microbatches = one.request.batch.microbatches;
    const auto group = static_cast<std::size_t>(one.setup().layout.dp * one.setup().layout.pp);
    const bool interleaved = microbatches.size() >= group && random.below(4) > 0;
    if (interleaved) microbatches.resize(microbatches.size() / group * group);
    one.request.policy = interleaved ? "interleaved" : "gpipe";
    const auto emulated = planner::emulate(one.request, in_order);
    REQUIRE(emulated.partition.layouts.size() == 2);
    for (std::size_t r = 0; r < emulated.replicas.size(); ++r) {
        CHECK(emulated.replicas[r].step.count() ==
              ModulesStep(one, emulated.partition, static_cast<std::int64_t>(r)).step(interleaved));
        seen.waited += emulated.replicas[r].waits.waited;
    }
    const Sharing sharing = emulated.partition.layouts[vit].sharing;
    ++(sharing == Sharing::dealt ? seen.dealt : sharing == Sharing::split ? seen.split : seen.hybrid);
    seen.interleaved += interleaved ? 1 : 0;
}

}  // namespace

TEST_CASE("a step of modules with copies takes what an event-driven simulation of it takes") {
    Seen seen;
    const auto tried = pipeweaver::testing::cases(100);
    for (std::uint64_t number = 0; number < tried.count; ++number) check_case(number, seen);
    CHECK(seen.dealt >= tried.share(20));
    CHECK(seen.split >= tried.share(10));
    CHECK(seen.hybrid >= tried.share(10));
    CHECK(seen.interleaved >= tried.share(30));
    CHECK(seen.waited >= tried.share(1));
}
