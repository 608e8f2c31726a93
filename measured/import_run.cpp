#include "pipeweaver/measured/import_run.hpp"

#include "measured/factors.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/measured/measured_plan.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <iterator>
#include <utility>

namespace pipeweaver::measured {

namespace fs = std::filesystem;

namespace {

JsonDocument plan_of(const fs::path& folder) {
    if (std::error_code ignored; !fs::exists(folder / "plan.json", ignored))
        fail(ErrorKind::input,
             "{}: has no plan.json: a run is imported for a plan of a model; times of a plan from stage times belong "
             "into its table",
             folder.string());
    auto document = JsonDocument::read(folder / "plan.json");
    document.require_format("pipeweaver-plan", 1);
    return document;
}

const std::string& or_else(const std::string& given, const std::string& planned) {
    return given.empty() ? planned : given;
}

std::int64_t degree(const Json& asked, std::string_view name) {
    const auto found = asked.find(name);
    return found ? found->integer(1) : 1;
}

// The database that the plan was made with; none: the tables that ship with the program.
std::optional<planner::CostFile> costs_of_plan(const Json& plan, const RunAsked& asked) {
    const Json costs = plan.at("costs");
    if (costs.is_null()) return std::nullopt;
    const auto file = planner::find_costs(or_else(asked.into, costs.at("file").text()));
    if (file->sha256 != costs.at("sha256").text())
        fail(
            ErrorKind::input,
            "{}: is not the database that the plan was made with, or has changed since: plan with it, and import a run "
            "of that plan",
            file->path);
    return file;
}

// Microbatches for each replica where the plan drew those, else its samples.
void draw_as_planned(const Json& was, planner::WorkloadOptions& workload) {
    const std::int64_t microbatches = was.at("microbatches").integer(1), replicas = degree(was, "dp");
    const std::int64_t samples = was.at("samples").integer(1);
    const auto seed = static_cast<std::uint64_t>(was.at("seed").integer());
    const auto whole =
        workloads::draw_batch(workload.dataset, workload.found_model(), seed, microbatches, workloads::Packing::given);
    if (microbatches % replicas == 0 && std::ssize(whole.samples) == samples)
        workload.microbatches = microbatches / replicas;
    else
        workload.global_batch = planner::GlobalBatch{samples, false};
}

// The plan's own options, its batch by name.
planner::EmulateOptions options_of(const Json& plan, const RunAsked& asked) {
    const Json was = plan.at("asked");
    planner::EmulateOptions options;
    auto& workload = options.workload;
    workload.model = or_else(asked.model, was.at("model").text());
    workload.cluster =
        or_else(asked.cluster, fmt::format("{}:{}", was.at("cluster").text(), was.at("gpus").integer(1)));
    for (const auto& [name, value] :
         {std::pair("tp", &workload.tp), std::pair("pp", &workload.pp), std::pair("dp", &workload.dp),
          std::pair("cp", &workload.cp), std::pair("ep", &workload.ep)})
        value->number = degree(was, name);
    if (const auto context = was.find("context")) workload.context = context->text();
    workload.recipe = was.at("recipe").raw().dump();
    workload.pack_as(was);
    workload.headroom = {std::llround(1e6 * was.at("headroom").number(0, 1))};
    const std::string planned = was.at("batch").text();
    const auto drawn = planned.rfind(" (seed ");  // as batches that are drawn are called
    if (!asked.batch.empty() || drawn == std::string::npos) {
        workload.batch = or_else(asked.batch, planned);
    } else {
        workload.dataset = planned.substr(0, drawn);
        draw_as_planned(was, workload);
    }
    options.schedule = asked.plan;
    return options;
}

planner::EmulationRequest request_of(const Json& plan, const std::optional<planner::CostFile>& costs,
                                     const RunAsked& asked, const Executor& execute) {
    auto options = options_of(plan, asked);
    if (costs) options.workload.costs = costs->path;
    require_model(asked.plan, options.workload.model);
    return options.request(static_cast<std::uint64_t>(plan.at("asked").at("seed").integer()), execute);
}

std::string digest_of(const std::vector<std::string>& files) {
    std::string all;
    for (const std::string& file : files) all += sha256(read_file(file));
    return sha256(all);
}

double older_factor(const costdb::Measurements& known, const std::string& model, const Share& share) {
    for (const costdb::PassFactor& one : known.pass_factors)
        if (one.model == model && one.module == share.module && one.backward == share.backward)
            return static_cast<double>(one.factor_ppm) / 1e6;
    return 1;
}

// What a database holds. What is beyond is no drift: another device, another unit of time, or no run of the plan.
void require_possible(const std::string& what, const ImportedFactor& one, double factor) {
    constexpr double least = 0.001, most = 1000;
    if (factor < least || factor > most || std::isnan(factor))
        fail(ErrorKind::input, "{}: {} of {} would have a factor of {:.6g}{}, allowed are {} to {}", what,
             one.backward ? "backward" : "forward", one.module, factor,
             factor == one.factor && factor != one.fitted ? " with those before" : "", least, most);
}

// A database that lacks what the plan was made with would be told twice.
void require_base(const RunAsked& asked, const std::optional<planner::CostFile>& costs, const std::string& device) {
    if (asked.out.empty() == asked.into.empty())
        fail(ErrorKind::input, "--out, --into: one of them is needed: a new database, or the one to add to");
    if (asked.into.empty() || costs) return;
    const auto present = costdb::CostDatabase::over_embedded(asked.into, device).measurements().pass_factors;
    if (!present.empty())
        fail(ErrorKind::input,
             "--into: {} has factors of measured runs, and the plan was made without them: plan with --costs {}, and "
             "import a run of that plan",
             asked.into, asked.into);
}

void write(const RunAsked& asked, const ImportedRun& done, const std::optional<planner::CostFile>& costs) {
    costdb::MeasuredRun run{done.device, fs::path(asked.plan).lexically_normal().string(), digest_of(asked.files), {}};
    run.factors.reserve(done.factors.size());
    for (const ImportedFactor& one : done.factors)
        run.factors.push_back({done.model, one.module, one.backward, std::llround(1e6 * one.factor),
                               static_cast<std::int64_t>(done.steps)});
    const std::string base = asked.into.empty() ? (costs ? costs->path : "") : asked.into;
    costdb::write_measured_run(run, base, done.output);
}

}  // namespace

ImportedRun import_run(const RunAsked& asked, const Executor& execute) {
    const auto document = plan_of(asked.plan);
    const Json plan = document.root();
    const auto costs = costs_of_plan(plan, asked);
    require_base(asked, costs, plan.at("asked").at("device").text());
    const auto folder = schedule_folder(asked.plan, asked.replica);
    const auto planned = planned_of(schedule::read_solved(folder / "solution.json"), asked.plan, asked.replica);
    const Run run = read_run(planned, asked.files);
    static_cast<void>(compare(planned, run));  // refuses files of several runs
    const auto request = request_of(plan, costs, asked, execute);
    const auto& setup = *request.job.setup;
    const auto shares = shares_of(request, planned, execute);
    const auto factors = fit_factors(planned, run, shares);
    ImportedRun done{setup.model.name, setup.cluster.device, or_else(asked.out, asked.into), run.steps.size(), {}, {}};
    for (std::size_t i = 0; i < shares.size(); ++i)
        done.factors.push_back({shares[i].module, shares[i].backward, shares[i].total(), factors[i],
                                factors[i] * older_factor(setup.costs->measurements(), setup.model.name, shares[i])});
    for (const ImportedFactor& one : done.factors)
        for (const double factor : {one.fitted, one.factor}) require_possible(asked.plan, one, factor);
    const auto of_rank = rank_factors(planned, run);
    for (std::size_t r = 0; r < of_rank.size(); ++r)
        if (of_rank[r] && *of_rank[r] >= slow_factor) done.slow_ranks.emplace_back(r, *of_rank[r]);
    write(asked, done, costs);
    return done;
}

}  // namespace pipeweaver::measured
