#include "pipeweaver/measured/own_run.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace pipeweaver::measured {

using emulator::CriticalPart;
using emulator::MemoryKind;
using emulator::OperatorClass;
using emulator::PassCost;
using emulator::RankMemory;
using emulator::RankTime;
using emulator::ReplicaEmulation;
using emulator::Stream;
using emulator::streams;
using emulator::TimeShares;

namespace {

// What waits of the streams of a GPU are called; compute is no wait.
constexpr std::array<std::string_view, streams> stream_words{"compute",
                                                             "tensor-parallel communication",
                                                             "context- and expert-parallel communication",
                                                             "data-parallel communication",
                                                             "copies to and from the host",
                                                             "the host, which launches kernels"};

// A CriticalPart's kind in words: products, attention and what else runs on the compute stream are one.
std::string words_of(const CriticalPart& part) {
    for (std::size_t s = 1; s < streams; ++s)
        if (part.what == name_of(static_cast<Stream>(s))) return std::string(stream_words.at(s));
    if (part.what == "transfer") return "transfers between ranks";
    if (part.what == "gradients") return "gradient reduction after the last pass";
    if (part.what == "optimizer") return "optimizer";
    return "compute";
}

void add_part(std::vector<OwnPart>& parts, std::string what, const std::string& module, std::int64_t amount) {
    if (amount <= 0) return;
    const auto known = std::find_if(parts.begin(), parts.end(),
                                    [&](const OwnPart& one) { return one.what == what && one.module == module; });
    if (known != parts.end())
        known->predicted += amount;
    else
        parts.push_back({std::move(what), module, amount, {}});
}

// Sorts the parts, and says of each by how much it would have to differ for all of the difference.
void explain(std::vector<OwnPart>& parts, std::int64_t difference) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const OwnPart& a, const OwnPart& b) { return a.predicted > b.predicted; });
    for (OwnPart& part : parts)
        if (const std::int64_t needed = part.predicted + difference; needed >= 0)
            part.times = static_cast<double>(needed) / static_cast<double>(part.predicted);
}

std::vector<RankShare> rank_shares(const std::vector<RankTime>& time) {
    std::vector<RankShare> shares;
    const auto add = [&](std::string_view what, const auto& value) {
        Duration sum{};
        for (const RankTime& rank : time) sum += value(rank);
        if (sum > Duration{}) shares.push_back({std::string(what), sum / static_cast<std::int64_t>(time.size())});
    };
    add("compute", [](const RankTime& rank) { return rank.compute; });
    for (std::size_t s = 1; s < streams; ++s)
        add(stream_words.at(s), [s](const RankTime& rank) { return rank.exposed[s]; });
    add("bubble", [](const RankTime& rank) { return rank.bubble; });
    add("gradient reduction after the last pass", [](const RankTime& rank) { return rank.gradients; });
    add("optimizer", [](const RankTime& rank) { return rank.optimizer; });
    return shares;
}

std::vector<Support> support_of(const TimeShares& shares) {
    std::vector<Support> support;
    for (std::size_t b = PassCost::bases; b-- > 0;) {
        const auto first = static_cast<std::ptrdiff_t>(support.size());
        for (std::size_t kind = 0; kind < emulator::operator_classes; ++kind)
            if (shares.by[kind][b] > 0)
                support.push_back(
                    {static_cast<OperatorClass>(kind), static_cast<costdb::Basis>(b), shares.by[kind][b]});
        std::stable_sort(support.begin() + first, support.end(),
                         [](const Support& x, const Support& y) { return x.share > y.share; });
    }
    return support;
}

// The memory of the fullest GPU, by what was measured.
const RankMemory& fullest(const planner::Emulation& emulation, MemoryKind kind, std::int64_t gpus) {
    const RankMemory* most = &emulation.replicas.front().memory.front();
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (const RankMemory& rank : replica.memory)
            if (peak_of(rank, kind, gpus) > peak_of(*most, kind, gpus)) most = &rank;
    return *most;
}

void add_memory(OwnRunReport& report, const RankMemory& rank) {
    add_part(report.memory, "weights", {}, rank.fixed.weights.count);
    add_part(report.memory, "gradients", {}, rank.fixed.gradients.count);
    add_part(report.memory, "optimizer state", {}, rank.fixed.optimizer.count);
    add_part(report.memory, "buffers", {}, (rank.fixed.workspace + rank.fixed.buffers).count);
    add_part(report.memory, "activations", {}, rank.activations.count);
    add_part(report.memory, "transient", {}, rank.transient.count);
    explain(report.memory, report.measured_peak ? (*report.measured_peak - report.peak).count : 0);
    if (!report.measured_peak)
        for (OwnPart& part : report.memory) part.times.reset();
}

}  // namespace

double error_of(std::int64_t predicted, std::int64_t measured) {
    return static_cast<double>(predicted) / static_cast<double>(measured) - 1;
}

OwnRunReport own_run(const planner::EmulationRequest& request, const planner::Emulation& emulation,
                     const OwnRun& measured) {
    OwnRunReport report;
    const ReplicaEmulation& slowest = emulation.replicas[emulation.slowest];
    report.predicted = emulation.step;
    report.measured = measured.step;
    for (const CriticalPart& part : slowest.critical)
        add_part(report.parts, words_of(part), part.module, part.time.count());
    explain(report.parts, (report.measured - report.predicted).count());
    report.ranks = rank_shares(slowest.time);
    report.support = support_of(emulation.shares);
    const std::int64_t gpus = request.job.setup->layout.gpus();
    const RankMemory& rank = fullest(emulation, measured.memory_kind, gpus);
    report.memory_kind = measured.memory_kind;
    report.peak = peak_of(rank, measured.memory_kind, gpus);
    report.measured_peak = measured.memory;
    add_memory(report, rank);
    return report;
}

}  // namespace pipeweaver::measured
