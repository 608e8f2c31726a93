// Whether the layouts of stages and the shares of units go together.
#include "emit/targets/actions_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace pipeweaver::emit {

using emulator::ModuleLayout;
using emulator::Piece;

namespace {

using Why = std::optional<std::string>;
using Stages = std::map<std::int64_t, const ActionStage*>;

std::string name_of(const ActionShare& share) {
    return fmt::format("share of {}, microbatch {}, item {}", share.chain, share.microbatch, share.item) +
           (share.stage ? fmt::format(", stage {}", *share.stage) : std::string());
}

// Of one stage, by itself.
Why wrong_layout(const ActionLists& actions, const ActionStage& stage) {
    if (!stage.layout) return std::nullopt;
    const ModuleLayout& own = *stage.layout;
    const std::int64_t of_replica = actions.gpus * static_cast<std::int64_t>(actions.ranks.size());
    if (own.in_phases) {
        if (own.tp == 1 && own.copies == of_replica) return std::nullopt;
        return fmt::format("stage {}: tp {} x {} copies in phases, the replica has {} GPUs", stage.stage, own.tp,
                           own.copies, of_replica);
    }
    if (own.tp * own.copies == actions.gpus) return std::nullopt;
    return fmt::format("stage {}: tp {} x {} copies are not the {} GPUs of a rank", stage.stage, own.tp, own.copies,
                       actions.gpus);
}

// All stages of a chain have one layout.
Why wrong_layouts(const ActionLists& actions) {
    if (actions.gpus < 1) return fmt::format("a rank has {} GPUs", actions.gpus);
    std::map<std::string, const ActionStage*> first;
    for (const ActionStage& stage : actions.stages) {
        if (Why why = wrong_layout(actions, stage)) return why;
        const auto [place, added] = first.try_emplace(stage.role.chain, &stage);
        if (place->second->layout != stage.layout)
            return fmt::format("stages {} and {} of {} have different layouts", place->second->stage, stage.stage,
                               stage.role.chain);
    }
    return std::nullopt;
}

// Every position is on one copy.
Why wrong_pieces(const ActionShare& share) {
    const bool by_rows = std::all_of(share.lengths.begin(), share.lengths.end(),
                                     [&](std::int64_t length) { return length % share.reduction == 0; });
    std::vector<std::vector<Piece>> of_sequence(share.lengths.size());
    for (const auto& copy : share.copies)
        for (const Piece& piece : copy) {
            if (piece.sequence >= share.lengths.size())
                return fmt::format("{}: a piece is of sequence {}, there are {}", name_of(share), piece.sequence,
                                   share.lengths.size());
            if (by_rows && (piece.first % share.reduction != 0 || piece.end % share.reduction != 0))
                return fmt::format("{}: positions {} to {} of sequence {} are no rows of {}", name_of(share),
                                   piece.first, piece.end, piece.sequence, share.reduction);
            of_sequence[piece.sequence].push_back(piece);
        }
    for (std::size_t s = 0; s < of_sequence.size(); ++s) {
        auto& pieces = of_sequence[s];
        std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
        std::int64_t covered = 0;
        for (const Piece& piece : pieces) {
            if (piece.first != covered || piece.end <= piece.first) break;
            covered = piece.end;
        }
        if (pieces.empty() || covered != share.lengths[s] || pieces.back().end != covered)
            return fmt::format("{}: the copies do not have each of the {} positions of sequence {} once",
                               name_of(share), share.lengths[s], s);
    }
    return std::nullopt;
}

// In phases every sequence is an item of its own.
Why wrong_items(const ActionShare& share) {
    const std::size_t needed = share.stage ? share.lengths.size() : 0;
    if (share.of.size() != needed)
        return fmt::format("{}: names {} items, {} are needed", name_of(share), share.of.size(), needed);
    const std::set<ItemPlace> different(share.of.begin(), share.of.end());
    if (different.size() == share.of.size()) return std::nullopt;
    return fmt::format("{}: an item is there twice", name_of(share));
}

// The stage that a share is of: that of the phase, or any of the chain.
const ActionStage* stage_of(const ActionLists& actions, const ActionShare& share) {
    const auto found = std::find_if(actions.stages.begin(), actions.stages.end(), [&](const ActionStage& stage) {
        return stage.role.chain == share.chain && (!share.stage || stage.stage == *share.stage);
    });
    return found == actions.stages.end() ? nullptr : &*found;
}

Why wrong_share(const ActionLists& actions, const ActionShare& share) {
    const ActionStage* stage = stage_of(actions, share);
    if (stage == nullptr || !needs_share(*stage) || stage->layout->in_phases != share.stage.has_value())
        return fmt::format("{}: there are no such copies", name_of(share));
    const std::int64_t copies = share.stage ? actions.gpus : stage->layout->copies;
    if (static_cast<std::int64_t>(share.copies.size()) != copies)
        return fmt::format("{}: is of {} copies, there are {}", name_of(share), share.copies.size(), copies);
    if (share.reduction < 1 || share.lengths.empty() ||
        *std::min_element(share.lengths.begin(), share.lengths.end()) < 1)
        return fmt::format("{}: a length or the reduction is below 1, or no sequence is there", name_of(share));
    if (Why why = wrong_items(share)) return why;
    return wrong_pieces(share);
}

// Each pass of a stage with copies has a share.
Why missing_share(const ActionLists& actions, const ShareOf& shares, const Stages& stages) {
    for (const auto& list : actions.ranks)
        for (const Action& action : list) {
            const auto* compute = std::get_if<Compute>(&action);
            if (compute == nullptr) continue;
            const ActionStage& stage = *stages.at(compute->pass.stage);
            if (needs_share(stage) && !shares.find(stage, compute->pass))
                return fmt::format("stage {}, microbatch {}, item {}: no share says which GPU has which positions",
                                   stage.stage, compute->pass.microbatch, compute->pass.item);
        }
    return std::nullopt;
}

// Rows that leave a chain are rows of the unit's output.
Why wrong_slice(const ActionLists& actions, const ShareOf& shares, const Stages& stages) {
    for (std::size_t t = 0; t < actions.tensors.size(); ++t) {
        const ActionTensor& tensor = actions.tensors[t];
        const auto found = tensor.by_item ? shares.find(*stages.at(tensor.from.stage), tensor.from) : std::nullopt;
        if (!found) continue;
        const ActionShare& share = actions.shares[*found];
        std::int64_t positions = 0;
        for (const std::int64_t length : share.lengths) positions += length;
        for (const Rows& rows : tensor.slices)
            if (rows.second > positions / share.reduction)
                return fmt::format("tensor {}: takes rows {} to {} of an output of {}", t, rows.first, rows.second,
                                   positions / share.reduction);
    }
    return std::nullopt;
}

}  // namespace

bool needs_share(const ActionStage& stage) {
    return stage.layout && (stage.layout->copies > 1 || stage.layout->in_phases);
}

ShareOf::ShareOf(const ActionLists& actions) {
    for (std::size_t i = 0; i < actions.shares.size(); ++i) {
        const ActionShare& share = actions.shares[i];
        const bool added =
            by_key_.try_emplace({share.chain, share.microbatch, share.item, share.stage.value_or(-1)}, i).second;
        if (!added && !repeated_) repeated_ = i;
    }
}

std::optional<std::size_t> ShareOf::find(const ActionStage& stage, const Pass& pass) const {
    if (!needs_share(stage)) return std::nullopt;
    const std::int64_t number = stage.layout->in_phases ? stage.stage : -1;
    const auto found = by_key_.find({stage.role.chain, pass.microbatch, pass.item, number});
    return found == by_key_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> why_not_shared(const ActionLists& actions) {
    if (Why why = wrong_layouts(actions)) return why;
    const ShareOf shares(actions);
    if (const auto twice = shares.repeated()) return fmt::format("{}: is there twice", name_of(actions.shares[*twice]));
    for (const ActionShare& share : actions.shares)
        if (Why why = wrong_share(actions, share)) return why;
    Stages stages;
    for (const ActionStage& stage : actions.stages) stages[stage.stage] = &stage;
    if (Why why = missing_share(actions, shares, stages)) return why;
    return wrong_slice(actions, shares, stages);
}

}  // namespace pipeweaver::emit
