#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

Sample sample(std::string id, std::int64_t text, std::vector<Item> items = {}) {
    return {.id = std::move(id), .text_tokens = text, .loss_tokens = text, .items = std::move(items)};
}

constexpr Item picture{Modality::image, 169, 2704, 0, false};

std::vector<std::vector<std::size_t>> members(const std::vector<Microbatch>& microbatches) {
    std::vector<std::vector<std::size_t>> all;
    all.reserve(microbatches.size());
    for (const auto& microbatch : microbatches) all.push_back(microbatch.samples);
    return all;
}

std::vector<Sample> random_samples(Random& random) {
    std::vector<Sample> samples;
    for (std::uint64_t i = random.below(60) + 1; i-- > 0;) {
        const auto text = static_cast<std::int64_t>(random.below(random.below(2) == 0 ? 8192 : 500));
        const auto most = std::min<std::int64_t>(48, (8192 - text) / 169);
        const auto images = random.below(static_cast<std::uint64_t>(most) + 1);
        samples.push_back(sample(std::to_string(i), text, std::vector<Item>(images, picture)));
    }
    return samples;
}

// What every packing must satisfy, checked sample by sample.
void check_packing(const std::vector<Sample>& samples, const std::vector<Microbatch>& microbatches, const Model& m) {
    std::vector<int> seen(samples.size());
    for (const auto& microbatch : microbatches) {
        std::int64_t tokens = 0, loss = 0;
        std::vector<std::int64_t> lengths;
        std::size_t next = 0;
        for (const std::size_t i : microbatch.samples) {
            ++seen.at(i);
            tokens += samples[i].tokens();
            loss += samples[i].loss_tokens;
            if (samples[i].tokens() > 0) lengths.push_back(samples[i].tokens());
            for (std::size_t k = 0; k < samples[i].items.size(); ++k, ++next) {
                REQUIRE(next < microbatch.items.size());
                CHECK(microbatch.items[next].sample == i);
                CHECK(microbatch.items[next].item == k);
                CHECK(microbatch.items[next].size == samples[i].items[k]);
            }
        }
        CHECK(next == microbatch.items.size());
        CHECK(microbatch.tokens == tokens);
        CHECK(microbatch.loss_tokens == loss);
        CHECK(microbatch.lengths == lengths);
        CHECK(tokens <= m.microbatch_tokens);
        CHECK(static_cast<std::int64_t>(microbatch.items.size()) <= m.most_items);
        CHECK(!microbatch.samples.empty());
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

bool in_their_order(const std::vector<Microbatch>& microbatches) {
    return std::all_of(microbatches.begin(), microbatches.end(),
                       [](const Microbatch& one) { return std::is_sorted(one.samples.begin(), one.samples.end()); });
}

// By its definition, bin by bin; of samples of as many tokens those with more images first.
std::vector<std::vector<std::size_t>> first_fit_decreasing(const std::vector<Sample>& samples, const Model& m) {
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            return std::tuple(-samples[i].tokens(), -static_cast<int>(samples[i].items.size()), samples[i].id);
        };
        return key(a) < key(b);
    });
    std::vector<std::vector<std::size_t>> bins;
    std::vector<std::pair<std::int64_t, std::size_t>> filled;  // tokens, items
    for (const std::size_t i : order) {
        std::size_t b = 0;
        while (b < bins.size() && (filled[b].first + samples[i].tokens() > m.microbatch_tokens ||
                                   filled[b].second + samples[i].items.size() > static_cast<std::size_t>(m.most_items)))
            ++b;
        if (b == bins.size()) {
            bins.emplace_back();
            filled.emplace_back();
        }
        bins[b].push_back(i);
        filled[b].first += samples[i].tokens();
        filled[b].second += samples[i].items.size();
    }
    return bins;
}

// What each microbatch is of each module's mean: images, and the backbone's FLOPs.
struct Parts {
    std::vector<double> images, backbone;
};

Parts parts_of(const std::vector<Sample>& samples, const std::vector<Microbatch>& microbatches, const Model& m) {
    const Architecture& llm = m.modules[m.backbone()].architecture;
    const double count = static_cast<double>(microbatches.size());
    Parts parts;
    double images = 0, backbone = 0;
    for (const Microbatch& one : microbatches) {
        double flops = 0;
        for (const std::size_t i : one.samples) {
            const std::array lengths{samples[i].tokens()};
            for (std::int64_t layer = 0; layer < llm.layers; ++layer)
                flops += layer_flops(llm, layer, static_cast<double>(lengths[0]), attention_pairs(llm, lengths));
            flops += head_flops(llm, static_cast<double>(lengths[0]));
        }
        parts.images.push_back(static_cast<double>(one.items.size()));
        parts.backbone.push_back(flops);
        images += parts.images.back() / count;
        backbone += flops / count;
    }
    for (double& one : parts.images)
        if (images > 0) one /= images;
    for (double& one : parts.backbone) one /= backbone;
    return parts;
}

// Squares of what they differ from the mean.
double unevenness(const Parts& parts) {
    double squares = 0;
    for (const double one : parts.images) squares += (one - 1) * (one - 1);
    for (const double one : parts.backbone) squares += (one - 1) * (one - 1);
    return squares;
}

// The ids of each microbatch, in their order.
std::vector<std::vector<std::string>> ids(const std::vector<Sample>& samples,
                                          const std::vector<Microbatch>& microbatches) {
    std::vector<std::vector<std::string>> all;
    for (const Microbatch& one : microbatches) {
        auto& mine = all.emplace_back();
        for (const std::size_t i : one.samples) mine.push_back(samples[i].id);
    }
    return all;
}

void shuffle(std::vector<Sample>& samples, Random& random) {
    for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
}

std::size_t most_items(const std::vector<Microbatch>& microbatches) {
    std::size_t most = 0;
    for (const auto& one : microbatches) most = std::max(most, one.items.size());
    return most;
}

std::int64_t most_tokens(const std::vector<Microbatch>& microbatches) {
    std::int64_t most = 0;
    for (const auto& one : microbatches) most = std::max(most, one.tokens);
    return most;
}

// FLOPs of both modules of dip-vlm-m, every microbatch as large as the largest.
double padded_flops(const std::vector<Microbatch>& microbatches) {
    const Model m = model("dip-vlm-m");
    double of_token = 0, of_image = 0;
    for (const Module& module : m.modules) {
        const bool by_items = module.unit == PassUnit::items;
        const std::int64_t length = by_items ? picture.patches : m.microbatch_tokens;
        const std::array lengths{length};
        double flops = head_flops(module.architecture, static_cast<double>(length));
        for (std::int64_t layer = 0; layer < module.architecture.layers; ++layer)
            flops += layer_flops(module.architecture, layer, static_cast<double>(length),
                                 attention_pairs(module.architecture, lengths));
        (by_items ? of_image : of_token) = by_items ? flops : flops / static_cast<double>(length);
    }
    return static_cast<double>(microbatches.size()) * (of_token * static_cast<double>(most_tokens(microbatches)) +
                                                       of_image * static_cast<double>(most_items(microbatches)));
}

}  // namespace

TEST_CASE("packing in given order closes a microbatch when the next sample does not fit") {
    const Model m = model("dip-vlm-s");  // 8192 tokens
    const std::vector samples{sample("a", 5000), sample("b", 3192), sample("c", 1), sample("d", 8192), sample("e", 7)};

    CHECK(members(pack(samples, m)) == std::vector<std::vector<std::size_t>>{{0, 1}, {2}, {3}, {4}});
}

TEST_CASE("first-fit decreasing puts long samples first and fills holes") {
    const Model m = model("dip-vlm-s");
    const std::vector samples{sample("a", 3000), sample("b", 5000), sample("c", 5000), sample("d", 3000),
                              sample("e", 192)};

    // By length b, c, a, d, e: b opens 0, c opens 1, a joins b, d joins c, e fits into 0 (5000 + 3000 + 192).
    CHECK(members(pack(samples, m, Packing::first_fit_decreasing)) ==
          std::vector<std::vector<std::size_t>>{{1, 0, 4}, {2, 3}});
}

TEST_CASE("balanced packing evens out what every module does, padded packing what shapes are padded to") {
    const Model m = model("dip-vlm-m");
    std::vector<Sample> samples;
    for (int i = 0; i < 16; ++i) {
        samples.push_back(sample("images" + std::to_string(i), 40, std::vector<Item>(12, picture)));
        samples.push_back(sample("text" + std::to_string(i), 2000));
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.items.size() > b.items.size(); });
    const auto given = pack(samples, m);
    CHECK(most_items(given) == 36);  // three samples of images, then four of text
    for (const Packing packing : {Packing::balanced, Packing::padded}) {
        const auto even = pack(samples, m, packing);
        check_packing(samples, even, m);
        CHECK(most_items(even) == 24);  // two of images each
        CHECK(even.size() == (packing == Packing::padded ? 8 : 11));
    }
}

TEST_CASE("one large sample makes padded packing take fewer microbatches, all as large") {
    const Model m = model("dip-vlm-m");
    std::vector<Sample> samples{sample("album", 100, std::vector<Item>(40, picture))};
    for (int i = 0; i < 16; ++i) samples.push_back(sample(std::to_string(i), i < 8 ? 4300 : 3800));
    const auto balanced = pack(samples, m, Packing::balanced), padded = pack(samples, m, Packing::padded);
    CHECK(padded.size() < balanced.size());
    CHECK(padded_flops(padded) < padded_flops(balanced));
}

TEST_CASE("a hundred thousand samples are packed with one per cent to spare at most") {
    const Model m = model("dip-vlm-s");
    std::vector<Sample> samples;
    std::int64_t tokens = 0;
    for (std::uint64_t number = 0; samples.size() < 100'000; ++number) {
        samples.push_back(draw("vlm-mix", m, 1, number));
        tokens += samples.back().tokens();
    }
    const auto microbatches = pack(samples, m, Packing::first_fit_decreasing);
    CHECK(static_cast<double>(tokens) >=
          0.99 * static_cast<double>(m.microbatch_tokens) * static_cast<double>(microbatches.size()));
    const auto padded = pack(samples, m, Packing::padded);
    check_packing(samples, padded, m);
    CHECK(padded_flops(padded) < padded_flops(pack(samples, m)));
    const auto balanced = pack(samples, m, Packing::balanced);
    check_packing(samples, balanced, m);
    CHECK(balanced.size() == microbatches.size() + (microbatches.size() + 9) / 10);
    CHECK(unevenness(parts_of(samples, balanced, m)) < 0.05 * static_cast<double>(balanced.size()));
}

TEST_CASE("a microbatch holds at most 48 images, however short the text") {
    const Model m = model("dip-vlm-s");
    std::vector<Sample> samples;
    samples.reserve(49);
    for (int i = 0; i < 49; ++i) samples.push_back(sample(std::to_string(i), 1, {picture}));

    const auto microbatches = pack(samples, m);

    REQUIRE(microbatches.size() == 2);
    CHECK(microbatches[0].items.size() == 48);
    CHECK(microbatches[0].tokens == 48 * 170);
}

TEST_CASE("clips of a microbatch last 16 seconds at most, 8 of them") {
    const Model m = model("dip-t2v-s");
    const auto clip = [](double seconds) { return Item{Modality::video, 0, 1344, seconds, true}; };
    std::vector samples{sample("a", 20, {clip(9.6)}), sample("b", 20, {clip(6.4)}), sample("c", 20, {clip(0.001)})};
    CHECK(members(pack(samples, m)) == std::vector<std::vector<std::size_t>>{{0, 1}, {2}});

    samples.assign(9, sample("x", 20, {clip(1)}));
    CHECK(pack(samples, m).front().samples.size() == 8);
}

TEST_CASE("a vision encoder alone attends inside each image") {
    const Model m = model("step3-vit-5b");
    const Item image{Modality::image, 2704, 2704, 0, false};
    const auto microbatches = pack({sample("a", 0, {image, image}), sample("b", 0, {image})}, m);

    REQUIRE(microbatches.size() == 1);
    CHECK(microbatches[0].lengths == std::vector<std::int64_t>{2704, 2704, 2704});
    CHECK(microbatches[0].tokens == 3 * 2704);
}

TEST_CASE("a sample that no microbatch can hold is named") {
    const Model vlm = model("dip-vlm-s"), t2v = model("dip-t2v-s");
    CHECK_THROWS_WITH_AS(pack({sample("long", 8193)}, vlm),
                         "sample 'long' has 8193 tokens, a microbatch of 'dip-vlm-s' holds 8192 (microbatch_tokens of "
                         "its model file, or --microbatch-tokens; --too-long own packs it alone)",
                         Error);
    CHECK_THROWS_WITH_AS(
        pack({sample("many", 0, std::vector<Item>(49, {Modality::image, 1, 16, 0, false}))}, vlm),
        "sample 'many' has 49 items, a microbatch of 'dip-vlm-s' holds 48 (most_items of its model file)", Error);
    CHECK_THROWS_WITH_AS(pack({sample("film", 1, {{Modality::video, 0, 1344, 16.5, true}})}, t2v),
                         "sample 'film' has 16.5 s of video, a microbatch of 'dip-t2v-s' holds 16 s "
                         "(most_video_seconds of its model file)",
                         Error);
}

TEST_CASE("an error names what says how many tokens a microbatch holds") {
    const auto refused = [](std::optional<std::int64_t> of_file, const char* who) {
        Model m = model("dip-vlm-s");
        m.microbatch_tokens_of_file = of_file;
        CHECK_THROWS_WITH_AS(
            pack({sample("long", 8193)}, m),
            doctest::Contains((std::string("holds 8192 (") + who + "; --too-long own packs it alone)").c_str()), Error);
    };
    refused(std::nullopt, "microbatch_tokens of its model file, or --microbatch-tokens");
    refused(4096, "--microbatch-tokens");
    refused(0, "--microbatch-tokens or its default");
}

TEST_CASE("an item larger than a microbatch is named with its number") {
    CHECK_THROWS_WITH_AS(
        pack({sample("a", 7, {picture, {Modality::image, 9000, 36000, 0, false}})}, model("dip-vlm-s")),
        "sample 'a' has an item (image, number 1) of 9000 tokens, a microbatch of 'dip-vlm-s' holds 8192 "
        "(microbatch_tokens of its model file, or --microbatch-tokens; --too-long own packs it alone)",
        Error);
}

TEST_CASE("a sample too long has a microbatch of its own in every packing, and the others are packed as without it") {
    Model m = model("dip-vlm-m");
    m.too_long = TooLong::own;
    const auto is_long = [](const Sample& one) { return one.tokens() > 8192 || one.items.size() > 48; };
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto usual = random_samples(random);
        auto samples = usual;
        const auto at = [&] { return samples.begin() + static_cast<std::ptrdiff_t>(random.below(samples.size() + 1)); };
        samples.insert(at(), sample("long", 9000 + static_cast<std::int64_t>(random.below(5'000))));
        samples.insert(at(), sample("longer", 20'000, {picture}));
        samples.insert(at(), sample("many", 0, std::vector<Item>(49, {Modality::image, 0, 16, 0, true})));
        for (const Packing packing : packings()) {
            CAPTURE(name_of(packing));
            const auto microbatches = pack(samples, m, packing);
            std::vector<int> seen(samples.size());
            std::size_t alone = 0;
            for (const auto& one : microbatches) {
                for (const std::size_t i : one.samples) ++seen[i];
                const bool any = std::any_of(one.samples.begin(), one.samples.end(),
                                             [&](std::size_t i) { return is_long(samples[i]); });
                alone += any ? 1 : 0;
                CHECK((!any || one.samples.size() == 1));
                CHECK((any || (one.tokens <= 8192 && one.items.size() <= 48)));
            }
            CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
            CHECK(alone == 3);
            if (packing == Packing::first_fit_decreasing)
                CHECK(microbatches.size() == 3 + pack(usual, m, packing).size());
        }
    }
    CHECK(microbatch_of({0}, {sample("a", 9000)}, m).tokens == 9000);
    CHECK(why_no_microbatch({0, 1}, {sample("a", 9000), sample("b", 1)}, m));
    m.too_long = TooLong::drop;
    CHECK_THROWS_AS(static_cast<void>(pack({sample("a", 9000)}, m)), Error);
}

TEST_CASE("any batch is packed whole, within the limits and in order") {
    const Model m = model("dip-vlm-m");
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto samples = random_samples(random);
        const auto given = pack(samples, m);
        check_packing(samples, given, m);
        const auto first_fit = pack(samples, m, Packing::first_fit_decreasing);
        check_packing(samples, first_fit, m);
        CHECK(members(first_fit) == first_fit_decreasing(samples, m));
        const auto balanced = pack(samples, m, Packing::balanced), padded = pack(samples, m, Packing::padded);
        check_packing(samples, balanced, m);
        check_packing(samples, padded, m);
        CHECK(balanced.size() == std::min(samples.size(), first_fit.size() + (first_fit.size() + 9) / 10));
        CHECK(padded.size() <= given.size());
        CHECK(padded_flops(padded) <= padded_flops(given));
        CHECK(in_their_order(given));
        CHECK(in_their_order(padded));

        // In given order the microbatches follow one another, and none could have taken the next sample.
        std::size_t next = 0;
        for (std::size_t b = 0; b < given.size(); ++b) {
            for (const std::size_t i : given[b].samples) CHECK(i == next++);
            if (b + 1 == given.size()) break;
            const Sample& after = samples[next];
            CHECK((given[b].tokens + after.tokens() > m.microbatch_tokens ||
                   given[b].items.size() + after.items.size() > 48));
        }
    }
}

TEST_CASE("balanced and first-fit microbatches are the same for the same samples in any order") {
    const Model m = model("dip-vlm-m");
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        auto samples = random_samples(random);
        for (int i = 0; i < 5; ++i) samples.push_back(sample("like" + std::to_string(i), 700, {picture, picture}));
        const auto first_fit = ids(samples, pack(samples, m, Packing::first_fit_decreasing));
        const auto balanced = ids(samples, pack(samples, m, Packing::balanced, {2, 4}));
        for (int order = 0; order < 10; ++order) {
            shuffle(samples, random);
            CHECK(ids(samples, pack(samples, m, Packing::first_fit_decreasing)) == first_fit);
            CHECK(ids(samples, pack(samples, m, Packing::balanced, {2, 4})) == balanced);
        }
    }
}

TEST_CASE("samples that differ in one thing alone are told apart, whatever their order") {
    const Model m = model("dip-vlm-m");
    const auto alike = [](std::int64_t text, std::int64_t loss, std::int64_t deferred, std::vector<Item> items) {
        return Sample{"same", text, loss, std::move(items), deferred};
    };
    const Item far{Modality::image, 169, 2700, 0, false}, clip{Modality::video, 169, 2704, 1, false};
    std::vector samples{alike(831, 9, 0, {picture}),         alike(1000, 9, 0, {}),   alike(831, 8, 0, {picture}),
                        alike(831, 9, 1, {picture}),         alike(831, 9, 0, {far}), alike(831, 9, 0, {clip}),
                        alike(662, 9, 0, {picture, picture})};
    const auto packed = [&] {
        std::vector<Sample> all;
        for (const Microbatch& one : pack(samples, m, Packing::balanced))
            for (const std::size_t i : one.samples) all.push_back(samples[i]);
        return all;
    };
    const auto first = packed();
    Random random(3);
    for (int order = 0; order < 20; ++order) {
        shuffle(samples, random);
        CHECK(packed() == first);
    }
}

TEST_CASE("balanced microbatches are as even as whole samples can be, the smallest at both ends") {
    const Model m = model("dip-vlm-m");
    Random random(5);
    std::vector<Sample> samples;
    samples.reserve(300);
    for (int i = 0; i < 300; ++i)
        samples.push_back(sample(std::to_string(i), 100 + static_cast<std::int64_t>(random.below(900)),
                                 std::vector<Item>(random.below(4), picture)));
    const auto balanced = pack(samples, m, Packing::balanced);
    check_packing(samples, balanced, m);
    const Parts parts = parts_of(samples, balanced, m);
    std::size_t images = 0;
    for (const Sample& one : samples) images += one.items.size();
    for (const Microbatch& one : balanced) {  // the mean, rounded
        CHECK(one.items.size() >= images / balanced.size());
        CHECK(one.items.size() <= images / balanced.size() + 1);
    }
    for (const double one : parts.backbone) CHECK(one == doctest::Approx(1).epsilon(0.01));

    const auto largest = std::max_element(parts.backbone.begin(), parts.backbone.end());
    CHECK(std::is_sorted(parts.backbone.begin(), largest));
    CHECK(std::is_sorted(parts.backbone.rbegin(), std::make_reverse_iterator(largest)));
    CHECK(largest != parts.backbone.begin());
    CHECK(largest != parts.backbone.end() - 1);
}

TEST_CASE("no sample can change places with another, or move, and make balanced microbatches more even") {
    const Model m = model("dip-vlm-m");
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const auto samples = draw_batch("vlm-mix", m, seed, 4).samples;
        const auto packed = members(pack(samples, m, Packing::balanced));
        const auto evaluated = [&](const std::vector<std::vector<std::size_t>>& bins) {
            std::vector<Microbatch> all;
            for (const auto& bin : bins) {
                Microbatch& one = all.emplace_back();
                one.samples = bin;
                for (const std::size_t i : bin) {
                    one.tokens += samples[i].tokens();
                    for (const Item& item : samples[i].items) one.items.push_back({i, 0, item, 0});
                }
                if (one.tokens > m.microbatch_tokens || one.items.size() > 48) return 1e9;
            }
            return unevenness(parts_of(samples, all, m));
        };
        const double now = evaluated(packed);
        const double least = now - 1e-5;  // less than that is not worth an exchange
        for (std::size_t a = 0; a < packed.size(); ++a)
            for (std::size_t b = 0; b < packed.size(); ++b)
                for (std::size_t i = 0; a != b && i < packed[a].size(); ++i) {
                    auto bins = packed;
                    bins[b].push_back(packed[a][i]);
                    bins[a].erase(bins[a].begin() + static_cast<std::ptrdiff_t>(i));
                    CHECK(evaluated(bins) >= least);
                    for (std::size_t k = 0; a < b && k < packed[b].size(); ++k) {
                        auto exchanged = packed;
                        std::swap(exchanged[a][i], exchanged[b][k]);
                        CHECK(evaluated(exchanged) >= least);
                    }
                }
    }
}

TEST_CASE("balanced microbatches are a multiple of what runs them, and drawn ones as many as were asked for") {
    const Model m = model("dip-vlm-s");
    std::vector<Sample> samples;
    samples.reserve(80);
    for (int i = 0; i < 80; ++i) samples.push_back(sample(std::to_string(i), 2048));
    const auto count = [&](const Pipelines& pipelines) {
        return pack(samples, m, Packing::balanced, pipelines).size();
    };
    CHECK(pack(samples, m, Packing::first_fit_decreasing).size() == 20);
    CHECK(count({}) == 22);
    CHECK(count({1, 4}) == 24);
    CHECK(count({2, 4}) == 24);
    CHECK(count({1, 15}) == 30);
    CHECK(count({1, 16}) == 22);  // 32 were too many
    CHECK(count({5, 16}) == 25);
    CHECK(count({48, 4}) == 48);  // each replica needs one
    CHECK(count({100, 4}) == 80);
    samples.resize(1);
    CHECK(count({2, 4}) == 1);
    samples.clear();
    CHECK(count({2, 4}) == 0);

    for (const char* dataset : {"vlm-mix", "laion-2b"})
        for (std::uint64_t seed = 1; seed <= 15; ++seed) {
            CAPTURE(seed);
            const Model qwen = find_model("qwen2.5-vl-32b");
            CHECK(draw_batch(dataset, qwen, seed, 16, Packing::balanced).microbatches.size() == 16);
        }
}

TEST_CASE("for equal numbers the fullest microbatches are parted in two, in their order") {
    const Model m = model("dip-vlm-s");
    std::vector<Sample> samples;
    for (const std::int64_t text : {8000, 3000, 1000, 4000, 8000, 2000, 2100, 2200})
        samples.push_back(sample(std::to_string(samples.size()), text));
    using Members = std::vector<std::vector<std::size_t>>;
    CHECK(members(pack(samples, m)) == Members{{0}, {1, 2, 3}, {4}, {5, 6, 7}});
    CHECK(members(pack(samples, m, Packing::given, {3, 1, true})) == Members{{0}, {1, 2}, {3}, {4}, {5, 6}, {7}});
    CHECK(members(pack(samples, m, Packing::given, {4, 1, true})) == Members{{0}, {1, 2, 3}, {4}, {5, 6, 7}});
    // Nothing is parted where that is not enough for all.
    CHECK(members(pack(samples, m, Packing::given, {9, 1, true})) == Members{{0}, {1, 2, 3}, {4}, {5, 6, 7}});
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
        for (const Packing packing : packings())
            for (const std::int64_t replicas : {1, 2, 3, 7, 16}) {
                const auto drawn = draw_samples("vlm-mix", m, seed, 96, packing, {replicas, 2, true});
                CHECK(drawn.microbatches.size() % static_cast<std::size_t>(replicas) == 0);
                CHECK(members(drawn.microbatches) == members(pack(drawn.samples, m, packing, {replicas, 2, true})));
                check_packing(drawn.samples, drawn.microbatches, m);
                const auto counted = draw_batch("vlm-mix", m, seed, 8, packing, {replicas, 2, true});
                CHECK(counted.microbatches.size() % static_cast<std::size_t>(replicas) == 0);
                CHECK(members(counted.microbatches) ==
                      members(pack(counted.samples, m, packing, {replicas, 2, true}, 8)));
            }
}

TEST_CASE("what is left for a later step comes back: none is lost, doubled, or left too often, and padding is less") {
    const Model model = find_model("dip-vlm-m");
    Random random(7);
    for (const std::int64_t most : {1, 3, 8}) {
        CAPTURE(most);
        std::map<std::string, int> seen;
        std::vector<Sample> pending;
        std::size_t left = 0;
        const int steps = 40;
        for (int step = 0; step < steps; ++step) {
            auto batch = draw_batch("vlm-mix", model, 100 + static_cast<std::uint64_t>(step), 6).samples;
            for (Sample& one : batch) one.id += "-" + std::to_string(step);
            if (random.below(5) == 0)
                batch.push_back(sample("large-" + std::to_string(step), 100, std::vector<Item>(40, picture)));
            std::vector<Sample> all = pending;
            all.insert(all.end(), batch.begin(), batch.end());
            const Deferral parts = defer(all, model, most);
            REQUIRE(parts.now.size() + parts.later.size() == all.size());
            REQUIRE(!parts.now.empty());
            std::size_t now = 0, later = 0;
            for (const Sample& one : all) {  // both in their order
                const bool taken = now < parts.now.size() && parts.now[now].id == one.id;
                if (taken)
                    CHECK(parts.now[now++] == one);
                else
                    CHECK(parts.later.at(later++).id == one.id);
            }
            for (const Sample& one : parts.now) ++seen[one.id];
            for (const Sample& one : parts.later) CHECK(one.deferred <= most);
            left += parts.later.size();
            pending = parts.later;
            check_packing(parts.now, pack(parts.now, model, Packing::padded), model);
        }
        CHECK(left > 0);
        for (const Sample& one : pending) CHECK(seen.count(one.id) == 0);
        for (const auto& [id, times] : seen) CHECK(times == 1);
        // At the end all that is pending goes as soon as it is due.
        for (std::int64_t step = 0; step < most && !pending.empty(); ++step)
            pending = defer(pending, model, most).later;
        CHECK(defer(pending, model, most).later.empty());
    }
}

TEST_CASE("a batch that gains nothing by leaving samples is taken whole") {
    const Model model = find_model("dip-vlm-m");
    std::vector<Sample> even(20, sample("s", 1000, {picture, picture}));
    CHECK(defer(even, model, 3).later.empty());
    CHECK(defer({}, model, 3).now.empty());
    std::vector<Sample> one = even;
    for (int i = 0; i < 100; ++i) one.push_back(sample("t", 1000, {picture, picture}));
    one.push_back(sample("large", 100, std::vector<Item>(40, picture)));
    const auto parts = defer(one, model, 3);
    REQUIRE(parts.later.size() == 1);
    CHECK(parts.later.front().id == "large");
    CHECK(parts.later.front().deferred == 1);
    one.back().deferred = 3;
    CHECK(defer(one, model, 3).later.empty());
}
