// How the encoders of a model lie: as the target's frameworks build them, unless something else is said.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/built_model.hpp"

namespace pipeweaver::planner {

namespace {

constexpr std::string_view as_built = "as-built";

}  // namespace

void WorkloadOptions::add_encoders(OptionTable& options) {
    std::vector<std::string> ways{std::string(as_built), std::string(split)};
    for (std::string& one : frameworks::builders()) ways.push_back(std::move(one));
    options.choice(
        "encoders", encoders, ways,
        "how encoders lie on the GPUs of their stage: as what --target names builds them (default: as-built; "
        "as the language model, where it names no framework), as the language model (split), or as this "
        "framework builds them");
    options.choice(
        "encoder-recompute", encoder_recompute, workloads::encoder_recompute_names(),
        "what of encoders that a framework builds runs again, in place of what it does by default: as much as "
        "of the language model, nothing, or all");
    options.flag(
        "deal-images", deal_images,
        "encoders whose framework has a switch for it take some whole images on each context parallel group, in "
        "place of all on every one (Megatron-Bridge: model.vision_dp_when_cp=true)");
}

void WorkloadOptions::require_dealt(const workloads::Model& of) const {
    if (!deal_images || (of.built && of.built->lies.context == workloads::OnContextRanks::dealt)) return;
    if (of.built)
        fail(ErrorKind::input, "--deal-images: {} has no switch for it for '{}'; allowed is to leave it out",
             of.built->framework, of.name);
    fail(ErrorKind::input,
         "--deal-images: goes with a model whose encoders a framework builds, by --target or --encoders");
}

void WorkloadOptions::build_encoders(workloads::Model& of) const {
    if (encoders == split || of.modules.size() == 1) return;
    const bool is_named = !encoders.empty() && encoders != as_built;
    const auto by = is_named ? std::vector<std::string_view>{encoders} : planner::target(target).builders;
    if (by.empty()) return;
    if (const auto* row = frameworks::built_encoder(by, of.family)) {
        workloads::build_as(of, deal_images && !row->deals.empty() ? dealing(*row) : *row);
        if (const auto again = workloads::encoder_recompute_called(encoder_recompute)) of.built->recompute = *again;
        return;
    }
    if (is_named)
        fail(
            ErrorKind::input,
            "--encoders: how {} builds the encoders of '{}'{} was not read; allowed are {} and frameworks that have it "
            "(docs/encoders.md)",
            encoders, of.name, of.family.empty() ? "" : " (" + of.family + ")", split);
    workloads::build_as(of, {.framework = by.front()});
}

}  // namespace pipeweaver::planner
