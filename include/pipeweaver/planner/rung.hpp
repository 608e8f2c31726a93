// What a ladder consists of (ladder.hpp).
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/planner/host_bound.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::groups {
struct Placing;  // groups/placing.hpp
}

namespace pipeweaver::planner {

struct LaunchedWay;  // launched_way.hpp

/// What a rung gains over the easier one that is advised without it.
struct Worth {
    std::string over{};      ///< name of the easier one
    double gain = 1;         ///< the easier one's step over its own
    int wins = 0;            ///< draws of wrong costs in which it is the faster one
    int draws = 0;           ///< none: it gains too little for them to matter
    bool is_enough = false;  ///< it is worth the change
};

/// What every microbatch of a pipeline is padded to.
struct Padding {
    std::int64_t tokens = 0, items = 0;  ///< of the largest
    double of_tokens = 0, of_items = 0;  ///< parts of the tokens, and of the items' positions, that are padding
};

/// The rung of modules on GPUs of their own, beyond the ladder.
inline constexpr std::string_view groups_rung = "groups";

/// A way to run the step.
struct Rung {
    std::string name{};    ///< now, data, flags, layout, schedule; beyond the ladder: what it is
    std::string target{};  ///< what --target calls the runtime that runs it; empty: none does yet
    std::string way{};     ///< "first-stage 1f1b, blocks:8"
    Duration step{};
    std::optional<HostBound> host{};   ///< of what runs now and of the advised rung: the far end of the step, where the
                                       ///< recipe does not say how layers are launched; `step` is the near one
    std::size_t microbatches = 0;      ///< of all replicas
    std::int64_t tokens = 0;           ///< of the backbone, of all replicas
    Bytes peak{}, usable{};            ///< of the rank with the least room left
    std::optional<Padding> padding{};  ///< none: shapes are as they are
    std::string needs{};               ///< what has to be changed for it
    bool reshards = false;             ///< it needs the checkpoint in its layout
    std::string search{};              ///< options that search an order in its layout; empty: there is none to search
    std::string remark{};              ///< where it is not all that was said, a phrase
    std::vector<std::string> files{};  ///< of the plan's folder that say it
    std::string command{};             ///< that prints its step; empty: there is none
    std::string why_nothing{};         ///< not empty: it gains nothing over the rung before it
    /// Of a rung that gains something and that the job's target runs, or that has GPUs for each module; none of the
    /// first.
    std::optional<Worth> worth{};
    /// How it is launched, of the rungs from now to layout; null: it is no launch. Shared by rungs of one step.
    std::shared_ptr<const LaunchedWay> launched{};
    /// Of modules on GPUs of their own that the target launches; null: it is no such rung.
    std::shared_ptr<const groups::Placing> placing{};
    std::string planned{};  ///< then, what it is planned for: planned_for() of groups_words.hpp
};

/// Whether a factor between their steps is what the rung changes, not what one of them pads.
[[nodiscard]] inline bool are_comparable(const Rung& a, const Rung& b) {
    return a.padding.has_value() == b.padding.has_value();
}

struct Ladder {
    /// In their order. None, or only from `layout` on: nothing that the target launches runs the batch as it is.
    std::vector<Rung> rungs{};
    /// What the target does not launch, where it is faster than all rungs; then modules on GPUs of their own, which a
    /// target with grids launches.
    std::vector<Rung> beyond{};
    bool now_is_said = false;  ///< by --now; else the first rung is the best that is known today
    std::size_t headline = 0;  ///< the rung that is advised: the last that is worth its change (worth.hpp)
    bool on_groups = false;    ///< the last of `beyond` is worth its change over that, and advised in its place
    std::string why_none{};    ///< not empty: why there is no rung for what is run now
    std::vector<std::string> left_out{};  ///< for lack of time: other layouts, tuned cuts, own GPUs
    bool interrupted = false;             ///< whoever asked for the plan ended it early

    /// The one that is advised of those that flags launch: null where there is none.
    const Rung* launched() const;

    /// What the advised one is compared with: the fastest below it that the same runtime runs, padded if it is. Null
    /// where there is none.
    const Rung* compared() const;

    const Rung& now() const { return rungs.front(); }  ///< Pre: has_now()
    bool has_now() const { return why_none.empty(); }  ///< whether the first rung is what is run now
    bool is_now(const Rung& rung) const { return has_now() && &rung == &rungs.front(); }

    /// Whether the rung's step can be held against that of what is run now.
    bool is_over_now(const Rung& rung) const { return has_now() && are_comparable(now(), rung); }

    const Rung& best() const { return on_groups ? beyond.back() : rungs[headline]; }  ///< the advised one
};

/// Is told the rungs that are known so far, without advice, each time that there are more.
using OnLadder = std::function<void(const Ladder& so_far)>;

}  // namespace pipeweaver::planner
