#include "pipeweaver/capacity/answer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

namespace pipeweaver::capacity {

namespace {

// The first ten, and the answers.
std::set<std::size_t> rows_with_files_of(const Ranking& ranking) {
    constexpr std::size_t most = 10;
    std::set<std::size_t> rows;
    for (std::size_t i = 0; i < std::min(most, ranking.rows.size()); ++i) rows.insert(i);
    for (const std::size_t place : ranking.answers.places()) rows.insert(place);
    return rows;
}

// The row's command: a plan writes its folder.
std::string script_of(const std::vector<CellResult>& results, const Row& row, std::size_t place) {
    if (results[row.cell].points[row.point].split)
        return fmt::format(
            "#!/bin/sh\n# --out mimo.sh: its grids for MegatronMIMO, which has them for an encoder\n{}\n", row.command);
    return fmt::format("#!/bin/sh\n{} --out plan-{:02}\n", row.command, place);
}

// The row as a study of its one point.
std::string point_study(const Study& study, const std::vector<CellResult>& results, const Row& row) {
    const Cell& cell = study.cells[row.cell];
    const Point& point = results[row.cell].points[row.point];
    nlohmann::ordered_json json{
        {"format", "pipeweaver-study/1"},
        {"name", fmt::format("{}, cell {}", study.name.empty() ? "study" : study.name, cell.number)}};
    if (study.training_tokens > 0) json["tokens"] = study.training_tokens;
    json["axes"] = {{"model", cell.asked.find("model")->text}, {"cluster", cell.cluster}, {"gpus", cell.gpus}};
    constexpr std::array<std::string_view, 5> said_otherwise{"model", "cluster", "price", "tokens", "also"};
    for (const auto& value : cell.asked.all())
        if (std::find(said_otherwise.begin(), said_otherwise.end(), value.name) == said_otherwise.end())
            json["plan"][value.name] = value.text;
    if (point.split)
        json["axes"]["groups"] = name_of(GroupsAsked::own);
    else
        json["layouts"] = layout_json(point.as);
    if (!point.split && point.as.zero == 0) json["layouts"].erase("zero");
    if (price_of(cell) > 0) json["prices"] = {{cell.cluster, price_of(cell)}};
    if (study.cores)
        json["cores"] = {{"usd", study.cores->usd}, {"included", study.cores->included}, {"node", study.cores->node}};
    json["planned"] = 1;
    return json.dump(2) + "\n";
}

}  // namespace

Ranking answer(const Study& study, const std::vector<CellResult>& results, const Executor& execute,
               const planner::Time& time, const OnPlanned& on_planned) {
    Ranking ranking = rank(study, results);
    plan_best(study, results, ranking, execute, time, on_planned);
    return ranking;
}

std::vector<FileToWrite> answer_files(const Study& study, const std::vector<CellResult>& results,
                                      const Ranking& ranking, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files{{folder / "results.csv", results_csv(study, results)},
                                   {folder / "rows.csv", rows_csv(study, results, ranking)},
                                   {folder / "answer.json", answer_json(study, results, ranking).dump(2) + "\n"},
                                   {folder / "report.html", report_html(study, results, ranking)}};
    for (const std::size_t i : rows_with_files_of(ranking)) {
        const auto stem = folder / "rows" / fmt::format("{:02}", i + 1);
        files.push_back({stem.string() + ".sh", script_of(results, ranking.rows[i], i + 1)});
        files.push_back({stem.string() + ".yaml", point_study(study, results, ranking.rows[i])});
    }
    return files;
}

void remove_old_rows(const std::vector<FileToWrite>& files, const std::filesystem::path& folder) {
    const auto rows = folder / "rows";
    std::vector<std::filesystem::path> kept;
    for (const FileToWrite& file : files)
        if (file.path.parent_path() == rows) kept.push_back(file.path);
    std::sort(kept.begin(), kept.end());
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(rows, none)) {
        const auto extension = entry.path().extension();
        const std::string stem = entry.path().stem().string();
        const bool is_number = !stem.empty() && std::all_of(stem.begin(), stem.end(),
                                                            [](unsigned char c) { return std::isdigit(c) != 0; });
        if (is_number && (extension == ".sh" || extension == ".yaml"))
            names.push_back(entry.path().filename().string());
    }
    remove_files(rows, names, kept);
}

}  // namespace pipeweaver::capacity
