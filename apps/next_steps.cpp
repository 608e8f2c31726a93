#include "apps/next_steps.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace pipeweaver::apps {

namespace fs = std::filesystem;

namespace {

class Written {
public:
    Written(const std::vector<fs::path>& files, const fs::path& out) : files_(files), out_(out) {}

    // The file of this name below the folder; null without one.
    const fs::path* find(const fs::path& name) const {
        const auto at = std::find(files_.begin(), files_.end(), out_ / name);
        return at == files_.end() ? nullptr : &*at;
    }

    bool has_all(const fs::path& folder, const std::vector<std::string>& names) const {
        return std::all_of(names.begin(), names.end(),
                           [&](const std::string& name) { return find(folder / name) != nullptr; });
    }

    fs::path below(const fs::path& folder) const { return out_ / folder; }

    // That of the first replica that has one or, without replicas, at the top.
    const fs::path* of_replica(const fs::path& name) const {
        const auto at =
            std::find_if(files_.begin(), files_.end(), [&](const fs::path& path) { return is_of(path, name); });
        return at == files_.end() ? find(name) : &*at;
    }

    // Each rank's own action list, of all replicas.
    std::vector<fs::path> rank_lists() const {
        std::vector<fs::path> lists;
        for (const fs::path& path : files_)
            if (path.parent_path().filename() == emit::rank_lists_folder) lists.push_back(path);
        return lists;
    }

    std::string others(const fs::path& name) const {
        std::size_t more = 0;
        for (const fs::path& path : files_)
            if (is_of(path, name)) ++more;
        return more > 1 ? fmt::format(" (and {} more)", more - 1) : "";
    }

private:
    static bool is_of(const fs::path& path, const fs::path& name) {
        return path.filename() == name && path.parent_path().filename().string().starts_with("replica-");
    }

    const std::vector<fs::path>& files_;
    const fs::path& out_;
};

std::string line(std::string_view what, const std::string& text) { return fmt::format("  {:<8} {}\n", what, text); }

// A path as a shell takes it.
std::string shell_word(const fs::path& path) {
    const std::string text = path.string();
    return text.find_first_of(" '\"$&|;<>()*?[]#~`\\") == std::string::npos ? text : nlohmann::json(text).dump();
}

std::string size_text(const fs::path& path) { return human(Bytes{static_cast<std::int64_t>(fs::file_size(path))}); }

// How to run the schedules that targets have of their own, and what flags launch.
std::string target_steps(const Written& written, std::size_t microbatches) {
    std::string text;
    for (const emit::Target& row : emit::targets()) {
        const planner::Target& target = planner::target(row.of);
        const std::string& folder = row.is_launched() ? row.folder : target.folder;
        const std::string& title = row.is_launched() ? row.title : target.title;
        if (row.how_to_run == nullptr || !written.has_all(folder, row.files)) continue;
        const auto lines = row.how_to_run({written.below(folder), microbatches,
                                           written.find(fs::path(folder) / "padding.json") != nullptr,
                                           !target.fixed_shapes && !written.others("actions.json").empty()});
        for (std::size_t i = 0; i < lines.size(); ++i) text += line(i == 0 ? title : "", lines[i]);
    }
    return text;
}

// What pipeweaver.torch would refuse of the action lists, and where it can be had, what searches lists that it runs.
std::string not_executed(const MadeFor& made_for) {
    if (made_for.launched_alone.empty()) return "";
    const std::string also = planner::target(made_for.target).searches
                                 ? ""
                                 : fmt::format(": --also {} plans what it runs", planner::targets().front().option);
    return fmt::format("; pipeweaver.torch does not run {}{}", made_for.launched_alone, also);
}

std::string own_executor_steps(const Written& written, const MadeFor& made_for) {
    const std::string refused = not_executed(made_for);
    if (const auto* actions = written.of_replica("actions.json"))
        return line("executor",
                    fmt::format("{}{}, {}: what each rank does, in order, with tensors and peers{}", actions->string(),
                                written.others("actions.json"), size_text(*actions), refused));
    const auto lists = written.rank_lists();
    if (lists.empty()) return "";
    const auto largest = std::max_element(lists.begin(), lists.end(), [](const fs::path& a, const fs::path& b) {
        return fs::file_size(a) < fs::file_size(b);
    });
    return line("executor", fmt::format("{}{}, at most {}: what a rank does, in order, with tensors and peers{}",
                                        lists.front().string(),
                                        lists.size() == 1 ? "" : fmt::format(" (and {} more)", lists.size() - 1),
                                        size_text(*largest), refused));
}

}  // namespace

std::string next_steps(const std::vector<fs::path>& files, const fs::path& out, const MadeFor& made_for) {
    const Written written(files, out);
    std::string text = fmt::format("\nwritten to {}\n", out.string());
    if (const auto* report = written.find("report.html"))
        text += line("read", fmt::format("{} in a browser", report->string()));
    if (const auto* trace = written.of_replica("trace.json.gz"))
        text += line("look",
                     fmt::format("{}{} at https://ui.perfetto.dev", trace->string(), written.others("trace.json.gz")));
    if (const auto* assignment = written.find("assignment.json"))
        text += line("data", fmt::format("{}: the samples and items of each microbatch, with its loss weight",
                                         assignment->string()));
    const bool target_first = has_own_plan(planner::target(made_for.target));
    if (target_first) text += target_steps(written, made_for.microbatches);
    text += own_executor_steps(written, made_for);
    if (!target_first) text += target_steps(written, made_for.microbatches);
    if (const auto* solution = written.find("solution.json"))
        text += line("check", fmt::format("pipeweaver replay {} {}", shell_word(out / "problem.json.gz"),
                                          shell_word(*solution)));
    text.pop_back();
    return text;
}

}  // namespace pipeweaver::apps
