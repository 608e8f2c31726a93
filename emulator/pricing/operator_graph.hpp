// Kernels on the streams of one or more GPUs: what a pass launches, and when each kernel starts.
//
// Streams      run their kernels one after the other in launch order. A kernel starts when the kernel before it on its
//              stream has ended, and all that it waits for: kernels launched before it, and inputs. A kernel on
//              no_stream starts as soon as what it waits for is there: a transfer that does not contend.
// State        what goes into a graph is the time at which each stream is free and the time at which each input is
//              there; what comes out, the time at which each stream is free again and the time of each output. Outputs
//              of one graph are the inputs of the next.
// Memory       follows the launch order, as the allocators of frameworks do: a kernel takes `acquire` when it is
//              launched and gives `release` back before the next one is launched, whatever the streams do meanwhile.
// Durations    do not depend on times. What is slowed down by running beside communication has its longer duration
//              when the graph is built.
//
// Units        Duration is whole nanoseconds, Bytes is bytes.
// Size         32 bytes a kernel, 4 a wait; a replay needs 8 more a kernel.
// Threads      a graph that nobody adds to may be read by any number of threads.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// Something that a kernel can wait for.
class Signal {
public:
    static constexpr Signal kernel(std::uint32_t index) { return Signal(index); }
    static constexpr Signal input(std::uint32_t index) { return Signal(index | input_bit); }

    constexpr bool is_input() const { return (code_ & input_bit) != 0; }
    constexpr std::uint32_t index() const { return code_ & ~input_bit; }

    friend constexpr bool operator==(Signal, Signal) = default;

private:
    static constexpr std::uint32_t input_bit = std::uint32_t{1} << 31;
    constexpr explicit Signal(std::uint32_t code) : code_(code) {}
    std::uint32_t code_;
};

inline constexpr std::uint32_t no_stream = UINT32_MAX;

struct Kernel {
    Duration duration{};
    Bytes acquire, release;
    std::uint32_t stream = 0;
    std::uint32_t first_wait = 0;  ///< of its waits, which end where the next kernel's begin
};

/// A graph in launch order; it can have no cycle, since what is waited for was launched before.
class OperatorGraph {
public:
    /// Pre: streams >= 1.
    OperatorGraph(std::uint32_t streams, std::uint32_t inputs) : streams_(streams), inputs_(inputs) {}

    /// Launches a kernel on `stream` after all others. Pre: duration, acquire, release >= 0, stream < streams() or
    /// no_stream, the signals are kernels launched before and inputs; a kernel on no_stream waits for something.
    Signal launch(std::uint32_t stream, Duration duration, std::span<const Signal> waits = {}, Bytes acquire = {},
                  Bytes release = {});
    Signal launch(std::uint32_t stream, Duration duration, std::initializer_list<Signal> waits, Bytes acquire = {},
                  Bytes release = {}) {
        return launch(stream, duration, std::span(waits.begin(), waits.size()), acquire, release);
    }

    /// The next output is when `signal` is there. Pre: as for waits.
    void add_output(Signal signal);

    /// Appends `later`, whose inputs are this graph's outputs. Pre: streams equal, later.inputs() == outputs().size().
    void append(const OperatorGraph& later);

    void reserve(std::size_t kernels, std::size_t waits);

    std::uint32_t streams() const { return streams_; }
    std::uint32_t inputs() const { return inputs_; }
    std::span<const Kernel> kernels() const { return kernels_; }
    std::span<const Signal> outputs() const { return outputs_; }
    std::span<const Signal> waits(std::size_t kernel) const {
        const std::size_t end = kernel + 1 < kernels_.size() ? kernels_[kernel + 1].first_wait : waits_.size();
        return {waits_.data() + kernels_[kernel].first_wait, waits_.data() + end};
    }

    /// Bytes that the graph holds.
    std::size_t bytes() const;

private:
    std::uint32_t streams_, inputs_;
    std::vector<Kernel> kernels_;
    std::vector<Signal> waits_, outputs_;
};

/// When streams are free, then when inputs or outputs are there; nanoseconds.
using StreamState = std::vector<std::int64_t>;

/// Replays every kernel: the ends of all of them go to `ends`, the state after the graph is returned. Pre:
/// before.size() == streams() + inputs(). Throws Error{input} where times exceed 63 bits. Time O(kernels + waits).
[[nodiscard]] StreamState replay(const OperatorGraph& graph, std::span<const std::int64_t> before,
                                 std::vector<std::int64_t>& ends);

}  // namespace pipeweaver::emulator
