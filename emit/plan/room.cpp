#include "emit/plan/room.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

namespace pipeweaver::emit {

using namespace planner;

std::optional<Room> room_of(const Job& job, const Batch& batch, const Rung& rung) {
    const emulator::Setup& setup = rung.launched ? *rung.launched->setup : *job.setup;
    if (rung.padding || (planner::target(job.target).fixed_shapes && setup.layout.pp > 1)) return std::nullopt;
    Room room{.shapes = shapes_of(setup.model, batch.microbatches)};
    if (room.shapes < 2) return std::nullopt;
    room.memory = workloads::device(setup.cluster.device).memory;
    room.left = room.memory - rung.peak;
    room.is_at_risk = emulator::leaves_little_room(rung.peak, room.memory);
    return room;
}

std::string room_text(const std::optional<Room>& room) {
    if (!room) return {};
    const auto left = fmt::format("microbatches have {} shapes, and {:.1f} of {:.1f} GiB are left on the fullest GPU",
                                  room->shapes, gib(room->left), gib(room->memory));
    const auto part = percent(emulator::varying_shapes_part);
    if (!room->is_at_risk)
        return fmt::format("{}, more than the {} that an allocator may take where shapes vary", left, part);
    return fmt::format(
        "at risk: {}; where shapes vary, an allocator may take {} of it above what is allocated, until "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is set; --headroom 20% keeps room for it",
        left, part);
}

}  // namespace pipeweaver::emit
