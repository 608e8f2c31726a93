// Random numbers by counter: the n-th number of a stream is a function of (seed, stream, n), so that a result
// depends on which job drew it and never on which thread ran the job.
#pragma once

#include <cstdint>

namespace pipeweaver {

/// SplitMix64's finalizer (Steele, Lea, Flood 2014): a bijection that spreads every input bit over the output.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// One stream of random numbers. Cheap to make: give each job its own, numbered by the job.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0) : key_(mix(seed ^ mix(stream))) {}

    /// The next 64 random bits.
    constexpr std::uint64_t next() { return mix(key_ ^ mix(counter_++)); }

    /// A number in [0, bound). Pre: bound > 0. Bias below bound / 2^64.
    constexpr std::uint64_t below(std::uint64_t bound) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((Wide{next()} * bound) >> 64);
    }

    /// A number in [0, 1), a multiple of 2^-53.
    constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

private:
    std::uint64_t key_;
    std::uint64_t counter_ = 0;
};

}  // namespace pipeweaver
