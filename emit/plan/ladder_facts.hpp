// What a plan's ladder says, computed once for text, JSON and the report.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_parts.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// Tokens of the backbone a second, of all GPUs.
[[nodiscard]] double tokens_per_second(const planner::Rung& rung);

/// What time or a signal left out of the plan, and what is done about it: a phrase; none: nothing.
[[nodiscard]] std::string left_out_text(const planner::Plan& plan);

/// What ended the searches, how far they came, and how far the plan may be from the best order: a phrase.
[[nodiscard]] std::string search_text(const planner::Plan& plan);

/// What all tokens of the job take as things are, and on the best rung: a phrase each; none: it was not asked.
[[nodiscard]] std::vector<std::string> training_lines(const planner::Job& job, const planner::Ladder& ladder);

/// What feeds the advised step, and, where its GPUs wait, that no other figure has that; none: no loader was given.
[[nodiscard]] std::vector<std::string> fed_lines(const planner::Plan& plan);

/// How many times the rung's step is in that of what is run now: "1.306x"; "-" where one of them alone is
/// padded, or nothing runs now.
[[nodiscard]] std::string over_now_text(const planner::Ladder& ladder, const planner::Rung& rung);

/// The rung's way; of the first, where nobody says what is run, "best known today: " before it.
[[nodiscard]] std::string named_way(const planner::Ladder& ladder, const planner::Rung& rung);

/// "padded to 8192 tokens, 12.0 % of them padding", with the items of encoders; nothing where it is not padded.
[[nodiscard]] std::string rung_padding_text(const planner::Rung& rung);

/// What the plan's costs and its in-situ factors rest on, and how often the advised rung is faster than the easier one
/// if they are wrong: a phrase. Pre: the plan has a ladder.
[[nodiscard]] std::string trust_text(const planner::Job& job, const planner::Plan& plan);

/// Both ends of the steps of what runs now and of the advised rung, by how layers are launched, and whether they end in
/// another order: a phrase; nothing where no rung has two.
[[nodiscard]] std::string host_text(const planner::Ladder& ladder);

/// What rungs would bring that come after the advised one and are not worth their change: a phrase each.
[[nodiscard]] std::vector<std::string> not_worth_lines(const planner::Ladder& ladder);

/// What is said where what is run now is advised: a phrase.
[[nodiscard]] std::string keep_text(const planner::Ladder& ladder);

/// What is left on the fullest GPU, against what an allocator may take where shapes vary.
struct Room {
    std::size_t shapes = 0;         ///< of microbatches
    Bytes left{}, memory{};         ///< of the fullest GPU: what no tensor of the step takes, and all of it
    bool is_at_risk = false;        ///< less is left than varying shapes may take (emulator/reserve.hpp)
    std::string_view set_as{};      ///< who has the allocator's segments expand: "the files do"; empty: nobody
    std::string_view not_set_by{};  ///< who launches the rung without that; empty: see `set_as`
    bool by_auto = true;            ///< `--headroom auto` keeps it: the job's own layout does not pad
};

/// What the rung is launched in, else the plan's own.
[[nodiscard]] const emulator::Setup& setup_of(const planner::Job& job, const planner::Rung& rung);

/// Of a rung whose microbatches have several shapes; none: they have one, or are padded to one. `batch`: of a rung that
/// is launched with no batch of its own.
[[nodiscard]] std::optional<Room> room_of(const planner::Job& job, const planner::Batch& batch,
                                          const planner::Rung& rung);

/// The room in words; nothing where there is none.
[[nodiscard]] std::string room_text(const std::optional<Room>& room);

/// What has to be done for a rung, in the order in which it is done, a phrase each: "source megatron/megatron.sh in
/// your launch script: ...", "feed assignment.json to a sampler", "reshard the checkpoint to ...". Files are of the
/// plan's folder.
[[nodiscard]] std::vector<std::string> rung_steps(const planner::Job& job, const planner::Ladder& ladder,
                                                  const planner::Rung& rung);

/// What else may be done, and what is not written and why: phrases that are no steps.
[[nodiscard]] std::vector<std::string> rung_hints(const planner::Job& job, const planner::Ladder& ladder,
                                                  const planner::Rung& rung);

/// The steps, numbered where there are several, and the hints.
[[nodiscard]] std::vector<std::string> what_to_do(const planner::Job& job, const planner::Ladder& ladder,
                                                  const planner::Rung& rung);

}  // namespace pipeweaver::emit
