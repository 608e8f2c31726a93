#include "emit/plan/rung_steps.hpp"

#include "emit/plan/launch_files.hpp"
#include "pipeweaver/planner/launched_way.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace pipeweaver::emit {

using namespace planner;

namespace {

// The files of a rung, by what is done with them.
struct SortedFiles {
    std::string script{}, assignment{};
    std::vector<std::string> others{};
};

SortedFiles sorted(const std::vector<std::string>& files) {
    SortedFiles all;
    for (const std::string& file : files) {
        if (file.ends_with("assignment.json"))
            all.assignment = file;
        else if (file.ends_with(".sh"))
            all.script = file;
        else
            all.others.push_back(file);
    }
    return all;
}

std::string with_files(const std::string& what, const std::vector<std::string>& files) {
    return files.empty() ? what : fmt::format("{} ({})", what, fmt::join(files, ", "));
}

// How a rung is launched; what `data` needs is a sampler, and no other launch.
std::string launch_step(const Rung& rung, const SortedFiles& files, bool is_data) {
    if (files.script.empty()) return is_data ? "" : with_files(rung.needs, files.others);
    const auto source = with_files(fmt::format("source {} in your launch script", files.script), files.others);
    return is_data ? source : fmt::format("{}: {}", source, rung.needs);
}

// The fastest rung of the same runtime that gains something without another checkpoint; null: there is none.
const Rung* in_own_layout(const Ladder& ladder, const Rung& rung) {
    const Rung* last = nullptr;
    for (const Rung& one : ladder.rungs)
        if (!ladder.is_now(one) && one.target == rung.target && one.why_nothing.empty() && !one.reshards) last = &one;
    return last;
}

void add_checkpoint(std::vector<std::string>& steps, const Rung& rung, const emulator::Layout& layout) {
    if (rung.reshards) steps.push_back(fmt::format("reshard the checkpoint to {}", name_of(layout)));
}

}  // namespace

std::vector<std::string> rung_steps(const Job& job, const Ladder& ladder, const Rung& rung) {
    const auto written = files_of_rung(job, ladder, rung);
    std::vector<std::string> steps;
    if (!rung.launched || ladder.is_now(rung)) {
        steps.push_back(with_files(rung.needs, written));
        add_checkpoint(steps, rung, job.setup->layout);
        return steps;
    }
    const SortedFiles files = sorted(written);
    const bool is_data = rung.name == "data";
    if (auto launch = launch_step(rung, files, is_data); !launch.empty()) steps.push_back(std::move(launch));
    if (!files.assignment.empty())
        steps.push_back(fmt::format("feed {} to {}", files.assignment,
                                    is_data ? rung.needs : "a sampler: which samples each replica takes"));
    else if (is_data)
        steps.push_back(rung.needs);
    add_checkpoint(steps, rung, rung.launched->setup->layout);
    return steps;
}

std::vector<std::string> rung_hints(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> hints = refused_of_rung(job, ladder, rung);
    if (!rung.reshards) return hints;
    if (const Rung* stays = in_own_layout(ladder, rung))
        hints.push_back(fmt::format("to stay in your layout take {}", stays->name));
    if (!rung.search.empty()) hints.push_back("a search in that layout: " + rung.search);
    return hints;
}

std::string what_to_do(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> all = rung_steps(job, ladder, rung);
    if (all.size() > 1)
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = fmt::format("{}. {}", i + 1, all[i]);
    for (std::string& hint : rung_hints(job, ladder, rung)) all.push_back(std::move(hint));
    return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace pipeweaver::emit
