// How the GPUs of a pipeline rank share a module: tensor parallelism of its own, and copies of its weights.
//
//   rank of 8 GPUs   llm  {tp 8, 1 copy}    | weights in eight parts, all GPUs at every microbatch            |
//                    vit  {tp 2, 4 copies}  | 2 GPUs | 2 GPUs | 2 GPUs | 2 GPUs |  each with images of its own,
//                                                                                  or with a part of each image
#pragma once

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// How copies share what one pass takes. Nothing moves where a unit is shared in another way than the one before: the
/// weights are whole on every copy.
enum class Sharing : std::uint8_t {
    dealt,   ///< whole sequences, by cost
    split,   ///< positions of every sequence; attention exchanges them for heads (DeepSpeed-Ulysses, arXiv 2309.14509)
    hybrid,  ///< whole sequences as long as that is even, the rest split
    counted  ///< whole sequences in their order, equally many, of the first copies one more: as frameworks deal images
             ///< (Lies); no partition has it
};
[[nodiscard]] std::string_view name_of(Sharing sharing);
/// Of those that partitions have.
[[nodiscard]] std::optional<Sharing> sharing_named(std::string_view name);

struct ModuleLayout {
    std::int64_t tp = 1;      ///< GPUs that its weights are split over
    std::int64_t copies = 1;  ///< of its weights in a rank; of a module in phases, in the replica
    Sharing sharing = Sharing::dealt;
    bool in_phases = false;  ///< no chain has it: its forwards run on all GPUs of the replica before those of the
                             ///< chains' first stage, its backwards after them

    friend bool operator==(const ModuleLayout&, const ModuleLayout&) = default;
};

/// Per module of a model; none: each as the layout of the job says.
using ModuleLayouts = std::vector<ModuleLayout>;

/// That of a module; {tp, 1 copy} of `layout` where `layouts` are none.
[[nodiscard]] ModuleLayout layout_of(const ModuleLayouts& layouts, std::size_t module, const Layout& layout);

/// Whole on each GPU of the replica, sequences dealt over them.
[[nodiscard]] ModuleLayout in_phases(const Layout& layout);

/// The modules in phases.
[[nodiscard]] std::vector<std::size_t> phase_modules(const ModuleLayouts& layouts);

/// Whether any module has copies, or a tp that is not the layout's.
[[nodiscard]] bool differ(const ModuleLayouts& layouts, const Layout& layout);

/// The layout of a module's layers on the GPUs of a rank: copies are context parallel groups, of sequences that lie
/// whole on one (PassShape::whole) or are exchanged for heads. One copy of the same tp: `layout` as it is.
[[nodiscard]] Layout with_module(const Layout& layout, const ModuleLayout& module);

/// The layout of the layers of a module that lies so: what its GPUs do alike divides nothing.
[[nodiscard]] Layout with_lies(const Layout& layout, const workloads::Lies& lies);

/// A module on the GPUs of a rank.
struct PlacedModule {
    Layout layout;  ///< with_module(...), or with_lies(...)
    ModuleLayout own;
};

/// A module has the layout that `layouts` give it, and lies as Module::lies says where that is the job's.
[[nodiscard]] std::vector<PlacedModule> placed_modules(const Layout& layout, const ModuleLayouts& layouts,
                                                       const workloads::Model& model);

/// Why a module in a chain cannot have the layout: the backbone and modules behind it that take whole microbatches have
/// that of the job; tp times copies are the GPUs of a rank; heads and feed-forward columns divide by tp, heads by tp
/// times copies where sequences are split; experts and linear attention are not shared so. None: it can.
/// `named` is how a message begins ("--module-tp vit=3").
[[nodiscard]] std::optional<std::string> why_not(const ModuleLayout& module, const workloads::Model& model,
                                                 std::size_t which, const Layout& layout, const std::string& named);

/// "tp 2 x 4 copies, hybrid"; "tp 8" of one copy.
[[nodiscard]] std::string name_of(const ModuleLayout& module);

}  // namespace pipeweaver::emulator
