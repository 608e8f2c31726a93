// Which layouts modules may have, as they are asked for, tried, written to files and refused.
#include "pipeweaver/partition/asked_layouts.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::partition;
using emulator::ModuleLayout;
using emulator::ModuleLayouts;
using emulator::Sharing;
using Writer = nlohmann::ordered_json;

namespace {

// What an error says.
std::string said(const std::function<void()>& run) {
    try {
        run();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "nothing";
}

// The small model with as many more encoders as are named.
emulator::Setup with_encoders(const emulator::Layout& layout, const std::vector<std::string>& names,
                              std::int64_t heads = 8) {
    auto setup = testing::small_setup(layout);
    workloads::Module ear = setup.model.modules.front();
    ear.modalities = {workloads::Modality::audio};
    for (const std::string& name : names) {
        ear.name = name;
        setup.model.modules.insert(setup.model.modules.end() - 1, ear);
    }
    setup.model.edges.clear();
    for (std::size_t m = 0; m <= names.size(); ++m) {
        setup.model.modules[m].architecture.heads = heads;
        setup.model.edges.push_back({m, names.size() + 1, 4, 1024, 2048});
    }
    return setup;
}

}  // namespace

TEST_CASE("layouts of modules are parsed as they are asked for") {
    const auto setup = with_encoders({.tp = 4, .pp = 2}, {"ear"});
    const auto parse = [&](const std::string& text) { return parse_module_tp(text, setup); };
    CHECK(parse("auto") == AskedLayouts(3));
    CHECK(parse("vit=1") == AskedLayouts{ModuleLayout{1, 4, Sharing::hybrid}, {}, {}});
    CHECK(parse("vit=auto,ear=2:split") == AskedLayouts{{}, ModuleLayout{2, 2, Sharing::split}, {}});
    CHECK(parse("ear=1:dealt,vit=4,llm=4") ==
          AskedLayouts{ModuleLayout{4, 1}, ModuleLayout{1, 4, Sharing::dealt}, ModuleLayout{4, 1}});
    CHECK(parse("vit=4:split") == AskedLayouts{ModuleLayout{4, 1}, {}, {}});  // one copy shares with nobody
    CHECK_FALSE(asks_for_copies(parse("vit=4,ear=auto")));
    CHECK(asks_for_copies(parse("vit=4,ear=2")));
    // Six heads are not exchanged among four GPUs: unsaid, whole items are dealt.
    const auto six = with_encoders({.tp = 4, .pp = 2}, {}, 6);
    CHECK(parse_module_tp("vit=1", six) == AskedLayouts{ModuleLayout{1, 4, Sharing::dealt}, {}});
    // Beside context parallelism tp of the job is copies, and all GPUs of a rank are one.
    const auto context = with_encoders({.tp = 2, .pp = 2, .cp = 2}, {});
    CHECK(parse_module_tp("vit=2", context) == AskedLayouts{ModuleLayout{2, 2, Sharing::hybrid}, {}});
    CHECK(parse_module_tp("vit=4", context) == AskedLayouts{ModuleLayout{4, 1, Sharing::dealt}, {}});
}

TEST_CASE("layouts of modules that cannot be are refused with those that can") {
    const auto setup = with_encoders({.tp = 4, .pp = 2}, {"ear"}, 6);
    const std::vector<std::pair<std::string, std::string>> cases{
        {"vut=1", "--module-tp: unknown module 'vut'; did you mean 'vit'?"},
        {"vit", "--module-tp: is 'vit', must be auto or MODULE=TP, like vit=1,audio=2:split"},
        {"vit=1,vit=2", "--module-tp: names 'vit' twice"},
        {"vit=auto,vit=2", "--module-tp: names 'vit' twice"},
        {"vit=two", "--module-tp vit=two: is 'two', must be auto or a whole number from 1 to 4, the GPUs of a rank"},
        {"vit=8", "--module-tp vit=8: is '8', must be auto or a whole number from 1 to 4, the GPUs of a rank"},
        {"vit=0", "--module-tp vit=0: is '0', must be"},
        {"vit=", "--module-tp vit=: is '', must be"},
        {"vit=1:halves", "--module-tp vit=1:halves: 'halves' is no way to share, allowed are dealt, split and hybrid"},
        {"vit=3",
         "--module-tp vit=3: tp 3 x 1 copy of 'vit' are not the 4 GPUs of a rank; allowed with 'dealt' are "
         "1, 2"},
        {"vit=2:split",
         "--module-tp vit=2:split: tp 2 x 2 copies does not divide the 6 heads and 4096 feed-forward "
         "columns of 'vit'; none is allowed with 'split', with 'dealt' 1, 2"},
        {"llm=1", "--module-tp llm=1: 'llm' takes whole microbatches and has the tp of the job, 4"},
    };
    for (const auto& one : cases) {
        const std::string found = said([&] { static_cast<void>(parse_module_tp(one.first, setup)); });
        CHECK_MESSAGE(found.find(one.second) != std::string::npos, found, " lacks ", one.second);
    }
}

TEST_CASE("a job tries each module in each layout, or all in the same where that is much") {
    const auto tried = [](const emulator::Setup& setup, const std::string& text = "auto") {
        return layouts_to_try(setup, parse_module_tp(text, setup));
    };
    const auto two = with_encoders({.tp = 8, .pp = 1}, {"ear"});
    const auto all = tried(two);
    REQUIRE(all.size() == 16);
    CHECK_FALSE(emulator::differ(all.front(), two.layout));
    CHECK(layouts_to_try(two, {}) == all);
    CHECK(std::find(all.begin(), all.end(), ModuleLayouts{{1, 8, Sharing::hybrid}, {4, 2, Sharing::hybrid}, {8, 1}}) !=
          all.end());
    for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) CHECK(all[a] != all[b]);

    // Five layouts of each of two, four of each of three: 25 and 64, of which those with one degree are left.
    const auto sixteen = tried(with_encoders({.tp = 16, .pp = 1}, {"ear"}, 16));
    const auto three = tried(with_encoders({.tp = 8, .pp = 1}, {"ear", "touch"}));
    CHECK(sixteen.size() == 5);
    CHECK(three.size() == 4);
    for (const auto& found : {sixteen, three})
        for (const ModuleLayouts& one : found) CHECK(one[0] == one[1]);

    // What is asked for is not chosen.
    const auto asked = tried(two, "ear=2:split");
    CHECK(asked.size() == 4);
    for (const ModuleLayouts& one : asked) CHECK(one[1] == ModuleLayout{2, 4, Sharing::split});
    CHECK(tried(two, "vit=8,ear=8") == std::vector<ModuleLayouts>{ModuleLayouts(3, ModuleLayout{8, 1})});
}

TEST_CASE("layouts of modules go with partitions that have a chain for each") {
    const testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1}, {5, 2});
    const auto asked = parse_module_tp("vit=1", setup);
    const auto cut = [&](const std::string& name, const AskedLayouts& layouts) {
        return cut_as_asked(setup, setup.microbatches, {&partitioner(name), 1}, layouts);
    };
    const std::string refused =
        "--module-tp: goes with partitions in which each module is a chain of its own (dip, modules), and '";
    for (const std::string name : {"balanced", "megatron", "uniform", "first-stage", "three-phase"}) {
        CHECK(said([&] { static_cast<void>(cut(name, asked)); }) == refused + name + "' is none");
        CHECK(said([&] { static_cast<void>(partitions_for_job(setup, setup.microbatches, name, asked)); }) ==
              refused + name + "' is none");
        if (name == "three-phase") continue;  // below
        CHECK(cut(name, parse_module_tp("vit=2", setup)).layouts == cut(name, {}).layouts);
    }
    for (const std::string name : {"dip", "modules"}) {
        CHECK(cut(name, asked).layouts == ModuleLayouts{{1, 2, Sharing::hybrid}, {2, 1}});
        for (const Partition& one : partitions_for_job(setup, setup.microbatches, name, asked)) {
            CHECK(one.name == name);
            CHECK(one.layouts == ModuleLayouts{{1, 2, Sharing::hybrid}, {2, 1}});
        }
    }
    // Unasked both are offered, and phases; asked for neither is another.
    const auto copies_of = [&](const AskedLayouts& layouts) {
        std::vector<std::int64_t> copies;
        for (const Partition& one : partitions_for_job(setup, setup.microbatches, {}, layouts))
            copies.push_back(emulator::layout_of(one.layouts, 0, setup.layout).copies);
        std::sort(copies.begin(), copies.end());
        copies.erase(std::unique(copies.begin(), copies.end()), copies.end());
        return copies;
    };
    CHECK(copies_of({}) == std::vector<std::int64_t>{1, 2, 4});
    CHECK(copies_of(asked) == std::vector<std::int64_t>{2});
    CHECK(copies_of(parse_module_tp("vit=2", setup)) == std::vector<std::int64_t>{1});
}

namespace {

// Files of partitions with copies.
struct WithCopies {
    testing::SmallWorkload setup{{.tp = 4, .pp = 2, .dp = 1}, {5, 0, 2, 9}};

    std::string file(const std::string& text, const std::string& name = "modules") const {
        const auto cut = cut_as_asked(setup, setup.microbatches, {&partitioner(name), 0}, parse_module_tp(text, setup));
        return to_json({cut, {}}, setup);
    }
    PartitionFile read(const std::string& text) const {
        return parse_partition(JsonDocument("part.json", text), setup);
    }
    std::string refused(const std::function<void(Writer& module)>& change, const std::string& text) const {
        Writer json = Writer::parse(file(text));
        change(json["modules"][0]);
        return said([&] { static_cast<void>(read(json.dump())); });
    }
};

}  // namespace

TEST_CASE("a partition file gives copies and their sharing back") {
    const WithCopies with;
    for (const std::string name : {"dip", "modules"})
        for (const std::string text : {"vit=1:dealt", "vit=1:split", "vit=2:hybrid", "vit=2:dealt", "vit=4"}) {
            CAPTURE(text);
            const std::string file = with.file(text, name);
            const auto asked = parse_module_tp(text, with.setup)[0];
            const auto read = with.read(file).partition;
            CHECK(emulator::layout_of(read.layouts, 0, with.setup.layout) == asked);
            CHECK(read.layouts.empty() == (text == "vit=4"));
            CHECK(to_json({read, {}}, with.setup) == file);
            const Writer first = Writer::parse(file)["modules"][0];
            CHECK(first.contains("sharing") == (asked->copies > 1));
        }
    Writer json = Writer::parse(with.file("vit=1:dealt"));
    json["modules"][0].erase("sharing");
    CHECK(with.read(json.dump()).partition.layouts.front() == ModuleLayout{1, 4, Sharing::dealt});
}

TEST_CASE("units that a job is offered are none that a file may not have") {
    // An image of the small model is efficient alone; dealt to four copies, four are.
    const WithCopies with;
    const auto asked = parse_module_tp("vit=1:dealt", with.setup);
    const auto offered = partitions_for_job(with.setup, with.setup.microbatches, "modules", asked);
    REQUIRE(!offered.empty());
    for (const Partition& one : offered) {
        CHECK(one.unit_items.front() >= 4);
        CHECK(with.read(to_json({one, {}}, with.setup)).partition.unit_items == one.unit_items);
    }
    // Where no microbatch holds as many as there are copies, as many as it holds.
    auto model = with.setup.model;
    CHECK(fewest_items(model, {1, 4, Sharing::dealt}) == 4);
    CHECK(fewest_items(model, {1, 4, Sharing::split}) == 1);
    model.most_items = 3;
    CHECK(fewest_items(model, {1, 4, Sharing::dealt}) == 3);
}

TEST_CASE("a partition file with copies that cannot be is refused") {
    const WithCopies with;
    CHECK(with.refused([](Writer& vit) { vit["copies"] = 2; }, "vit=1:dealt") ==
          "part.json: modules[0].tp: tp 1 x 2 copies of 'vit' are not the 4 GPUs of a rank; allowed with 'dealt' are "
          "1, 2, 4");
    CHECK(with.refused([](Writer& vit) { vit["sharing"] = "both"; }, "vit=1:dealt").find("modules[0].sharing: ") !=
          std::string::npos);
    CHECK(with.refused([](Writer& vit) { vit["unit_items"] = 3; }, "vit=1:dealt") ==
          "part.json: modules[0].unit_items: is 3, fewer than the 4 copies that whole items are dealt to; allowed are "
          "4 and more, 0 (a microbatch at once), or another sharing");
    CHECK(with.refused([](Writer& vit) { vit["unit_items"] = 3; }, "vit=1:split") == "nothing");
    // In a chain with llm.
    Writer json =
        Writer::parse(to_json({partitioner("balanced").make(with.setup, with.setup.microbatches, 1), {}}, with.setup));
    json["modules"][0]["tp"] = 1;
    json["modules"][0]["copies"] = 4;
    CHECK(said([&] { static_cast<void>(with.read(json.dump())); }) ==
          "part.json: modules[1].chain: is that of several modules, and 'vit' has 4 copies; a module with copies is a "
          "chain of its own");
}

TEST_CASE("a module whose layout is asked for is in a chain") {
    const testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1});
    const auto one_tp = parse_module_tp("vit=2", setup);
    for (const auto& cut :
         {std::function(
              [&] { static_cast<void>(partitions_for_job(setup, setup.microbatches, "three-phase", one_tp)); }),
          std::function([&] {
              static_cast<void>(cut_as_asked(setup, setup.microbatches, {&partitioner("three-phase"), 1}, one_tp));
          })})
        CHECK(said(cut) ==
              "--module-tp: names a module that 'three-phase' has in phases, on all GPUs of the replica; allowed are "
              "modules in chains");
    CHECK(!partitions_for_job(setup, setup.microbatches, {}, one_tp).empty());
}

TEST_CASE("of one GPU a replica, too, an encoder in phases stays there when its partition is read back") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 1, .dp = 2});
    const auto cut = setup.cut("three-phase");
    const auto text = to_json({cut, {}}, setup);
    CHECK(phase_modules(parse_partition(JsonDocument("part.json", text), setup).partition) ==
          std::vector<std::size_t>{0});
}
