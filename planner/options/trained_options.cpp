// What of a model is trained, and what runs forward beside it.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

namespace {

constexpr std::string_view all_parts = "all", projectors = "projectors";

// Those of a model that --train may name.
std::vector<std::string> parts_of_model(const workloads::Model& model) {
    std::vector<std::string> parts{std::string(all_parts)};
    for (const workloads::Module& module : model.modules) parts.push_back(module.name);
    const auto& edges = model.edges;
    if (std::any_of(edges.begin(), edges.end(), [](const auto& edge) { return edge.projector_in > 0; }))
        parts.emplace_back(projectors);
    return parts;
}

// The parts that are named are trained whole, the others are frozen, adapters and all.
void train(workloads::Model& model, const std::vector<std::string>& named) {
    const auto known = parts_of_model(model);
    for (const std::string& part : named)
        if (std::find(known.begin(), known.end(), part) == known.end())
            fail(ErrorKind::input, "--train: {}", must_be(part, one_of(known)));
    const auto trains = [&](std::string_view part) {
        return std::any_of(named.begin(), named.end(),
                           [&](const auto& one) { return one == part || one == all_parts; });
    };
    for (workloads::Module& module : model.modules) {
        module.trainable = trains(module.name);
        module.adapters.reset();
    }
    for (workloads::ModelEdge& edge : model.edges)
        if (edge.projector_in > 0) edge.projector_trainable = trains(projectors);
}

void teach(workloads::Model& model, const std::string& teacher) {
    if (!model.teacher.empty())
        fail(ErrorKind::input, "--teacher: '{}' has the teacher '{}' already; allowed is one", model.name,
             model.teacher.front().name);
    workloads::Model found = workloads::find_model(teacher, "--teacher");
    if (const auto why = workloads::why_no_teacher(model, found)) fail(ErrorKind::input, "--teacher: {}", *why);
    model.teacher.push_back(std::move(found));
}

std::string what_is_assumed(const workloads::Model& model) {
    constexpr std::string_view where =
        "runs each sample forward right in front of the model's own forward, and sends its activations with the "
        "model's";
    if (model.reference) return fmt::format("a copy of the model as it was {}", where);
    return fmt::format(
        "the teacher '{}' lies frozen on the same GPUs, its layers shared out as the model's are, and {}; "
        "its logits are kept until the loss as the model's own are",
        model.teacher.front().name, where);
}

}  // namespace

void WorkloadOptions::add_trained(OptionTable& options) {
    options.text("train", trained, "PART,...",
                 "modules of the model that are trained, `projectors`, or `all`; the others are frozen: a stage of a "
                 "recipe (default: as the model's file says)");
    options.flag(
        "reference", reference,
        "beside the model a copy as it was, which adapters and frozen modules share, runs every sample forward (DPO, "
        "KTO, GRPO); both answers of a pair are samples of their own");
    options.text(
        "teacher", teacher, "MODEL",
        "beside the model this one, frozen, runs every sample forward (distillation); it has the same kinds of "
        "modules and reads the same tokens");
}

void WorkloadOptions::settle_trained(workloads::Model& of) const {
    if (!trained.empty()) train(of, parts_of(trained));
    of.reference = of.reference || reference;
    if (!teacher.empty()) teach(of, teacher);
    if (!workloads::model_beside(of)) return;
    const std::string line = what_is_assumed(of);
    if (std::find(of.assumed.begin(), of.assumed.end(), line) == of.assumed.end()) of.assumed.push_back(line);
}

}  // namespace pipeweaver::planner
