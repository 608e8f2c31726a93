#include "pipeweaver/planner/anchor.hpp"

#include "pipeweaver/base/error.hpp"

#include <utility>

namespace pipeweaver::planner {

using emulator::Recipe;

namespace {

void require_same(const Anchor& anchor, const char* what, const std::string& its, const std::string& asked) {
    if (its == asked) return;
    fail(ErrorKind::input, "--anchor: {} is of {} {}, and {} is asked for; an anchor corrects what it was measured on",
         anchor.found.from, what, its, asked);
}

}  // namespace

Recipe with_kernels(Recipe recipe, double factor) {
    for (double* const part :
         {&recipe.kernels.products, &recipe.kernels.attention, &recipe.kernels.memory_bound, &recipe.kernels.experts})
        *part *= factor;
    return recipe;
}

Recipe anchored(Recipe recipe, const Anchor& anchor, const std::string& device) {
    require_same(anchor, "device", anchor.device, device);
    require_same(anchor, "recipe", anchor.recipe, recipe.name);
    recipe = with_kernels(std::move(recipe), anchor.found.kernels);
    recipe.beside += anchor.found.beside;
    recipe.anchored = anchor.found;
    return recipe;
}

}  // namespace pipeweaver::planner
