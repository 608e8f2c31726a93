#include "apps/next_steps.hpp"

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

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

std::string line(const char* what, const std::string& text) { return fmt::format("  {:<9}{}\n", what, text); }

// A path as a shell takes it.
std::string shell_word(const fs::path& path) {
    const std::string text = path.string();
    return text.find_first_of(" '\"$&|;<>()*?[]#~`\\") == std::string::npos ? text : nlohmann::json(text).dump();
}

std::string size_text(const fs::path& path) { return human(Bytes{static_cast<std::int64_t>(fs::file_size(path))}); }

std::string torch_steps(const Written& written) {
    const auto* csv = written.find("torch/schedule.csv");
    const auto* schedule = written.find("torch/schedule.json");
    if (csv == nullptr || schedule == nullptr) return "";
    const auto microbatches = nlohmann::json::parse(read_file(*schedule)).at("n_microbatches").get<std::int64_t>();
    const char* shape = written.find("torch/padding.json") == nullptr ? "" : " (padding.json: its fixed shape)";
    const char* whose = written.others("actions.json").empty() ? "" : " of replica 0, the only one it is for";
    return line("PyTorch",
                fmt::format("{} says which layers each stage has{}{}; then", schedule->string(), shape, whose)) +
           line("", "  from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime") +
           line("", fmt::format("  schedule = _PipelineScheduleRuntime(stages, n_microbatches={}, loss_fn=loss)",
                                microbatches)) +
           line("", fmt::format("  schedule._load_csv({})", nlohmann::json(csv->string()).dump()));
}

std::string own_executor_steps(const Written& written) {
    if (const auto* actions = written.of_replica("actions.json"))
        return line("executor", fmt::format("{}{}, {}: what each rank does, in order, with tensors and peers",
                                            actions->string(), written.others("actions.json"), size_text(*actions)));
    const auto lists = written.rank_lists();
    if (lists.empty()) return "";
    const auto largest = std::max_element(lists.begin(), lists.end(), [](const fs::path& a, const fs::path& b) {
        return fs::file_size(a) < fs::file_size(b);
    });
    return line(
        "executor",
        fmt::format("{}{}, at most {}: what a rank does, in order, with tensors and peers", lists.front().string(),
                    lists.size() == 1 ? "" : fmt::format(" (and {} more)", lists.size() - 1), size_text(*largest)));
}

}  // namespace

std::string next_steps(const std::vector<fs::path>& files, const fs::path& out, bool for_torch) {
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
    if (for_torch) text += torch_steps(written);
    text += own_executor_steps(written);
    if (!for_torch) text += torch_steps(written);
    if (const auto* solution = written.find("solution.json"))
        text += line("check", fmt::format("pipeweaver replay {} {}", shell_word(out / "problem.json.gz"),
                                          shell_word(*solution)));
    text.pop_back();
    return text;
}

}  // namespace pipeweaver::apps
