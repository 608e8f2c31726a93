// pipeweaver faults: how many GPUs of a network make up groups when nodes are faulty, and what its interconnect costs.
#include "pipeweaver/capacity/faults.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/optional_figures.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

namespace {

using capacity::FaultCase;
using capacity::FaultTrials;
using capacity::GroupCounts;
using workloads::Network;
using workloads::NetworkKind;

// "2%" as 0.02; the option's name is put in front of what is wrong.
double parse_share(const std::string& text, double low_percent, double high_percent) {
    if (text == "0" && low_percent == 0) return 0;
    if (text.ends_with('%'))
        if (const auto percent = number_in(text.substr(0, text.size() - 1), low_percent, high_percent))
            return *percent / 100;
    fail(ErrorKind::input, "{}",
         must_be(text, fmt::format("a percentage from {}% to {}%, like 2%", low_percent, high_percent)));
}

// A line of the table.
struct FaultRow {
    FaultCase asked;
    std::optional<std::string> why_not{};
    std::optional<GroupCounts> groups{};
    FaultTrials tried{};
    std::optional<std::int64_t> to_buy{};

    double tp() const { return static_cast<double>(asked.tp); }
    double gpus() const { return static_cast<double>(asked.gpus); }
    double usable() const { return groups ? tp() * groups->mean() : tried.usable.mean; }
    std::int64_t usable_without_faults() const {
        const std::vector<char> none(static_cast<std::size_t>(asked.gpus / asked.network.node));
        return asked.tp * capacity::groups_with(asked, none);
    }
    double free() const { return gpus() * (1 - asked.faulty); }
    std::optional<double> wasted() const {
        if (!groups) return {};
        const double difference = free() - usable();  // of sums: below their rounding it is none
        return std::abs(difference) < 1e-9 * gpus() ? 0 : difference;
    }
    std::optional<double> usd_of_a_usable() const {
        if (!asked.network.usd_per_gpu || usable() <= 0) return {};
        return *asked.network.usd_per_gpu * gpus() / usable();
    }
    std::int64_t job(double confidence) const {
        return groups ? asked.tp * groups->at(confidence) : tried.at(confidence);
    }
};

struct Faults {
    explicit Faults(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("What is asked");
        options.integer("gpus", gpus, 1, 1'000'000, "GPUs of the cluster");
        options.require();
        options.text("network", network, "NETWORK,...",
                     "of `pipeweaver list networks`, or files as `show` prints them (default: all)");
        options.parsed("faulty", "PERCENT", "of the nodes that are faulty at any time (default: 2%)",
                       [this](const std::string& text) { faulty = parse_share(text, 0, 100); });
        options.text("tp", tp, "N,...", "GPUs of a tensor parallel group (default: 8,16,32)");
        options.integer("node", node, 1, 10'000, "GPUs that fail together (default: each network's)");
        options.integer("job", job, 1, 1'000'000,
                        "GPUs of a job: how many to buy so that they are there (default: --gpus)");
        options.parsed("confidence", "PERCENT", "with which a job's GPUs are there (default: 99%)",
                       [this](const std::string& text) { confidence = parse_share(text, 50, 99.9999); });
        options.group("Trials");
        options.integer("trials", trials, 100, 1'000'000, "draws of faults beside the closed form (default: 10000)");
        options.integer("seed", seed, 0, 1'000'000'000, "of the draws (default: 1)");
        options.integer("threads", threads, 1, 1024, "for the draws; the answer is the same on any (default: 1)");
    }

    void run() {
        options.apply();
        for (const Network& one : chosen_networks())
            for (const std::string& size : parts_of(tp)) rows.push_back(row_of(one, size));
        const bool none_fits = std::all_of(rows.begin(), rows.end(), [](const FaultRow& row) { return row.why_not; });
        if (none_fits) fail(ErrorKind::input, "--tp: {}", *rows.back().why_not);
        if (console.json)
            print_json(as_json());
        else
            print_text("{}", table() + arithmetic());
    }

private:
    std::vector<Network> chosen_networks() const {
        std::vector<Network> chosen;
        if (network == "all") {
            const auto all = workloads::networks();
            chosen.assign(all.begin(), all.end());
        } else {
            for (const std::string& name : parts_of(network)) chosen.push_back(workloads::find_network(name));
        }
        for (Network& one : chosen) {
            if (node == 0) continue;
            if (one.domain % node != 0)
                fail(ErrorKind::input, "--node: {} does not divide the {} GPUs of a domain of {}", node, one.domain,
                     one.name);
            one.node = node;
        }
        return chosen;
    }

    FaultRow row_of(const Network& of, const std::string& size) const {
        FaultRow row{.asked = {of, gpus, faulty, parse_integer("--tp", size, 1, gpus)}};
        row.why_not = capacity::why_no_group(of, row.asked.tp);
        if (row.why_not) return row;
        row.groups = capacity::usable_groups(row.asked);
        row.tried = capacity::try_faults(row.asked, trials, static_cast<std::uint64_t>(seed),
                                         on_threads(static_cast<int>(threads)));
        row.to_buy = capacity::gpus_for_job(row.asked, job_gpus(), confidence);
        return row;
    }

    std::int64_t job_gpus() const { return job > 0 ? job : gpus; }

    std::string table() const {
        TextTable table({{"network", true, 10},
                         {"TP", false, 4},
                         {"usable, no", false, 10},
                         {"usable", false, 9},
                         {"wasted", false, 9},
                         {"95 % interval", false, 19},
                         {"job at", false, 10},
                         {"to buy for", false, 12},
                         {"USD of", false, 8},
                         {"USD of a", false, 10}},
                        1);
        table.add({"", "", "faults", "GPUs", "GPUs", "of trials", fmt::format("{:.6g} %", 100 * confidence),
                   fmt::format("{} GPUs", job_gpus()), "a GPU", "usable GPU"});
        for (const FaultRow& row : rows) table.add(texts_of(row));
        return fmt::format(
            "{} GPUs; of the nodes {:.6g} % are faulty, so that {:.1f} GPUs are down on average; {} trials, seed "
            "{}\n\n{}",
            gpus, 100 * faulty, faulty * static_cast<double>(gpus), trials, seed, table.text());
    }

    std::vector<std::string> texts_of(const FaultRow& row) const {
        const std::string tp_text = std::to_string(row.asked.tp);
        if (row.why_not) return {row.asked.network.name, tp_text, *row.why_not};
        const auto& [mean, half] = row.tried.wasted;
        return {row.asked.network.name,
                tp_text,
                std::to_string(row.usable_without_faults()),
                fmt::format("{:.1f}", row.usable()),
                or_dash(row.wasted(), 2),
                fmt::format("{:.2f} to {:.2f}", mean - half, mean + half),
                std::to_string(row.job(confidence)),
                row.to_buy ? std::to_string(*row.to_buy) : "-",
                or_dash(row.asked.network.usd_per_gpu, 0),
                or_dash(row.usd_of_a_usable(), 0)};
    }

    // How the first size of each network was counted.
    std::string arithmetic() const {
        std::string text =
            "\nwasted: healthy, but in no group, on average; USD: of the interconnect, - where it is not known\n";
        std::string said;
        for (const FaultRow& row : rows) {
            const Network& of = row.asked.network;
            if (row.why_not || of.name == said) continue;
            said = of.name;
            text += fmt::format("{}, TP {}: {}\n  {}\n", of.name, row.asked.tp, counted(row), of.source);
        }
        return text;
    }

    std::string counted(const FaultRow& row) const {
        const Network& of = row.asked.network;
        if (of.kind == NetworkKind::ring)
            return fmt::format("one ring of {} nodes of {}, cut by {} faulty ones in a row; {}", gpus / of.node,
                               of.node, of.hops,
                               row.groups ? "a walk around it sums all patterns of faults"
                                          : "too many states for a closed form: trials alone");
        const std::int64_t whole = gpus / of.domain, rest = gpus % of.domain;
        const double in_whole = capacity::usable_of_domain(row.asked, of.domain);
        const double in_rest = rest > 0 ? capacity::usable_of_domain(row.asked, rest) : 0;
        return fmt::format(
            "{} of {}{}, nodes of {}: {}\n  {} x {:.3f}{} = {:.1f} usable; {} - {:.1f} down - {:.1f} = {:.1f} wasted",
            plural(whole, "domain"), of.domain, rest > 0 ? fmt::format(" and one of {}", rest) : "", of.node,
            of_a_domain(row.asked), whole, in_whole, rest > 0 ? fmt::format(" + {:.3f}", in_rest) : "", row.usable(),
            gpus, row.gpus() - row.free(), row.usable(), row.wasted().value_or(0));
    }

    static std::string of_a_domain(const FaultCase& asked) {
        const Network& of = asked.network;
        if (of.kind == NetworkKind::cube && asked.tp > of.node)
            return fmt::format("{} blocks of {}, each free with {:.6g}^{}", of.domain / asked.tp, asked.tp,
                               1 - asked.faulty, asked.tp / of.node);
        if (of.domain == of.node)
            return fmt::format("each free with {:.6g}, and then {} groups", 1 - asked.faulty, of.domain / asked.tp);
        return fmt::format("of {} nodes k are free with C({}, k) {:.6g}^k {:.6g}^({} - k), floor({} k / {}) groups",
                           of.domain / of.node, of.domain / of.node, 1 - asked.faulty, asked.faulty,
                           of.domain / of.node, of.node, asked.tp);
    }

    nlohmann::ordered_json as_json() const {
        nlohmann::ordered_json json{{"gpus", gpus},           {"faulty", faulty},
                                    {"job_gpus", job_gpus()}, {"confidence", confidence},
                                    {"trials", trials},       {"seed", seed}};
        for (const FaultRow& row : rows) json["rows"].push_back(row_json(row));
        return json;
    }

    nlohmann::ordered_json row_json(const FaultRow& row) const {
        nlohmann::ordered_json json{{"network", row.asked.network.name}, {"tp", row.asked.tp}};
        if (row.why_not) {
            json["why_not"] = *row.why_not;
            return json;
        }
        const auto interval = [](const capacity::TriedMean& of) {
            return nlohmann::ordered_json{of.mean - of.half_width, of.mean + of.half_width};
        };
        json["closed_form"] = row.groups.has_value();
        json["usable_gpus_without_faults"] = row.usable_without_faults();
        json["down_gpus"] = row.gpus() - row.free();
        json["usable_gpus"] = row.usable();
        json["wasted_gpus"] = row.wasted().value_or(row.tried.wasted.mean);
        json["usable_gpus_by_trials"] = interval(row.tried.usable);
        json["wasted_gpus_by_trials"] = interval(row.tried.wasted);
        json["job_gpus_at_confidence"] = row.job(confidence);
        json["gpus_to_buy"] = or_null(row.to_buy);
        json["usd_per_gpu"] = or_null(row.asked.network.usd_per_gpu);
        json["usd_per_usable_gpu"] = or_null(row.usd_of_a_usable());
        json["source"] = row.asked.network.source;
        return json;
    }

    Options options;
    Console console;
    std::int64_t gpus = 0, node = 0, job = 0, trials = 10'000, seed = 1, threads = 1;
    std::string network = "all", tp = "8,16,32";
    double faulty = 0.02, confidence = 0.99;
    std::vector<FaultRow> rows;
};

}  // namespace

void add_faults(CLI::App& program) {
    add_command<Faults>(
        program, "faults", "GPUs that faulty nodes waste, by network and tensor parallel size",
        {.synopsis = "--gpus N [--network NETWORK,...] [--faulty PERCENT] [--tp N,...] [OPTION...]",
         .description =
             "A tensor parallel group lies inside a high-bandwidth domain: a machine of 8 GPUs, a rack of 72, a cube, "
             "a piece of a ring. Where nodes are faulty, some healthy GPUs make up no group and are wasted. Prints how "
             "many, in closed form and by drawn faults, how many GPUs a job can count on, how many to buy for a job, "
             "and what the interconnect costs for a GPU that is of use (InfinitePOD, arXiv 2502.03885).",
         .examples =
             {{"NVL72 or HGX at 2 % faulty nodes",
               "pipeweaver faults --gpus 1024 --network dgx-8,nvl-72 --faulty 2% --tp 8,16,32"},
              {"Machines that lose single GPUs, for a job of 900",
               "pipeweaver faults --gpus 1024 --network dgx-8,nvl-72,ring-k3 --node 1 --faulty 0.5% --job 900"}},
         .see_also = {"pipeweaver list networks", "docs/studies/nvl72-or-hgx.md"}});
}

}  // namespace pipeweaver::apps
