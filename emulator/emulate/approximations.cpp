// What an emulated step approximates, in words.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/in_situ.hpp"

#include <fmt/format.h>

namespace pipeweaver::emulator {

namespace {

// "compute takes 1.075 and traffic 1.00", or by class where these differ.
std::string times_in_step(const InSituFactors& in_situ, const Recipe& recipe) {
    const double products = in_situ.factors.products * recipe.kernels.products;
    const auto attention_of = [&](bool causal) {
        return in_situ.factors.attention * recipe.kernels.attention *
               (in_situ.after_ampere ? recipe.kernels.after_ampere(causal) : 1);
    };
    const double attention = attention_of(true), unmasked = attention_of(false);
    const double memory_bound = in_situ.factors.memory_bound * recipe.kernels.memory_bound;
    const double traffic = in_situ.factors.traffic * recipe.kernels.traffic;
    if (products == attention && products == unmasked && products == memory_bound)
        return fmt::format("compute takes {:.3f} and traffic {:.2f}", products, traffic);
    const std::string without =
        unmasked == attention ? std::string() : fmt::format(" ({:.3f} without a causal mask)", unmasked);
    return fmt::format("a product takes {:.3f}, attention {:.3f}{}, memory-bound work {:.3f} and traffic {:.2f}",
                       products, attention, without, memory_bound, traffic);
}

InSituFactors in_situ_of(const Setup& setup) {
    const Precision precision = precision_of(setup.recipe.execution.products);
    return in_stack(in_situ_factors(*setup.costs, setup.cluster.device, precision), setup.recipe);
}

}  // namespace

std::string modelled_text(const Setup& setup) {
    const auto in_situ = in_situ_of(setup);
    if (in_situ.footing != Footing::modelled) return {};
    const std::string text = fmt::format("{} is known by {}", setup.cluster.device, in_situ.source);
    if (setup.recipe.anchored && setup.recipe.anchored->has_step()) return text + ", but for an anchor";
    return fmt::format("{}: a step may take {:.1f} to {:.1f} times as long", text, on_peaks.least, on_peaks.most);
}

std::string anchored_text(const Setup& setup) {
    if (!setup.recipe.anchored) return {};
    const Anchored& anchor = *setup.recipe.anchored;
    std::string text = anchor.from;
    if (anchor.measured > Duration{})
        text += fmt::format("; {} took {}, not {}: kernels take {:.3f} times as long",
                            anchor.layer_of.empty() ? "its step" : fmt::format("a layer of '{}'", anchor.layer_of),
                            human(anchor.measured), human(anchor.emulated), anchor.kernels);
    if (anchor.has_step())
        text += fmt::format(", and a step then {:.1f} to {:.1f} times what is emulated, of another model perhaps more",
                            once_anchored.least, once_anchored.most);
    else if (anchor.measured > Duration{})
        text += ", and how far a step is off then was held to no runs";
    if (anchor.measured_peak == Bytes{}) return text;
    text +=
        fmt::format("; its fullest GPU took {}, not {}: ", human(anchor.measured_peak), human(anchor.emulated_peak));
    if (anchor.beside == Bytes{}) return text + "peaks stay as emulated";
    return text + fmt::format("{} more are held on every GPU, which need not grow with the step", human(anchor.beside));
}

std::vector<std::string> approximations(const Setup& setup, bool has_range) {
    const Recipe& recipe = setup.recipe;
    const Layout& layout = setup.layout;
    std::vector<std::string> all;
    const auto in_situ = in_situ_of(setup);
    all.push_back(fmt::format("in a step, {} of its time alone ({}: {})", times_in_step(in_situ, recipe),
                              name_of(footing(in_situ, recipe, setup.cluster.device)), in_situ.source));
    if (layout.tp > 1 && recipe.execution.tensor_overlap == TensorOverlap::inside_gemms)
        all.push_back(
            fmt::format("of tensor-parallel traffic {:.2f} is exposed, the rest runs inside products: as fitted "
                        "to runs of constant lengths",
                        in_situ.inside_gemms));
    if (layout.placement.is_made())
        all.emplace_back("groups share the links of racks, cubes or rings as these are built: held to no run");
    if (!has_range && !recipe.has_host())
        all.emplace_back(recipe.launched == Launched::graphs
                             ? "layers lie in CUDA graphs: their host is never waited for"
                             : "the host launches kernels ahead: it is never waited for");
    if (recipe.layer > Duration{0})
        all.push_back(
            fmt::format("the host takes {} for a layer's forward: shorter layers wait for it", human(recipe.layer)));
    if (layout.weight_copies() > 1 && recipe.zero < 2 && recipe.bucket == Bytes{})
        all.emplace_back("gradients are reduced in one piece behind a rank's last backward, beside nothing");
    if (layout.weight_copies() > 1 && recipe.zero >= 2)
        all.emplace_back("what replicas exchange in a pass ends with the pass");
    if (layout.dp > 1 &&
        (recipe.zero >= 2 || layout.ep * recipe.execution.experts.tensor_parallel > layout.gpus_of_rank()))
        all.emplace_back("replicas reach what they exchange inside the step at the same time: each is emulated alone");
    const double imbalance = layout.ep > 1 ? recipe.execution.experts.imbalance : 1;
    for (const auto& module : setup.model.modules)
        if (module.architecture.moe)
            all.push_back(module.name + (imbalance == 1 ? ": tokens are spread over the experts evenly"
                                                        : fmt::format(": {} times the mean of the tokens reach the "
                                                                      "experts of the fullest GPU",
                                                                      imbalance)));
    return all;
}

}  // namespace pipeweaver::emulator
