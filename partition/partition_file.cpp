// Partition files: written and read back strictly.
#include "pipeweaver/partition/partition_file.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace pipeweaver::partition {

using namespace emulator;
using workloads::Model;
using Writer = nlohmann::ordered_json;

namespace {

std::string sha256_of(const Model& model) { return sha256(workloads::to_json(model)); }

Writer layout_json(const Layout& layout) {
    return {{"tp", layout.tp}, {"pp", layout.pp}, {"cp", layout.cp}, {"ep", layout.ep}};
}

Writer chosen_json(const ChosenOn& chosen) {
    if (!chosen.seeds.empty())
        return {{"dataset", chosen.dataset}, {"seeds", chosen.seeds}, {"microbatches", chosen.microbatches}};
    if (!chosen.files.empty()) return {{"files", chosen.files}};
    return nullptr;
}

ChosenOn chosen_of(const Json& json) {
    ChosenOn chosen;
    if (json.is_null()) return chosen;
    json.only_keys({"dataset", "seeds", "microbatches", "files"});
    if (const auto files = json.find("files"))
        for (const Json& file : files->elements()) chosen.files.push_back(file.text());
    if (!json.find("seeds")) return chosen;
    chosen.dataset = json.at("dataset").text();
    for (const Json& seed : json.at("seeds").elements())
        chosen.seeds.push_back(static_cast<std::uint64_t>(seed.integer()));
    chosen.microbatches = json.at("microbatches").integer(1);
    return chosen;
}

// Reads the modules' stages and puts them together again as chains.
class Reader {
public:
    Reader(const Json& modules, const Setup& setup) : json_(modules), setup_(setup), model_(setup.model) {}

    Partition read() {
        for (const Json& module : json_.elements()) read_module(module);
        for (std::size_t m = 0; m < model_.modules.size(); ++m)
            if (!seen_.contains(m))
                json_.fail(fmt::format("lacks module '{}'; every module of '{}' is needed once", model_.modules[m].name,
                                       model_.name));
        check_stage_numbers();
        check_phases();
        if (!differ(layouts_, setup_.layout)) layouts_.clear();
        Partition partition{"", 1, std::move(chains_), std::move(unit_items_), {}, std::move(layouts_)};
        partition.chunks_per_rank = most_stages_of_a_rank(partition);
        return partition;
    }

private:
    void read_module(const Json& json) {
        json.only_keys({"module", "tp", "copies", "sharing", "chain", "unit_items", "stages"});
        const std::size_t m = module_of(json.at("module"));
        if (json.at("chain").is_null()) return read_in_phases(json, m);
        read_layout(json, m);
        const auto chain = static_cast<std::size_t>(
            json.at("chain").integer(chains_.empty() ? 0 : static_cast<std::int64_t>(chains_.size()) - 1,
                                     static_cast<std::int64_t>(chains_.size())));
        const bool opens = chain == chains_.size();
        if (opens) {
            chains_.emplace_back();
            unit_items_.push_back(0);
        }
        const std::int64_t units = unit_items_of(json, m);
        const ModuleLayout& layout = layouts_[m];
        const std::int64_t fewest = fewest_items(model_, layout);
        if (units > 0 && units < fewest)
            json.at("unit_items")
                .fail(fmt::format("is {}, fewer than the {} copies that whole items are dealt to; allowed are {} and "
                                  "more, 0 (a microbatch at once), or another sharing",
                                  units, layout.copies, fewest));
        if (!opens && (units != 0 || unit_items_.back() != 0))
            json.at("unit_items").fail("is not 0, as it must be where a chain has several modules");
        for (const std::size_t of : {m - 1, m})
            if (!opens && layouts_[of].copies > 1)
                json.at("chain").fail(fmt::format(
                    "is that of several modules, and '{}' has {} copies; a module with copies is a chain of its own",
                    model_.modules[of].name, layouts_[of].copies));
        unit_items_.back() = units;
        Chain& row = chains_.back();
        row.name += (row.name.empty() ? "" : "+") + model_.modules[m].name;
        read_stages(json.at("stages"), m, row);
    }

    std::size_t module_of(const Json& json) {
        const std::string name = json.text();
        std::vector<std::string> names;
        for (std::size_t m = 0; m < model_.modules.size(); ++m) {
            names.push_back(model_.modules[m].name);
            if (names.back() != name) continue;
            if (!seen_.emplace(m, true).second) json.fail(fmt::format("'{}' is there twice", name));
            if (m + 1 != seen_.size())
                json.fail(must_be(name, fmt::format("'{}': all modules in the order of the model",
                                                    model_.modules[seen_.size() - 1].name)));
            return m;
        }
        json.fail(unknown("module", name, names));
    }

    void read_in_phases(const Json& json, std::size_t m) {
        if (const auto why = why_not_dealt(setup_))
            json.at("chain").fail(fmt::format("is null, and '{}' cannot be dealt: {}", model_.modules[m].name, *why));
        if (m >= model_.backbone())
            json.at("chain").fail(
                fmt::format("is null, allowed for encoders alone, which '{}' is not", model_.modules[m].name));
        const ModuleLayout layout = in_phases(setup_.layout);
        json.at("tp").integer(layout.tp, layout.tp);
        json.at("copies").integer(layout.copies, layout.copies);
        json.at("unit_items").integer(1, 1);
        if (!json.at("stages").elements().empty())
            json.at("stages").fail("are there, allowed is []: the module is in no chain");
        layouts_.push_back(layout);
    }

    // Encoders go in phases together: the others' units could begin no earlier.
    void check_phases() const {
        const std::size_t in_phases = emulator::phase_modules(layouts_).size();
        if (in_phases == 0 || in_phases == model_.backbone()) return;
        json_.fail(
            fmt::format("have {} of {} encoders in no chain, allowed are none or all", in_phases, model_.backbone()));
    }

    void read_layout(const Json& json, std::size_t m) {
        ModuleLayout layout{json.at("tp").integer(1), json.at("copies").integer(1)};
        if (const auto sharing = json.find("sharing"))
            layout.sharing = *sharing_named(sharing->one_of({"dealt", "split", "hybrid"}));
        if (const auto why = why_not(layout, model_, m, setup_.layout, "tp"))
            json.at("tp").fail(why->substr(std::string_view("tp: ").size()));
        layouts_.push_back(layout);
    }

    std::int64_t unit_items_of(const Json& json, std::size_t m) const {
        const Json size = json.at("unit_items");
        if (model_.modules[m].unit == workloads::PassUnit::microbatch) return size.integer(0, 0);
        const std::int64_t most = model_.most_items > 0 ? model_.most_items : model_.microbatch_tokens;
        const std::int64_t items = size.integer();
        if (items > most)
            size.fail(fmt::format(
                "is {}, which no microbatch of '{}' fills: it holds {} items at most; allowed are 0 (a microbatch at "
                "once) to {}",
                items, model_.name, most, most));
        return items;
    }

    void read_stages(const Json& json, std::size_t m, Chain& chain) {
        const std::int64_t layers = model_.modules[m].architecture.layers;
        std::int64_t next = 0;
        for (const Json& stage : json.elements()) {
            stage.only_keys({"stage", "rank", "first_layer", "layers"});
            const std::int64_t number = stage.at("stage").integer();
            const auto rank = static_cast<std::uint32_t>(stage.at("rank").integer(0, setup_.layout.pp - 1));
            const std::int64_t first = stage.at("first_layer").integer();
            if (first != next)
                stage.at("first_layer")
                    .fail(must_be(first, fmt::format("{}: every layer of '{}' is needed once, in order", next,
                                                     model_.modules[m].name)));
            if (next == layers)
                stage.fail(fmt::format("is one more than the {} layers of '{}' fill", layers, model_.modules[m].name));
            const std::int64_t count = stage.at("layers").integer(1, layers - next);
            next += count;
            put(stage, number, RankId{rank}, {m, first, count}, chain);
        }
        if (next != layers)
            json.fail(fmt::format("has the layers 0 to {} of '{}', and it has {}: every one is needed", next - 1,
                                  model_.modules[m].name, layers));
    }

    // Stages are numbered chain after chain; two modules of a chain may share the one where they meet.
    void put(const Json& json, std::int64_t number, RankId rank, const LayerRange& part, Chain& chain) {
        if (!chain.stages.empty() && number == stages_ - 1 && chain.stages.back().parts.back().module != part.module) {
            if (chain.stages.back().rank != rank)
                json.at("rank").fail(fmt::format("is {}, and stage {} is on rank {}", index(rank), number,
                                                 index(chain.stages.back().rank)));
            chain.stages.back().parts.push_back(part);
            return;
        }
        if (number != stages_)
            json.at("stage").fail(
                must_be(number, fmt::format("{}: stages are numbered in order, chain after chain", stages_)));
        ++stages_;
        chain.stages.push_back({rank, {part}});
    }

    void check_stage_numbers() const {
        std::vector<char> used(static_cast<std::size_t>(setup_.layout.pp));
        for (const Chain& chain : chains_)
            for (const StageLayers& stage : chain.stages) used[index(stage.rank)] = 1;
        for (std::size_t r = 0; r < used.size(); ++r)
            if (!used[r]) json_.fail(fmt::format("leave rank {} without a stage; every rank needs one", r));
    }

    const Json& json_;
    const Setup& setup_;
    const Model& model_;
    std::map<std::size_t, bool> seen_;
    std::vector<Chain> chains_;
    std::vector<std::int64_t> unit_items_;
    ModuleLayouts layouts_;
    std::int64_t stages_ = 0;
};

std::vector<Recompute> read_modes(const Json& json) {
    std::vector<Recompute> modes;
    for (const Json& mode : json.elements()) {
        const auto known = recompute_named(mode.text());
        if (!known) mode.fail(must_be(mode.text(), one_of(recompute_names()) + " with N of 1 or more"));
        if (std::find(modes.begin(), modes.end(), *known) != modes.end())
            mode.fail(fmt::format("'{}' is there twice", mode.text()));
        modes.push_back(*known);
    }
    if (modes.empty())
        json.fail(fmt::format("is empty; allowed are one or more of {}", fmt::join(recompute_names(), ", ")));
    return modes;
}

void check_model(const Json& root, const Model& model) {
    const std::string name = root.at("model").text();
    if (name != model.name)
        root.at("model").fail(fmt::format("is '{}', asked for is '{}': a partition is of one model", name, model.name));
    if (root.at("model_sha256").text() != sha256_of(model))
        root.at("model_sha256")
            .fail(fmt::format("is of another '{}' than the one asked for: choose the partition anew", name));
}

void check_layout(const Json& json, const Layout& layout) {
    json.only_keys({"tp", "pp", "cp", "ep"});
    const auto check_degree = [&](std::string_view key, std::int64_t asked) {
        const std::int64_t given = json.at(key).integer(1);
        if (given != asked)
            json.at(key).fail(fmt::format("is {}, asked for is {}: a partition is of one layout (--{} {})", given,
                                          asked, key, given));
    };
    check_degree("tp", layout.tp);
    check_degree("pp", layout.pp);
    check_degree("cp", layout.cp);
    check_degree("ep", layout.ep);
}

// "101-105, 108": runs of seeds together.
std::string runs_of(const std::vector<std::uint64_t>& seeds, std::string_view comma) {
    std::string text;
    for (std::size_t i = 0; i < seeds.size();) {
        std::size_t end = i + 1;
        while (end < seeds.size() && seeds[end] == seeds[end - 1] + 1) ++end;
        if (!text.empty()) text += comma;
        text += fmt::format("{}", seeds[i]);
        if (end - i > 1) text += fmt::format("-{}", seeds[end - 1]);
        i = end;
    }
    return text;
}

}  // namespace

std::string ChosenOn::text() const {
    if (!seeds.empty())
        return fmt::format("{}, {} {}", dataset, noun_of(seeds.size() == 1, "seed"), runs_of(seeds, ", "));
    if (!files.empty()) return fmt::format("{}", fmt::join(files, ", "));
    return "the batch itself";
}

std::string ChosenOn::option() const {
    return seeds.empty() ? fmt::format("{}", fmt::join(files, ",")) : runs_of(seeds, ",");
}

std::string to_json(const PartitionFile& file, const Setup& setup) {
    Writer json{{"format", "pipeweaver-partition/1"},  {"name", file.partition.name},
                {"model", setup.model.name},           {"model_sha256", sha256_of(setup.model)},
                {"layout", layout_json(setup.layout)}, {"memory_modes", Writer::array()},
                {"modules", Writer::array()},          {"sample", chosen_json(file.chosen_on)}};
    for (const Recompute mode : file.partition.modes) json["memory_modes"].push_back(name_of(mode));
    for (const std::size_t m : phase_modules(file.partition))
        json["modules"].push_back({{"module", setup.model.modules[m].name},
                                   {"tp", file.partition.layouts[m].tp},
                                   {"copies", file.partition.layouts[m].copies},
                                   {"chain", nullptr},
                                   {"unit_items", 1},
                                   {"stages", Writer::array()}});
    std::int64_t number = 0;
    for (std::size_t c = 0; c < file.partition.chains.size(); ++c) {
        std::map<std::size_t, Writer> stages;
        for (const StageLayers& stage : file.partition.chains[c].stages) {
            for (const LayerRange& part : stage.parts)
                stages[part.module].push_back({{"stage", number},
                                               {"rank", index(stage.rank)},
                                               {"first_layer", part.first},
                                               {"layers", part.count}});
            ++number;
        }
        for (auto& [module, mine] : stages) {
            const ModuleLayout layout = layout_of(file.partition.layouts, module, setup.layout);
            Writer one{{"module", setup.model.modules[module].name}, {"tp", layout.tp}, {"copies", layout.copies}};
            if (layout.copies > 1) one["sharing"] = name_of(layout.sharing);
            one["chain"] = c;
            one["unit_items"] = file.partition.unit_items[c];
            one["stages"] = std::move(mine);
            json["modules"].push_back(std::move(one));
        }
    }
    return json.dump(1) + "\n";
}

PartitionFile parse_partition(const JsonDocument& document, const Setup& setup) {
    document.require_format("pipeweaver-partition", 1);
    const Json root = document.root();
    root.only_keys({"format", "name", "model", "model_sha256", "layout", "memory_modes", "modules", "sample"});
    check_model(root, setup.model);
    check_layout(root.at("layout"), setup.layout);
    PartitionFile file;
    file.is_read = true;
    const Json modules = root.at("modules");
    file.partition = Reader(modules, setup).read();
    file.partition.name = root.at("name").text();
    if (const auto modes = root.find("memory_modes")) file.partition.modes = read_modes(*modes);
    if (const auto sample = root.find("sample")) file.chosen_on = chosen_of(*sample);
    file.partition.notes.push_back(fmt::format("read from {}", document.name()));
    return file;
}

PartitionFile read_partition(const std::filesystem::path& path, const Setup& setup) {
    return parse_partition(JsonDocument::read(path), setup);
}

}  // namespace pipeweaver::partition
