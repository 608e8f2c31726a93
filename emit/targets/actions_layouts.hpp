// What action lists say of modules with a layout of their own: which GPU has which positions of a unit.
#pragma once

#include "pipeweaver/emit/actions.hpp"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace pipeweaver::emit {

/// The shares of lists by what they are of. Keeps a reference to the lists.
class ShareOf {
public:
    explicit ShareOf(const ActionLists& actions);

    /// Index into ActionLists::shares of what `stage` takes in a pass; none: it has one copy, or the share is missing.
    [[nodiscard]] std::optional<std::size_t> find(const ActionStage& stage, const Pass& pass) const;

    /// The index of a share that an earlier one says the same pass of; none: each is of a pass of its own.
    [[nodiscard]] std::optional<std::size_t> repeated() const { return repeated_; }

private:
    // Chain, microbatch, item and, in phases, the stage; else -1.
    using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

    std::map<Key, std::size_t> by_key_;
    std::optional<std::size_t> repeated_;
};

/// Whether what a pass takes is said by a share.
[[nodiscard]] bool needs_share(const ActionStage& stage);

/// Says what is wrong with layouts and shares of lists whose references exist; none: nothing.
[[nodiscard]] std::optional<std::string> why_not_shared(const ActionLists& actions);

}  // namespace pipeweaver::emit
