#include "capacity/study/axes.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/anchor.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace pipeweaver::capacity {

namespace {

constexpr std::string_view gpus_axis = "gpus", groups_axis = "groups";
constexpr std::array all_groups_asked{GroupsAsked::shared, GroupsAsked::own, GroupsAsked::either};

struct Axis {
    std::string name;
    std::vector<std::string> values;
};

// What a study says in its own way, or what is of one plan alone.
bool is_the_studys_own(std::string_view option) {
    constexpr std::array<std::string_view, 19> own{
        "layout", "tp",  "pp",       "cp",      "dp",     "ep",     "zero",    "out",    "replicas", "tokens",
        "price",  "now", "deferred", "actions", "layers", "budget", "threads", "robust", "also"};
    return std::find(own.begin(), own.end(), option) != own.end();
}

// The options of `plan` that a study may set.
std::vector<std::string> plan_options() {
    planner::PlanConfiguration of;
    OptionTable table;
    of.plan.workload.add_to(table);
    of.plan.add_to(table);
    of.limits.add_to(table);
    std::vector<std::string> options;
    for (const auto& entry : table.entries())
        if (!is_the_studys_own(entry.name)) options.push_back(entry.name);
    return options;
}

std::string text_of_scalar(const Json& json) {
    if (json.is_string()) return json.text();
    if (json.raw().is_number()) return json.raw().dump();
    json.fail("is no text and no number, allowed is a value as `pipeweaver plan` takes it");
}

// 64, [64, 128], "64-1024" (doubled), {from, to, step}.
std::vector<std::string> gpu_counts(const Json& json) {
    constexpr std::int64_t most = 1'000'000;
    std::vector<std::int64_t> counts;
    if (json.is_array()) {
        for (const Json& one : json.elements()) counts.push_back(one.integer(1, most));
    } else if (json.is_object()) {
        json.only_keys({"from", "to", "step"});
        const std::int64_t from = json.at("from").integer(1, most), to = json.at("to").integer(from, most);
        const std::int64_t step = json.at("step").integer(1, most);
        for (std::int64_t gpus = from; gpus <= to; gpus += step) counts.push_back(gpus);
    } else if (json.is_string()) {
        const std::string text = json.text();
        const auto dash = text.find('-');
        const auto from = integer_in(text.substr(0, dash), 1, most);
        const auto to = dash == std::string::npos ? from : integer_in(text.substr(dash + 1), from.value_or(1), most);
        if (!from || !to) json.fail(must_be(text, "a count, a list of them, 64-1024 (doubled), or from, to and step"));
        for (std::int64_t gpus = *from; gpus <= *to; gpus *= 2) counts.push_back(gpus);
    } else {
        counts.push_back(json.integer(1, most));
    }
    std::vector<std::string> texts;
    texts.reserve(counts.size());
    for (const std::int64_t gpus : counts) texts.push_back(std::to_string(gpus));
    return texts;
}

void require_known(const Json& json, const std::vector<std::string>& known) {
    json.only_keys(std::span<const std::string>(known));
}

GroupsAsked groups_named(std::string_view name) {
    return *std::find_if(all_groups_asked.begin(), all_groups_asked.end(),
                         [&](GroupsAsked one) { return name_of(one) == name; });
}

std::string groups_name(const Json& json) {
    const auto& [shared, own, either] = all_groups_asked;
    return json.one_of({name_of(shared), name_of(own), name_of(either)});
}

// The values of an axis, each once.
Axis read_axis(const std::string& name, const Json& json) {
    Axis axis{name, {}};
    if (name == gpus_axis) {
        axis.values = gpu_counts(json);
    } else {
        const auto text_of_value = name == groups_axis ? groups_name : text_of_scalar;
        if (json.is_array())
            for (const Json& one : json.elements()) axis.values.push_back(text_of_value(one));
        else
            axis.values.push_back(text_of_value(json));
    }
    if (axis.values.empty()) json.fail("has no value, so the study has no point");
    if (std::find(axis.values.begin(), axis.values.end(), "") != axis.values.end())
        json.fail("has an empty value, allowed are values as `pipeweaver plan` takes them");
    auto sorted = axis.values;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        json.fail(fmt::format("has '{}' twice", *twice));
    return axis;
}

// Models and clusters turn slowest, then what a list of axes says, in the order of names.
std::vector<Axis> read_axes(const Json& root) {
    auto known = plan_options();
    known.emplace_back(gpus_axis);
    known.emplace_back(groups_axis);
    const Json axes = root.at("axes");
    require_known(axes, known);
    std::vector<Axis> all;
    for (const auto& [name, json] : axes.members()) all.push_back(read_axis(name, json));
    const auto place = [](const Axis& axis) {
        constexpr std::array<std::string_view, 3> first{"model", "cluster", gpus_axis};
        return std::find(first.begin(), first.end(), axis.name) - first.begin();
    };
    std::stable_sort(all.begin(), all.end(), [&](const Axis& a, const Axis& b) { return place(a) < place(b); });
    const auto plan = root.find("plan");
    if (plan) require_known(*plan, plan_options());
    for (const Axis& axis : all)
        if (plan && plan->find(axis.name))
            root.fail(fmt::format("plan.{0} and axes.{0} contradict each other: allowed is one of the two", axis.name));
    const auto has = [&](std::string_view name) {
        return (plan && plan->find(name)) ||
               std::any_of(all.begin(), all.end(), [&](const Axis& axis) { return axis.name == name; });
    };
    for (const std::string_view name : {std::string_view("model"), std::string_view("cluster"), gpus_axis})
        if (!has(name)) axes.fail(fmt::format("has no `{}`, which every study needs", name));
    return all;
}

// USD of a GPU-hour, by the cluster as the axis names it.
std::optional<std::string> price_for(const Json& root, const std::string& cluster) {
    const auto prices = root.find("prices");
    if (!prices) return std::nullopt;
    const auto found = prices->find(cluster);
    if (!found) return std::nullopt;
    constexpr double most = 10'000, least_usd = 1e-6;
    return pipeweaver::text_of(found->number(least_usd, most));
}

class Cells {
public:
    explicit Cells(const Json& root) : root_(root), axes_(read_axes(root)) {
        if (const auto plan = root.find("plan"))
            for (const auto& [name, json] : plan->members()) fixed_.set(name, text_of_scalar(json));
    }

    std::vector<Cell> all() const {
        std::size_t count = 1;
        for (const Axis& axis : axes_) count *= axis.values.size();
        if (count > most_cells) root_.at("axes").fail(fmt::format("spans {} cells, allowed are {}", count, most_cells));
        std::vector<Cell> cells;
        cells.reserve(count);
        for (std::size_t number = 0; number < count; ++number) cells.push_back(cell(number));
        return cells;
    }

private:
    static constexpr std::size_t most_cells = 100'000;

    Cell cell(std::size_t number) const {
        Cell cell{.number = number, .cluster = {}, .gpus = 0, .machine = {}, .asked = fixed_, .axes = {}, .key = {}};
        std::size_t rest = number;
        std::vector<std::string> values(axes_.size());
        for (std::size_t a = axes_.size(); a-- > 0;) {
            values[a] = axes_[a].values[rest % axes_[a].values.size()];
            rest /= axes_[a].values.size();
        }
        for (std::size_t a = 0; a < axes_.size(); ++a) {
            if (axes_[a].name == gpus_axis)
                cell.gpus = std::stoll(values[a]);
            else if (axes_[a].name == groups_axis)
                cell.groups = groups_named(values[a]);
            else
                cell.asked.set(axes_[a].name, values[a]);
            if (axes_[a].values.size() > 1)
                cell.axes += fmt::format("{}{} {}", cell.axes.empty() ? "" : ", ", axes_[a].name, values[a]);
        }
        cell.cluster = cell.asked.find("cluster")->text;
        if (cell.cluster.find(':') != std::string::npos)
            root_.at("axes").fail("cluster: " + must_be(cell.cluster, "a name or a file; GPUs stand under `gpus`"));
        cell.asked.set("cluster", fmt::format("{}:{}", cell.cluster, cell.gpus));
        cell.machine = workloads::find_cluster(cell.asked.find("cluster")->text);
        if (const auto price = price_for(root_, cell.cluster)) {
            cell.asked.set("price", *price);
            cell.machine.price_per_gpu_hour = std::stod(*price);
        }
        if (const auto tokens = root_.find("tokens")) cell.asked.set("tokens", text_of_scalar(*tokens));
        set_usual(cell.asked);
        return cell;
    }

    // What makes a row's command print the row again.
    void set_usual(OptionValues& asked) const {
        const auto set = [&](std::string_view name, const std::string& text) {
            if (asked.find(name) == nullptr) asked.set(name, text);
        };
        set("packing", "balanced");
        set("max-rounds", "20");
        set("seed", "1");
        // What flags launch has a column of its own: rows are planned with an order.
        const auto* runs = asked.find("target");
        const auto& known = planner::targets();
        if (runs != nullptr && std::any_of(known.begin(), known.end(), [&](const planner::Target& one) {
                return one.option == runs->text && !one.searches;
            }))
            set("also", known.front().option);
        if (asked.find("batch") == nullptr && asked.find("global-batch") == nullptr)
            root_.at("axes").fail("has no `global-batch` and no `batch`: points are compared on the same samples");
    }

    const Json& root_;
    std::vector<Axis> axes_;
    OptionValues fixed_;
};

// A price of no cluster is a typing error.
void require_priced(const Json& prices, const std::vector<Cell>& cells) {
    std::set<std::string> clusters;
    for (const Cell& cell : cells) clusters.insert(cell.cluster);
    for (const auto& [cluster, price] : prices.members())
        if (!clusters.contains(cluster))
            prices.fail(
                fmt::format("'{}' is no cluster of the study, known are {}", cluster, fmt::join(clusters, ", ")));
}

// Those of a cell that rules refuse included; of ones that differ in the microbatches that they share out all.
std::size_t count_points(const Study& study, const Cell& cell) {
    const std::size_t on_groups = cell.groups == GroupsAsked::shared ? 0 : 1;
    if (cell.groups == GroupsAsked::own) return on_groups;
    emulator::Setup setup{cell.job->plan.workload.found_model(), cell.machine, {}, nullptr};
    planner::LayoutRequest request;
    request.setup = &setup;
    request.cp = std::nullopt;
    request.any_ep = request.any_zero = true;
    request.target = cell.job->plan.workload.target;
    request.for_each_replica = true;
    request.microbatches.resize(1);
    request.allows = [&](const planner::LayoutAndZero& as) { return study.layouts.allow(as); };
    return planner::count_layouts(request) + on_groups;
}

// What cells ask for as anchors, each read once. One corrects the cells of its device, and no others ask for it.
class Anchors {
public:
    // Null where the cell has none.
    std::shared_ptr<const planner::Anchor> taken_by(Cell& cell) {
        const auto* asked = cell.asked.find("anchor");
        if (asked == nullptr || asked->text.empty()) return nullptr;
        const auto [known, is_new] = known_.try_emplace(asked->text);
        if (is_new) known->second.anchor = planner::read_anchor(asked->text);
        devices_.insert(cell.machine.device);
        if (known->second.anchor->device == cell.machine.device) {
            known->second.is_taken = true;
            return known->second.anchor;
        }
        cell.asked.erase("anchor");
        return nullptr;
    }

    void require_taken() const {
        for (const auto& [path, one] : known_)
            if (!one.is_taken)
                fail(ErrorKind::input, "anchor: {} is of {}, which no cluster of the study has; allowed are {}", path,
                     one.anchor->device, fmt::join(devices_, ", "));
    }

private:
    struct Known {
        std::shared_ptr<const planner::Anchor> anchor{};
        bool is_taken = false;
    };
    std::map<std::string, Known> known_;
    std::set<std::string> devices_;  // of the cells that ask for one
};

planner::PlanConfiguration job_of(const OptionValues& asked) {
    nlohmann::json options;
    for (const auto& value : asked.all()) options[value.name] = value.text;
    const JsonDocument document("a cell of the study", options.dump());
    planner::PlanConfiguration job;
    job.configure(document.root());
    planner::WorkloadOptions& workload = job.plan.workload;
    workload.layout_as = planner::WorkloadOptions::automatic;
    workload.target = planner::target_called(job.plan.target);
    if (workload.recipe.empty()) workload.recipe = planner::target(workload.target).recipe;
    return job;
}

}  // namespace

std::vector<Cell> cells_of(const Json& root) {
    auto cells = Cells(root).all();
    if (const auto prices = root.find("prices")) require_priced(*prices, cells);
    return cells;
}

std::vector<std::string> files_of(const OptionValues& asked) {
    std::vector<std::string> files;
    constexpr std::array read{"model", "cluster", "recipe", "batch", "costs", "partition", "anchor", "loader"};
    for (const std::string_view name : read) {
        const auto* value = asked.find(name);
        if (value == nullptr) continue;
        std::string path = value->text;
        if (name == "model" && path.starts_with("hf:")) {
            path.erase(0, 3);
            if (std::filesystem::is_directory(path)) path = (std::filesystem::path(path) / "config.json").string();
            for (const std::string_view beside : {"preprocessor_config.json", "processor_config.json"})
                if (const auto file = std::filesystem::path(path).parent_path() / beside;
                    path.ends_with("config.json") && std::filesystem::is_regular_file(file))
                    files.push_back(file.string());
        }
        if (name == "cluster") path.erase(path.rfind(':'));
        std::error_code none;
        if (std::filesystem::is_regular_file(path, none)) files.push_back(path);
    }
    std::sort(files.begin(), files.end());
    return files;
}

void make_jobs(Study& study) {
    std::map<std::string, std::string> wrong;  // by data set; empty: some model of the study reads it
    std::set<std::string> seen;
    Anchors anchors;
    for (Cell& cell : study.cells) {
        auto anchor = anchors.taken_by(cell);
        planner::PlanConfiguration job = job_of(cell.asked);
        job.plan.workload.anchor_read = std::move(anchor);
        cell.job = std::make_shared<const planner::PlanConfiguration>(std::move(job));
        const auto& of = cell.job->plan.workload;
        const std::string& loader = cell.job->plan.batch.loader;
        const std::string microbatch = std::to_string(of.microbatch_tokens.value_or(0)) + "\n" + of.too_long;
        if (!seen.insert(of.model + "\n" + of.recipe + "\n" + of.dataset + "\n" + of.batch + "\n" + loader + "\n" +
                         microbatch)
                 .second)
            continue;
        if (!loader.empty()) (void)loader::find_loader(loader);
        of.check();
        const auto model = of.found_model();
        if (!of.recipe.empty()) (void)emulator::find_recipe(of.recipe);
        if (of.dataset.empty()) continue;
        std::string why_not = workloads::try_draw(of.dataset, model, 1, 0).why_not;
        if (why_not.empty())
            wrong[of.dataset].clear();
        else
            wrong.try_emplace(of.dataset, std::move(why_not));
    }
    anchors.require_taken();
    for (const auto& [dataset, why_not] : wrong)
        if (!why_not.empty()) fail(ErrorKind::input, "{}", why_not);
}

void require_points(const Json& root, const Study& study) {
    std::size_t points = 0;
    for (const Cell& cell : study.cells) points += count_points(study, cell);
    if (points == 0)
        root.fail(root.find("layouts") ? "layouts and axes.gpus contradict each other: no layout has these degrees on "
                                         "these GPUs"
                                       : "axes.gpus: no layout divides these GPUs");
    if (points > study.limit)
        root.fail(fmt::format("expands to {} points, allowed are {}: say `limit: {}` or take fewer values", points,
                              study.limit, points));
}

}  // namespace pipeweaver::capacity
