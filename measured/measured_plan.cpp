#include "pipeweaver/measured/measured_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

namespace pipeweaver::measured {

namespace fs = std::filesystem;

fs::path schedule_folder(const fs::path& folder, std::int64_t replica) {
    std::error_code ignored;
    const fs::path own = folder / fmt::format("replica-{:03}", replica);
    if (fs::is_directory(own, ignored)) return own;
    if (!fs::exists(folder / "solution.json", ignored))
        fail(ErrorKind::input, "{}: has no {} and no solution.json: it is no folder with a schedule", folder.string(),
             own.filename().string());
    if (replica != 0)
        fail(ErrorKind::input, "--replica: is {}, {} has one schedule alone: that of replica 0", replica,
             folder.string());
    return folder;
}

void require_model(const fs::path& folder, const std::string& name) {
    const auto document = JsonDocument::read(folder / "partition.json");
    document.require_format("pipeweaver-partition", 1);
    const auto model = workloads::find_model(name);
    const Json planned = document.root().at("model"), content = document.root().at("model_sha256");
    if (planned.text() != model.name)
        planned.fail(fmt::format("the plan is of '{}', --model names '{}'", planned.text(), model.name));
    if (content.text() != sha256(workloads::to_json(model)))
        content.fail(fmt::format("the plan is older than the model: '{}' has changed since; plan again", model.name));
}

Run read_run(const Planned& planned, const std::vector<std::string>& files) {
    std::vector<Recording> recordings;
    recordings.reserve(files.size());
    for (const std::string& file : files) recordings.push_back(read_recording(file));
    return join(planned, recordings);
}

}  // namespace pipeweaver::measured
