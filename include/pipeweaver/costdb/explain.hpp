// Why a matrix product takes as long as it does, and which products near it are faster per FLOP.
//
// Times        What the database answers, beside what it divides by before it interpolates (database.hpp): launch +
//              max(operations, traffic). On Ampere the operations are waves of output tiles. In later devices' tables
//              tiles tell jumps from other pairs worse than the roofline alone: nothing is said of tiles there.
// Bound        By the device's peak and bandwidth alone, or by the launch where that is longer than both.
// Losses       Factors of that base over the operations in whole waves of the fastest tile (of later devices: at the
//              peak); their product is the whole. A product whose base is operations has those of its launch, its last
//              wave, what its tiles have outside of the output (alignment), and its kernel: a smaller tile, and the
//              adding of a split k. One whose base is traffic has launch and memory.
// Causes       From one product to another the logarithm of the base's time per FLOP changes by a sum: the launch and
//              the rest, each weighed by its logarithmic mean (LMDI, Ang, Energy Policy 33, 2005), and of the rest a
//              part for each loss. The cause is the part that changes most in the direction of the whole. Changes
//              below least_change have none. Measured times have no part in it: where the base does not see what a
//              table has, no cause is known.
// Source       Bolt (arXiv 2110.15238) searches CUTLASS's templates by what makes them fast; the decomposition is ours.
// Determinism  a function of the arguments.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// What holds a product back.
enum class Bound : std::uint8_t { compute, memory, launch };
[[nodiscard]] std::string_view name_of(Bound bound);

/// Why one product takes longer or shorter per FLOP than another.
enum class Cause : std::uint8_t {
    launch,     ///< the fixed time of a kernel
    memory,     ///< bytes per FLOP, where both bases are traffic
    crossover,  ///< the base of one is operations, of the other traffic
    wave,       ///< the last wave of tiles, or multiprocessors without any
    alignment,  ///< tiles that reach beyond the output
    kernel      ///< another tile or another split of k
};
[[nodiscard]] std::string_view name_of(Cause cause);

/// Factors of the time; 1: nothing is lost.
struct Losses {
    double launch = 1, memory = 1, wave = 1, alignment = 1, kernel = 1;

    double all() const { return launch * memory * wave * alignment * kernel; }
};

/// How a product's output lies on the multiprocessors.
struct Tiling {
    std::int64_t rows = 0, columns = 0;  ///< of a tile
    std::int64_t parts = 1;              ///< of k, each with tiles of its own
    std::int64_t tiles = 0;              ///< of all parts
    std::int64_t multiprocessors = 0;
    double waves = 0;  ///< tiles / multiprocessors
};

/// Times in microseconds.
struct Explanation {
    Gemm product;
    Cost cost;
    double flops = 0;
    double tflops_per_s = 0;   ///< at that cost
    double share_of_peak = 0;  ///< 1: the dense peak of the number format
    double peak_us = 0;        ///< the operations at the peak
    double traffic_bytes = 0;  ///< each matrix once
    double traffic_us = 0;     ///< that traffic at the whole bandwidth
    Bound bound = Bound::compute;
    Losses losses;
    std::optional<Tiling> tiling;  ///< none: nothing is known of tiles on this device
    bool aligned = true;           ///< rows of the operands begin at multiples of 16 bytes, as fast kernels need
};

/// Why `product` costs what it does. Throws Error{input} as CostDatabase::cost(), and for a pass other than forward.
[[nodiscard]] Explanation explain(const CostDatabase& database, const Gemm& product);

/// The least change of the time per FLOP that has a cause.
inline constexpr double least_change = 1.09;

/// Why `to` takes another time per FLOP than `from`; none: no cause known. Pre: sizes >= 1, forward.
[[nodiscard]] std::optional<Cause> cause_between(const CostDatabase& database, const Gemm& from, const Gemm& to);

/// As cause_between(), and none where the base has `there` slower: what slows it is not what makes it faster.
[[nodiscard]] std::optional<Cause> cause_of_gain(const CostDatabase& database, const Explanation& here,
                                                 const Explanation& there);

/// The least gain that is told.
inline constexpr double least_gain = 0.001;

/// Sizes within an eighth of `size`, itself left out, at multiples of its 64th rounded down to a power of two (of 8 at
/// least). Rising.
[[nodiscard]] std::vector<std::int64_t> sizes_near(std::int64_t size);

/// A product that is faster per FLOP than the one asked for.
struct Neighbour {
    std::string axis;  ///< "m", "n", "k"
    Explanation there;
    double gain = 0;             ///< times per FLOP, here over there, less 1; above least_gain
    bool beyond_error = false;   ///< whether the gain is more than either answer's error
    std::optional<Cause> cause;  ///< none: not known
};

/// For each axis the fastest per FLOP of sizes_near(), and of n and k half and double: what half or twice the tensor
/// parallel GPUs have. Sizes that would last above 50 days or so, and
/// axes where none gains least_gain, are left out.
[[nodiscard]] std::vector<Neighbour> faster_neighbours(const CostDatabase& database, const Explanation& here);

}  // namespace pipeweaver::costdb
