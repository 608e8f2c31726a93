// How samples come to the GPUs: what a loader does to each, what that takes, and how many workers do it.
//
// Units        Duration is integer nanoseconds.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/loader/replay.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::loader {

/// What a stage of a loader runs on.
enum class On : std::uint8_t {
    storage,  ///< waits for a disk or a network, beside any number of others
    core,     ///< a core of the host
    copy      ///< a thread that hands packs on to the GPU, one at a time
};
[[nodiscard]] std::string_view name_of(On on);

/// What a stage takes, added up over a pack and what is in it.
struct Rates {
    Duration pack{}, sample{};
    Duration token{};                  ///< of text
    Duration image{}, megapixel{};     ///< of images, at their own size where that is known
    Duration clip{}, clip_second{};    ///< of videos
    Duration audio{}, audio_second{};  ///< of pieces of sound

    friend bool operator==(const Rates&, const Rates&) = default;
};

struct Stage {
    std::string name;
    On on = On::core;
    Rates rates;
    std::string source;  ///< where the rates are from; empty: not said

    friend bool operator==(const Stage&, const Stage&) = default;
};

struct Loader {
    std::string name;
    Queue queue;
    Taking taking;
    std::vector<Stage> stages;  ///< in the order that a worker does them on a sample; those that copy come last

    friend bool operator==(const Loader&, const Loader&) = default;
};

/// The loaders that ship: their storage's name, and what they assume, with sources (docs/input.md).
[[nodiscard]] const std::vector<Loader>& loaders();

/// A loader of loaders() by its name, or a file ("pipeweaver-loader/1", docs/input.md), JSON or YAML. Throws
/// Error{input} for an unknown name, naming the nearest, and for what is not as the format says; Error{io}.
[[nodiscard]] Loader find_loader(const std::string& text);
[[nodiscard]] Loader parse_loader(const JsonDocument& document);

/// Of a replica in one step, at most: 100 hours. More is counted as that much, so that no sum overflows.
constexpr Duration most_work{std::int64_t{360'000} * 1'000'000'000};

/// The sum, and no more than most_work. Pre: both are at most that.
[[nodiscard]] constexpr Duration add_work(Duration a, Duration b) { return a + b < most_work ? a + b : most_work; }

/// What a stage takes for one sample, without what it takes for its pack.
[[nodiscard]] Duration time_of(const Stage& stage, const workloads::Sample& sample, const workloads::Model& model);

/// A microbatch as the loader's workers make it: sample by sample, in each stage by stage, and then what the stages
/// take for the pack.
[[nodiscard]] Pack pack_of(const Loader& loader, const workloads::Microbatch& microbatch,
                           const std::vector<workloads::Sample>& samples, const workloads::Model& model);

/// What of these samples no stage has a rate for, a sentence each: they are counted as nothing.
[[nodiscard]] std::vector<std::string> not_counted(const Loader& loader, const std::vector<workloads::Sample>& samples);

}  // namespace pipeweaver::loader
