// The tasks of a problem by what they belong to: what moves together in the search over priorities and in rebuilds.
#pragma once

#include "search/instance/flat.hpp"

#include <array>
#include <memory>
#include <utility>

namespace pipeweaver::search {

/// Tasks by (microbatch, module, item, segment, direction); made once per problem.
struct TaskGroups {
    explicit TaskGroups(const Flat& flat);

    std::vector<std::uint32_t> group_of;    ///< per task
    std::vector<std::uint32_t> segment_of;  ///< per task: its stage's place among those of its rank
    Groups<std::uint32_t> tasks;            ///< per group, in reading order
    /// Groups of a microbatch, in reading order. Where several models have microbatches of one number, each its own.
    std::vector<std::vector<std::uint32_t>> by_microbatch;
    std::vector<std::uint32_t> microbatch_of;  ///< per group: index into by_microbatch
    std::vector<std::uint32_t> kind_of;        ///< per microbatch: those that begin with one module are of one kind
    /// Per kind: most work that a microbatch of it has on one rank, forwards and what is late.
    std::vector<std::array<std::int64_t, 2>> work;
    std::vector<std::uint8_t> late;  ///< per group
    /// Do several models share the ranks: microbatches that have no module in common?
    bool several_models = false;
};

/// Pairs with a choice of modes by what they belong to: what changes its mode together in the search over groups.
struct PairGroups {
    explicit PairGroups(const Flat& flat, const TaskGroups& groups);

    /// Pairs of a microbatch's module, all its items on all ranks; and of one item of it. Empty where no pair has a
    /// choice.
    Groups<std::uint32_t> of_module, of_item;
};

/// A direction of time. A schedule of the reversed problem, read backwards, is a schedule of the problem.
struct Side {
    Side(Flat flat_, bool reversed_) : flat(std::move(flat_)), groups(flat), reversed(reversed_) {}

    /// As a sequence of the problem itself.
    std::vector<std::uint32_t> forwards(std::vector<std::uint32_t> sequence) const;

    Flat flat;
    TaskGroups groups;
    bool reversed;
};

/// Forwards, and backwards where the problem allows it.
[[nodiscard]] std::vector<std::unique_ptr<Side>> sides_of(const Flat& flat);

}  // namespace pipeweaver::search
