#include "planner/ladder/switched.hpp"

#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

std::shared_ptr<const Setup> with_images_dealt(const Setup& setup) {
    const auto& built = setup.model.built;
    if (!built || built->deals.empty() || setup.layout.cp == 1 || workloads::deals_images(setup.model)) return nullptr;
    Setup dealt = with_layout(setup, setup.layout);
    workloads::build_as(dealt.model, workloads::dealing(*built));
    return std::make_shared<const Setup>(std::move(dealt));
}

std::vector<OpponentWay> launched_with_images_dealt(const Job& job, const Batch& batch, const Executor& execute,
                                                    const Time& time, bool& is_whole) {
    Job dealt = job;
    dealt.setup = with_images_dealt(*job.setup);
    if (!dealt.setup) return {};
    if (time.is_over()) {
        is_whole = false;
        return {};
    }
    Opponents all = choose_opponents(dealt, batch, execute, time);
    is_whole = add_tuned(all, dealt, batch, execute, time) && is_whole;
    std::erase_if(all.ways, [&](const OpponentWay& way) { return !launches(target(job.target), way); });
    for (OpponentWay& way : all.ways) way.name += images_dealt;
    return std::move(all.ways);
}

bool is_in_layout_of(const Way& way, const Job& job) {
    const Setup &own = *way.setup, &of = *job.setup;
    return are_equal({own.layout, own.recipe.zero}, {of.layout, of.recipe.zero});
}

}  // namespace pipeweaver::planner
