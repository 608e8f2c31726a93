// pipeweaver list, pipeweaver show: what the program knows.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/launch/hazards.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/network.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace pipeweaver::apps {

namespace {

struct Listed {
    std::string name;
    std::string about;
};
using Listing = std::vector<Listed>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The letters that a model's name begins with: "qwen" of "qwen2.5-vl-7b".
std::string family_of(const std::string& name) {
    const auto end = std::find_if(name.begin(), name.end(), [](char c) { return is_digit(c) || c == '-' || c == '.'; });
    return {name.begin(), end};
}

// The number that begins at `at`, which is moved behind it. Names have few digits.
std::uint64_t number_at(const std::string& name, std::size_t& at) {
    std::uint64_t number = 0;
    for (; at < name.size() && is_digit(name[at]); ++at)
        number = 10 * number + static_cast<std::uint64_t>(name[at] - '0');
    return number;
}

// Families together; numbers by their size: "qwen3-8b" is before "qwen3-32b".
bool before(const std::string& a, const std::string& b) {
    if (const auto of_a = family_of(a), of_b = family_of(b); of_a != of_b) return of_a < of_b;
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            const std::uint64_t in_a = number_at(a, i), in_b = number_at(b, j);
            if (in_a != in_b) return in_a < in_b;
        } else if (a[i] != b[j]) {
            return a[i] < b[j];
        } else {
            ++i, ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

// By family.
Listing models() {
    Listing rows;
    for (const auto& name : workloads::model_names()) {
        const auto model = workloads::model(name);
        const auto about = joined(model.modules, " + ", [](const auto& one) { return one.architecture.name; });
        rows.push_back({name, fmt::format("{} ({})", about, model.confidence)});
    }
    for (const auto& refused : workloads::refused()) rows.push_back({refused.name, "not available: " + refused.reason});
    std::stable_sort(rows.begin(), rows.end(), [](const Listed& a, const Listed& b) { return before(a.name, b.name); });
    return rows;
}

Listing clusters() {
    Listing rows;
    for (const auto& c : workloads::clusters())
        rows.push_back({c.name, fmt::format("{} a node of {}, {} GB/s between nodes, {}", c.gpus_per_node, c.device,
                                            c.network.bytes_per_second / 1'000'000'000, c.source)});
    return rows;
}

Listing devices() {
    Listing rows;
    for (const auto& d : workloads::devices())
        rows.push_back({d.name, fmt::format("{}, {:.0f} TFLOP/s bf16, {}; also {}", human(d.memory),
                                            d.bf16_flops * 1e-12, d.source, fmt::join(d.aliases, ", "))});
    return rows;
}

Listing networks() {
    Listing rows;
    for (const auto& n : workloads::networks()) {
        const auto size = n.kind == workloads::NetworkKind::ring ? fmt::format("{} hops, one domain", n.hops)
                                                                 : fmt::format("domains of {}", n.domain);
        const auto usd = n.usd_per_gpu ? fmt::format("{:.2f} USD a GPU", *n.usd_per_gpu) : std::string("cost unknown");
        rows.push_back({n.name, fmt::format("{}, {}, nodes of {}, {}; {}; also {}", name_of(n.kind), size, n.node, usd,
                                            n.source, fmt::join(n.aliases, ", "))});
    }
    return rows;
}

Listing datasets() {
    Listing rows;
    for (const auto& d : workloads::datasets())
        rows.push_back({d.name, fmt::format("{}{}", d.assumed ? "assumed shape: " : "", d.about)});
    return rows;
}

template <class T>
Listing named(const std::vector<T>& all) {
    Listing rows;
    for (const auto& one : all) rows.push_back({one.name, one.about});
    return rows;
}

// With the measured runs that each rests on.
Listing recipes() {
    Listing rows;
    for (const auto& recipe : emulator::recipes()) {
        const std::string runs =
            joined(recipe.runs, ", ", [](const auto& one) { return fmt::format("{} of {}", one.second, one.first); });
        rows.push_back({recipe.name, fmt::format("{} ({})", recipe.about, runs.empty() ? "no run" : "runs: " + runs)});
    }
    return rows;
}

// Of frameworks, as `check` holds launches against them.
Listing rules() {
    Listing rows;
    for (const auto& rule : launch::rule_texts()) {
        const std::string version = rule.versions.empty() ? "" : fmt::format("@{}", rule.versions);
        rows.push_back({fmt::format("{}/{}{}", rule.framework, rule.id, version),
                        fmt::format("{} ({}: {})", rule.says, name_of(rule.phase), rule.source)});
    }
    return rows;
}

Listing hazards() {
    Listing rows;
    for (const auto& hazard : launch::hazard_texts())
        rows.push_back(
            {fmt::format("{}/{}", hazard.framework, hazard.id), fmt::format("{} ({})", hazard.says, hazard.source)});
    return rows;
}

struct Kind {
    std::string name, about;
    Listing (*rows)();
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {"models", "for --model; show MODEL prints one to edit", models},
        {"clusters", "for --cluster, as NAME:GPUS", clusters},
        {"recipes", "how frameworks train: for --recipe", recipes},
        {"devices", "GPUs whose costs are known: for --device", devices},
        {"networks", "that join GPUs, by domain: for --network", networks},
        {"datasets", "size distributions that batches are drawn from: for --dataset", datasets},
        {"strategies", "ways to search for a schedule: for --strategy", [] { return named(search::strategies()); }},
        {"policies", "known schedules: for --policy", [] { return named(search::policies()); }},
        {"targets", "what runs a plan: for --target", [] { return named(emit::targets()); }},
        {"rules", "what frameworks ask of a launch: check holds it against them", rules},
        {"hazards", "what goes wrong in launches that are allowed: check warns of them", hazards},
    };
    return all;
}

std::vector<std::string> kind_names() {
    std::vector<std::string> names;
    for (const Kind& kind : kinds()) names.push_back(kind.name);
    return names;
}

// Of no kind: the kinds.
Listing rows_of(const std::string& what) {
    if (what.empty()) return named(kinds());
    for (const Kind& kind : kinds())
        if (kind.name == what) return kind.rows();
    fail(ErrorKind::input, "list: {}", unknown("kind", what, kind_names()));
}

void print(const Listing& rows, bool json) {
    if (json) {
        auto list = nlohmann::ordered_json::array();
        for (const Listed& row : rows) list.push_back({{"name", row.name}, {"about", row.about}});
        print_json(list);
        return;
    }
    std::size_t width = 0;
    for (const Listed& row : rows) width = std::max(width, row.name.size());
    for (const Listed& row : rows) fmt::print("{:<{}}  {}\n", row.name, width, row.about);
}

// A model's file; a Hugging Face configuration is one without the prefix, too.
std::string shown_file(const std::string& name) {
    const JsonDocument document = JsonDocument::read(name);
    const Json root = document.root();
    const bool configuration =
        root.is_object() && !root.find("format") && (root.find("model_type") || root.find("_class_name"));
    return to_json(configuration ? workloads::find_model("hf:" + name) : workloads::parse_model(document));
}

std::string shown(const std::string& name) {
    if (name.starts_with("hf:")) return to_json(workloads::find_model(name));
    std::error_code none;
    if (std::filesystem::exists(std::filesystem::path(name) / "config.json", none) ||
        std::filesystem::exists(std::filesystem::path(name) / "transformer" / "config.json", none))
        return to_json(workloads::find_model("hf:" + name));
    const std::string called = workloads::model_called(name);
    if (names_a_document(name) && (called.empty() || std::filesystem::exists(name, none))) return shown_file(name);
    if (!called.empty()) return to_json(workloads::model(called));
    std::vector<std::string> known = workloads::model_names();
    std::string found;
    const auto look = [&](const auto& all) {
        for (const auto& one : all) {
            if (one.name == name && found.empty()) found = to_json(one);
            known.push_back(one.name);
        }
    };
    look(workloads::clusters());
    look(workloads::networks());
    look(emulator::recipes());
    if (found.empty()) fail(ErrorKind::input, "show: {}", unknown("name", name, known));
    return found;
}

struct List {
    explicit List(CLI::App& app) {
        add_operand(app, "kind", what, fmt::format("{}", fmt::join(kind_names(), "|")),
                    fmt::format("what to list, by default these kinds: {}", fmt::join(kind_names(), ", ")));
        add_flag(app, "json", json, "answer in JSON", "Output");
    }

    void run() const { print(rows_of(what), json); }

    std::string what;
    bool json = false;
};

struct Show {
    explicit Show(CLI::App& app) {
        add_required_operand(app, "name", name, "NAME",
                             "a model, a file or folder of one (hf:CONFIG.json), a cluster, a network, or a recipe");
    }

    // What is refused begins a file all the same.
    void run() const {
        fmt::print("{}", workloads::begun_model(name));
        fmt::print("{}", shown(name));
    }

    std::string name;
};

}  // namespace

void add_list(CLI::App& program) {
    add_command<List>(
        program, "list",
        "what is known: models, clusters, devices, networks, datasets, strategies, policies, targets, rules",
        {.synopsis = fmt::format("[{}] [--json]", fmt::join(kind_names(), "|")),
         .description = "Prints the names that other commands take, a line each, with what they are and "
                        "where their numbers come from; without KIND what kinds there are.",
         .examples = {{"Models that ship with the program", "pipeweaver list models"},
                      {"Known schedules, for a program to read", "pipeweaver list policies --json"}},
         .see_also = {"pipeweaver show", "pipeweaver plan"}});
}

void add_show(CLI::App& program) {
    add_command<Show>(
        program, "show", "print a model, cluster or network as a file to edit",
        {.synopsis = "NAME",
         .description =
             "Prints what the program knows under a name as a file that --model, --cluster or --network "
             "takes, to be edited. It may be rewritten as YAML. Of a Hugging Face configuration whose kind is not "
             "read, what could be read is printed beside the error: finish it, and take out not_read.",
         .examples = {{"A model to edit", "pipeweaver show dip-vlm-m > my-model.json"},
                      {"A cluster to edit", "pipeweaver show h100-sxm > my-cluster.json"},
                      {"A Hugging Face configuration as a model file",
                       "pipeweaver show hf:examples/qwen2.5-vl-7b.json > my-vlm.json"}},
         .see_also = {"pipeweaver list", "pipeweaver plan", "docs/your-own-model.md", "workloads/README.md"}});
}

}  // namespace pipeweaver::apps
