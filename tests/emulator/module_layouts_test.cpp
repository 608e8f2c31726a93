// A layout for each module: who takes what of a unit, and what that holds, moves and exchanges, worked out by hand.
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/module_layout.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using costdb::CollectiveKind;

namespace {

using Lengths = std::vector<std::int64_t>;

// A layer of a plain network is as every other.
double flops_of(const workloads::Architecture& network, const PassShape& shape, std::size_t sequence) {
    PassShape one{{shape.lengths[sequence]}};
    if (!shape.context.empty()) one.context = {shape.context[sequence]};
    return static_cast<double>(network.layers) * layer_flops(network, 0, one);
}

PassShape random_shape(Random& random, bool context) {
    PassShape shape;
    const std::uint64_t count = random.below(14);
    for (std::uint64_t i = 0; i < count; ++i) {
        shape.lengths.push_back(4 * (1 + static_cast<std::int64_t>(random.below(600))));
        if (context) shape.context.push_back(static_cast<std::int64_t>(random.below(900)));
    }
    return shape;
}

// How often each position is in a piece.
std::vector<std::vector<int>> covered(const PassShape& shape, const std::vector<Share>& shares) {
    std::vector<std::vector<int>> times;
    times.reserve(shape.lengths.size());
    for (const std::int64_t length : shape.lengths) times.emplace_back(static_cast<std::size_t>(length));
    for (const Share& share : shares)
        for (const auto& pieces : {share.whole, share.part})
            for (const Piece& piece : pieces) {
                REQUIRE(piece.first < piece.end);
                for (std::int64_t p = piece.first; p < piece.end; ++p)
                    ++times[piece.sequence][static_cast<std::size_t>(p)];
            }
    return times;
}

// Forward FLOPs of the fullest copy, those of split sequences a tenth more.
double measure_of(const workloads::Architecture& network, const PassShape& shape, const std::vector<Share>& shares) {
    double fullest = 0, split = 0;
    std::vector<char> is_split(shape.lengths.size());
    for (const Share& share : shares) {
        double whole = 0;
        for (const Piece& piece : share.whole) whole += flops_of(network, shape, piece.sequence);
        for (const Piece& piece : share.part) is_split[piece.sequence] = 1;
        fullest = std::max(fullest, whole);
    }
    for (std::size_t i = 0; i < is_split.size(); ++i)
        if (is_split[i] != 0) split += flops_of(network, shape, i);
    return fullest + 1.1 * split / static_cast<double>(shares.size());
}

void check_dealt(const workloads::Architecture& network, const PassShape& shape, const std::vector<Share>& shares) {
    std::vector<double> load;
    double largest = 0;
    for (const Share& share : shares) {
        CHECK(share.part.empty());
        load.push_back(0);
        for (const Piece& piece : share.whole) {
            const double flops = flops_of(network, shape, piece.sequence);
            load.back() += flops;
            largest = std::max(largest, flops);
        }
    }
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    CHECK(*most - *least <= largest * (1 + 1e-9));
}

void check_split(const PassShape& shape, const std::vector<Share>& shares, std::int64_t quantum) {
    Lengths load;
    for (const Share& share : shares) {
        CHECK(share.whole.empty());
        load.push_back(0);
        for (const Piece& piece : share.part) load.back() += piece.end - piece.first;
    }
    // All have as much but the last ones.
    const std::int64_t rows = quantum * static_cast<std::int64_t>(shares.size());
    const std::int64_t part = (shape.positions() + rows - 1) / rows * quantum;
    std::int64_t left = shape.positions();
    for (const std::int64_t one : load) {
        CHECK(one == std::min(part, left));
        left -= one;
    }
}

// The fullest copy of pieces that others see, as pricing has it.
void check_shape_of_copy(const workloads::Architecture& network, const PassShape& shape, const ModuleLayout& layout,
                         const std::vector<Share>& shares) {
    Lengths divided;
    for (std::size_t i = 0; i < shape.lengths.size(); ++i)
        if (std::any_of(shares.begin(), shares.end(), [&](const Share& share) {
                return std::any_of(share.part.begin(), share.part.end(),
                                   [&](const Piece& piece) { return piece.sequence == i; });
            }))
            divided.push_back(shape.lengths[i]);
    double most_flops = 0, most_positions = 0;
    for (const Share& share : shares) {
        double flops = 0, positions = 0;
        for (const Piece& piece : share.whole) {
            flops += flops_of(network, shape, piece.sequence);
            positions += static_cast<double>(shape.lengths[piece.sequence] +
                                             (shape.context.empty() ? 0 : shape.context[piece.sequence]));
        }
        most_flops = std::max(most_flops, flops);
        most_positions = std::max(most_positions, positions);
    }
    for (const Fullest by : {Fullest::by_flops, Fullest::by_positions}) {
        const PassShape copy = shape_of_copy(network, shape, layout, by);
        CHECK(divided_of(copy).lengths == divided);
        double flops = 0;
        for (std::size_t i = 0; i < copy.whole; ++i) flops += flops_of(network, copy, i);
        if (by == Fullest::by_flops)
            CHECK(flops == doctest::Approx(most_flops));
        else
            CHECK(static_cast<double>(whole_of(copy).positions() + whole_of(copy).context_positions()) ==
                  most_positions);
    }
}

}  // namespace

TEST_CASE("copies share out every position once, evenly, however they share") {
    const auto network = testing::small_network(workloads::ModuleKind::vision_encoder, 6, 1024);
    auto generator = testing::small_network(workloads::ModuleKind::diffusion_transformer, 3, 1024);
    generator.cross_attention_dim = 512;
    for (std::uint64_t number = 0; number < 300; ++number) {
        CAPTURE(number);
        Random random(number, 46);
        const bool reads = random.below(3) == 0;
        const auto& of = reads ? generator : network;
        const PassShape shape = random_shape(random, reads);
        const std::int64_t copies = std::int64_t{1} << random.below(4), quantum = random.below(2) == 0 ? 1 : 4;
        double dealt = 0, split = 0, hybrid = 0;
        for (const Sharing sharing : {Sharing::dealt, Sharing::split, Sharing::hybrid}) {
            const ModuleLayout layout{1, copies, sharing};
            const auto shares = shares_of(of, shape, layout, quantum);
            REQUIRE(shares.size() == static_cast<std::size_t>(copies));
            for (const auto& sequence : covered(shape, shares))
                CHECK(std::all_of(sequence.begin(), sequence.end(), [](int times) { return times == 1; }));
            for (const Share& share : shares)
                for (const auto& pieces : {share.whole, share.part})
                    for (const Piece& piece : pieces) CHECK((piece.first % quantum == 0 && piece.end % quantum == 0));
            (sharing == Sharing::dealt   ? dealt
             : sharing == Sharing::split ? split
                                         : hybrid) = measure_of(of, shape, shares);
            if (sharing == Sharing::dealt) check_dealt(of, shape, shares);
            if (sharing == Sharing::split) check_split(shape, shares, quantum);
            if (copies > 1) check_shape_of_copy(of, shape, layout, shares);
        }
        CHECK(hybrid <= std::min(dealt, split) * (1 + 1e-9));
    }
}

TEST_CASE("one copy takes the unit as it is, and no unit is nothing") {
    const auto network = testing::small_network(workloads::ModuleKind::vision_encoder, 6, 1024);
    const PassShape shape{{300, 100, 200}};
    for (const Sharing sharing : {Sharing::dealt, Sharing::split, Sharing::hybrid}) {
        const auto one = shape_of_copy(network, shape, {2, 1, sharing});
        CHECK((one.lengths == shape.lengths && one.whole == 0));
        CHECK(shape_of_copy(network, {}, {1, 4, sharing}).lengths.empty());
        for (const Share& share : shares_of(network, {}, {1, 4, sharing}))
            CHECK((share.whole.empty() && share.part.empty()));
    }
    CHECK(shares_of(network, shape, {2, 1}).front().whole == std::vector<Piece>{{0, 0, 300}, {1, 0, 100}, {2, 0, 200}});
    // Five alike on two copies: two each, and one in halves.
    const auto five = shares_of(network, {{400, 400, 400, 400, 400}}, {1, 2, Sharing::hybrid});
    CHECK((five[0].whole.size() == 2 && five[1].whole.size() == 2));
    CHECK(five[0].part == std::vector<Piece>{{0, 0, 200}});
    CHECK(five[1].part == std::vector<Piece>{{0, 200, 400}});
}

TEST_CASE("a module has the layout that is said of it, else that of the job") {
    const Layout layout{.tp = 4, .pp = 2, .dp = 2, .cp = 2, .ep = 2, .context = ContextParallel::ring};
    CHECK(layout_of({}, 1, layout) == ModuleLayout{4, 1, Sharing::dealt});
    CHECK(layout_of({{1, 8}, {4, 1}}, 0, layout) == ModuleLayout{1, 8, Sharing::dealt});
    CHECK_FALSE(differ({}, layout));
    CHECK_FALSE(differ({{4, 1}, {4, 1}}, layout));
    CHECK(differ({{2, 4}, {4, 1}}, layout));

    const Layout same = with_module(layout, {4, 1});
    CHECK((same.tp == 4 && same.cp == 2 && same.ep == 2 && same.context == ContextParallel::ring));
    const Layout copies = with_module(layout, {2, 4, Sharing::split});
    CHECK((copies.tp == 2 && copies.cp == 4 && copies.ep == 1 && copies.pp == 2 && copies.dp == 2));
    CHECK((copies.context == ContextParallel::all_to_all && copies.weight_copies() == 8));
    // One copy over all GPUs of a rank that the job shares by tp and cp.
    const Layout wide = with_module(layout, {8, 1});
    CHECK((wide.tp == 8 && wide.cp == 1 && wide.gpus_of_rank() == 8 && wide.weight_copies() == 2));

    CHECK(name_of(ModuleLayout{2, 4, Sharing::hybrid}) == "tp 2 x 4 copies, hybrid");
    CHECK(name_of(ModuleLayout{8, 1}) == "tp 8");
    CHECK(sharing_named("split") == Sharing::split);
    CHECK_FALSE(sharing_named("whole"));
}

TEST_CASE("a layout that a module cannot have is refused with those that it can") {
    auto model = testing::small_model();
    const Layout layout{.tp = 4, .pp = 2, .dp = 1};
    const auto why = [&](const ModuleLayout& module, std::size_t which = 0) {
        return why_not(module, model, which, layout, "--module-tp x").value_or("it can");
    };
    for (const Sharing sharing : {Sharing::dealt, Sharing::split, Sharing::hybrid})
        for (const std::int64_t tp : {1, 2, 4}) CHECK(why({tp, 4 / tp, sharing}) == "it can");
    CHECK(why({3, 1}) ==
          "--module-tp x: tp 3 x 1 copy of 'vit' are not the 4 GPUs of a rank; allowed with 'dealt' are 1, 2, 4");
    CHECK(why({2, 4, Sharing::split}) ==
          "--module-tp x: tp 2 x 4 copies of 'vit' are not the 4 GPUs of a rank; allowed with 'split' are 1, 2, 4");
    CHECK(why({2, 2}, 1) == "--module-tp x: 'llm' takes whole microbatches and has the tp of the job, 4");
    CHECK(why({4, 1}, 1) == "it can");
    // Six heads: four GPUs cannot have as many each, two can.
    model.modules[0].architecture.heads = 6;
    CHECK(why({1, 4}) == "it can");
    CHECK(why({1, 4, Sharing::split}) ==
          "--module-tp x: tp 1 x 4 copies does not divide the 6 heads and 4096 feed-forward columns of 'vit'; none is "
          "allowed with 'split', with 'dealt' 1, 2");
    model.modules[0].architecture.heads = 8;
    model.modules[0].architecture.moe = workloads::MixtureOfExperts{};
    CHECK(why({1, 4}) == "--module-tp x: 'vit' has experts, and has the tp of the job, 4");
}

namespace {

// vit (6 layers, h 1024, F 4096, 8 heads of 128) in front of llm (8 layers, h 2048), tp 4 x pp 2 x dp 2: three layers
// of vit and four of llm on each rank. One unit of five images: 1024, 1024, 1024, 576, 512 = 4160 patches.
struct ByHand : testing::SmallWorkload {
    explicit ByHand(const ModuleLayout& of_vit, int zero = 1) : testing::SmallWorkload({.tp = 4, .pp = 2, .dp = 2}) {
        recipe.zero = zero;
        workloads::Microbatch one;
        one.samples = {0};
        one.tokens = 1024 + 1040;
        one.lengths = {one.tokens};
        for (const std::int64_t patches : {1024, 1024, 1024, 576, 512})
            one.items.push_back({0, one.items.size(), {workloads::Modality::image, patches / 4, patches, 0, false}});
        microbatches = {one};
        cut.name = "by hand";
        cut.chains = {{"vit", {{RankId{0}, {{0, 0, 3}}}, {RankId{1}, {{0, 3, 3}}}}},
                      {"llm", {{RankId{0}, {{1, 0, 4}}}, {RankId{1}, {{1, 4, 4}}}}}};
        cut.unit_items = {0, 0};
        cut.layouts = {of_vit, {4, 1}};
        step_of = input(cut);
        step_of.name = "by hand";
    }

    Bytes held(std::size_t stage) const {
        const Unit& unit = step_of.units[0][0][0];
        return pass_memory(step_of, cut.chains[0].stages[stage], unit.shapes, Recompute::none, true).held;
    }

    // Of a pass of vit's stage.
    std::vector<Operator> operators(std::size_t stage, PassKind pass) const {
        const LayerCosts priced(*this, cut.layouts, 0);
        std::vector<Operator> all;
        for (const auto& piece : priced.pieces(cut.chains[0].stages[stage], step_of.units[0][0][0].shapes, pass))
            for (std::int64_t i = 0; i < piece.times; ++i)
                for (const auto& list : piece.lists)
                    all.insert(all.end(), list.operators.begin(), list.operators.end());
        return all;
    }

    partition::Partition cut;
    StepInput step_of;
};

const ModuleLayout dealt{1, 4, Sharing::dealt}, split{2, 2, Sharing::split};

// Collectives of so many bytes and GPUs that have a name.
std::int64_t count(const std::vector<Operator>& operators, std::string_view name, std::int64_t bytes,
                   std::int64_t gpus) {
    return std::count_if(operators.begin(), operators.end(), [&](const Operator& op) {
        const auto* one = std::get_if<costdb::Collective>(&op.query);
        return one != nullptr && op.name == name && one->message == Bytes{bytes} && one->gpus == gpus;
    });
}

std::int64_t collectives(const std::vector<Operator>& operators) {
    return std::count_if(operators.begin(), operators.end(),
                         [](const Operator& op) { return std::holds_alternative<costdb::Collective>(op.query); });
}

}  // namespace

TEST_CASE("weights, gradients and optimizer state of copies, by hand") {
    // A layer of vit has 12 h^2 = 12 582 912 parameters, three of them V = 37 748 736, the projector P = 1024 * 2048 =
    // 2 097 152. A layer of llm has 16 h^2 = 4 h^2 + 3 * 4 h^2 = 67 108 864, four of them on tp 4 are L = 67 108 864,
    // embedding and head 32 000 * 2048 / 4: E = 16 384 000 on each rank.
    //
    //             weights 2, gradients 4 bytes                      optimizer 12 bytes, divided over
    // dealt  r0   V + L + E = 121 241 600                           V over 4 copies * dp 2 = 8, L + E over dp 2
    //        r1   V + P + L + E = 123 338 752                       V + P over 8, L + E over 2
    // split  r0   V/2 + L + E = 102 367 232                         V/2 over 2 copies * dp 2 = 4, L + E over 2
    //        r1   (V + P)/2 + L + E = 103 415 808                   (V + P)/2 over 4, L + E over 2
    struct Row {
        ModuleLayout layout;
        std::size_t rank;
        std::int64_t vit, copies;
    };
    const std::int64_t llm = 83'492'864;
    for (const Row& row : {Row{dealt, 0, 37'748'736, 8}, Row{dealt, 1, 39'845'888, 8}, Row{split, 0, 18'874'368, 4},
                           Row{split, 1, 19'922'944, 4}})
        for (const int zero : {0, 1, 2, 3}) {
            CAPTURE(zero);
            const auto memory = static_memory(ByHand(row.layout, zero).step_of)[row.rank];
            const auto bytes = [&](std::int64_t each, int from) {
                return zero < from ? Bytes{each * (row.vit + llm)}
                                   : Bytes{each * row.vit / row.copies + each * llm / 2};
            };
            CHECK(memory.weights == bytes(2, 3));
            CHECK(memory.gradients == bytes(4, 2));
            CHECK(memory.optimizer == bytes(12, 1));
        }
    CHECK(static_memory(ByHand(dealt).step_of)[0].optimizer == Bytes{12 * 37'748'736 / 8 + 6 * llm});
    CHECK(static_memory(ByHand(split).step_of)[1].weights == Bytes{2 * 103'415'808});
}

TEST_CASE("activations of the fullest copy, by hand") {
    // A block of h = a d keeps 8 m h/t norms, 8 m h/t of the attention, 16 m h/t of the feed-forward: 32 m h/t; a part
    // of a stage its input, 2 m h/t.
    //
    // dealt  Three copies have an image of 1024, the fourth those of 576 and 512: m = 1088, t = 1.
    //        3 * 32 m h + 2 m h = 98 * 1088 * 1024 = 109 182 976 bytes
    // split  Each has half of the 4160 positions: m = 2080, t = 2. A block keeps its attention's output twice, in parts
    //        of the heads, too: 2 m h/t more. 3 * 34 m h/2 + m h = 52 * 2080 * 1024 = 110 755 840 bytes
    for (const std::size_t stage : {0U, 1U}) {
        CHECK(ByHand(dealt).held(stage) == Bytes{109'182'976});
        CHECK(ByHand(split).held(stage) == Bytes{110'755'840});
    }
}

TEST_CASE("traffic inside a module with copies and at its edge, by hand") {
    // dealt  tp 1: a layer exchanges nothing. At the edge four GPUs gather rows of the fullest copy, 1088 / 4 = 272, in
    //        bf16: 2 * 4 * 272 * 2048 = 4 456 448 bytes.
    // split  m = 2080, padded to 2176. Each of two GPUs of a copy has 4 heads of 128 at its positions, and each of four
    //        gets 2 heads of whole sequences. Queries, keys and values: 2 * 2176 * 3 * 512 = 6 684 672 bytes between
    //        the two copies, outputs 2 * 2176 * 512 = 2 228 224. Tensor parallel 2: gathers in front of qkv and up,
    //        scatters behind output and down, 2 * 2176 * 1024 = 4 456 448 each. At the edge 2080 / 4 = 520 rows:
    //        2 * 2 * 520 * 2048 = 4 259 840 bytes among four GPUs.
    const ByHand whole(dealt), parts(split);
    for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
        CHECK(collectives(whole.operators(0, pass)) == 0);
        CHECK(collectives(whole.operators(1, pass)) == 1);
    }
    CHECK(count(whole.operators(1, PassKind::forward), "gather for the edge", 4'456'448, 4) == 1);
    CHECK(count(whole.operators(1, PassKind::backward), "scatter from the edge", 4'456'448, 4) == 1);
    for (const Operator& op : whole.operators(0, PassKind::forward))
        if (const auto* attention = std::get_if<PackedAttention>(&op.query))
            CHECK((attention->lengths == Lengths{1024} && attention->shape.q_heads == 8));

    const auto forward = parts.operators(0, PassKind::forward), backward = parts.operators(0, PassKind::backward);
    CHECK(count(forward, "exchange queries and keys", 6'684'672, 2) == 3);
    CHECK(count(forward, "exchange outputs", 2'228'224, 2) == 3);
    CHECK(count(forward, "gather", 4'456'448, 2) == 6);
    CHECK(count(forward, "scatter", 4'456'448, 2) == 6);
    CHECK(collectives(forward) == 18);
    CHECK(count(backward, "exchange output gradients", 2'228'224, 2) == 3);
    CHECK(count(backward, "exchange query and key gradients", 6'684'672, 2) == 3);
    CHECK(count(parts.operators(1, PassKind::forward), "gather for the edge", 4'259'840, 4) == 1);
    CHECK(count(parts.operators(1, PassKind::backward), "scatter from the edge", 4'259'840, 4) == 1);
    for (const Operator& op : forward)
        if (const auto* attention = std::get_if<PackedAttention>(&op.query))
            CHECK((attention->lengths == Lengths{1024, 1024, 1024, 576, 512} && attention->shape.q_heads == 2));
}

TEST_CASE("what crosses ranks inside a chain with copies, by hand") {
    // Each GPU sends what its copy has, the fullest 1088 of width 1024 where whole images are dealt, a half of its
    // 2080 on tp 2: 2 * 1088 * 1024 = 2 228 224 and 2 * 2080 * 1024 / 2 = 2 129 920 bytes; to llm 2 * 272 * 2048 =
    // 1 114 112 and 2 * 520 * 2048 / 2 = 1 064 960. llm's own: 2 * 2064 * 2048 / 4 = 2 113 536.
    struct Row {
        ModuleLayout layout;
        std::int64_t inside, edge;
    };
    for (const Row& row : {Row{dealt, 2'228'224, 1'114'112}, Row{split, 2'129'920, 1'064'960}}) {
        const ByHand one(row.layout);
        const auto step = require_step(build_step(one.step_of));
        std::vector<Bytes> messages;
        for (const Transfer& transfer : step.transfers)
            if (transfer.asked) messages.push_back(transfer.message);
        // Forth and back.
        std::vector<Bytes> expected{Bytes{row.inside}, Bytes{row.inside}, Bytes{2'113'536},
                                    Bytes{2'113'536},  Bytes{row.edge},   Bytes{row.edge}};
        CHECK(messages == expected);
        // Two tensors of each may wait on a rank, for each chain and direction.
        CHECK(step.memory[0].buffers == 2 * (Bytes{row.inside} + Bytes{2'113'536} + Bytes{row.edge}));
    }
}

TEST_CASE("gradients are reduced over the copies of all replicas, by hand") {
    // vit's V = 37 748 736 parameters of rank 0, fp32 gradients, bf16 weights (ZeRO 1): dealt 8 GPUs next to each
    // other, split V/2 on 4 GPUs, 2 apart: the eight of a node. llm's 83 492 864: 2 GPUs, 4 apart.
    struct Row {
        ModuleLayout layout;
        std::int64_t parameters, copies;
    };
    for (const Row& row : {Row{dealt, 37'748'736, 8}, Row{split, 18'874'368, 4}}) {
        const ByHand one(row.layout);
        const auto tail = tail_of(one.step_of, rank_parameters(one.step_of)[0]);
        REQUIRE(tail.size() == 4);
        const auto collective = [&](std::size_t place) { return std::get<costdb::Collective>(tail[place].query); };
        const auto check = [&](std::size_t place, CollectiveKind kind, std::int64_t bytes, std::int64_t copies) {
            CHECK(collective(place).kind == kind);
            CHECK(collective(place).message == Bytes{bytes});
            CHECK(collective(place).gpus == copies);
            CHECK(collective(place).gpus_per_node == copies);  // all in the node
        };
        check(0, CollectiveKind::reduce_scatter, 4 * 83'492'864, 2);
        check(1, CollectiveKind::all_gather, 2 * 83'492'864, 2);
        check(2, CollectiveKind::reduce_scatter, 4 * row.parameters, row.copies);
        check(3, CollectiveKind::all_gather, 2 * row.parameters, row.copies);
        const ByHand unshared(row.layout, 0);
        const auto reduced = tail_of(unshared.step_of, rank_parameters(unshared.step_of)[0]);
        REQUIRE(reduced.size() == 2);
        CHECK(std::get<costdb::Collective>(reduced[1].query).kind == CollectiveKind::all_reduce);
        CHECK(std::get<costdb::Collective>(reduced[1].query).message == Bytes{4 * row.parameters});
    }
}

TEST_CASE("without sequence parallelism what crosses inside a chain is gathered on the GPUs of a copy alone") {
    const auto lag_of = [](const ModuleLayout& layout, bool sequence_parallel) {
        ByHand one(layout);
        one.recipe.execution.sequence_parallel = sequence_parallel;
        const auto step = require_step(build_step(one.step_of));
        REQUIRE(step.transfers.front().columns == 1024);
        return step.transfers.front().lag;
    };
    CHECK(lag_of(dealt, false) == lag_of(dealt, true));
    CHECK(lag_of(split, false) > lag_of(split, true));
}

TEST_CASE("what is gathered for a generator with copies is of its whole unit") {
    // Both units have a clip of 512 on the fullest copy; the first reads twice as much.
    auto model = testing::small_model();
    auto dit = model.modules[0];
    dit.name = "dit";
    dit.architecture.kind = workloads::ModuleKind::diffusion_transformer;
    dit.architecture.cross_attention_dim = 2048;
    model.modules = {model.modules[1], dit};
    model.edges = {{0, 1, 1, 0, 0}};
    const Layout layout{.tp = 4, .pp = 1, .dp = 1};
    Setup setup{model, testing::small_cluster(4), layout, testing::small_costs()};
    setup.store.reset();
    const ModuleLayouts layouts{{4, 1}, {2, 2, Sharing::dealt}};
    const std::vector<PassShape> one{{}, {{512, 512}, {1024, 1024}}}, other{{}, {{512, 128}, {1024, 64}}};
    const StageLayers stage{RankId{0}, {{1, 0, 6}}};
    const auto alone = [&](const std::vector<PassShape>& shapes) {
        return LayerCosts(setup, layouts, 0).stage(stage, shapes, PassKind::forward).time;
    };
    LayerCosts costs(setup, layouts, 0);
    CHECK(costs.stage(stage, one, PassKind::forward).time == alone(one));
    CHECK(costs.stage(stage, other, PassKind::forward).time == alone(other));
    CHECK(alone(other) < alone(one));
}

TEST_CASE("a store tells copies from a ring of as many GPUs") {
    const Layout ring{.tp = 2, .pp = 1, .dp = 1, .cp = 2, .context = ContextParallel::ring};
    const Setup setup{testing::small_model(), testing::small_cluster(4), ring, testing::small_costs()};
    const PassShape shape{{1024, 1024}};
    const ModuleLayouts copies{{2, 2, Sharing::split}, {2, 1}};
    const auto priced = [&](const ModuleLayouts& layouts, LayerCosts::Store store) {
        return LayerCosts(setup, layouts, 0, store).layer(0, 0, shape, PassKind::forward).time;
    };
    const auto in_ring = priced({}, LayerCosts::Store::shared);
    CHECK(priced(copies, LayerCosts::Store::shared) == priced(copies, LayerCosts::Store::own));
    CHECK(in_ring != priced(copies, LayerCosts::Store::own));
}
