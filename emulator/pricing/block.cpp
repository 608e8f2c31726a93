#include "pipeweaver/emulator/block.hpp"

#include "emulator/pricing/checked_sum.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

MaxPlusMatrix MaxPlusMatrix::identity(std::size_t size) {
    MaxPlusMatrix result(size, size);
    for (std::size_t i = 0; i < size; ++i) result.at(i, i) = 0;
    return result;
}

MaxPlusMatrix MaxPlusMatrix::then(const MaxPlusMatrix& later) const {
    PIPEWEAVER_ASSERT(later.columns_ == rows_);
    MaxPlusMatrix result(later.rows_, columns_);
    for (std::size_t i = 0; i < later.rows_; ++i)
        for (std::size_t k = 0; k < rows_; ++k) {
            const std::int64_t second = later.at(i, k);
            if (second == never) continue;
            for (std::size_t j = 0; j < columns_; ++j)
                if (at(k, j) != never) result.at(i, j) = std::max(result.at(i, j), checked_sum(at(k, j), second));
        }
    return result;
}

StreamState MaxPlusMatrix::operator()(std::span<const std::int64_t> in) const {
    PIPEWEAVER_ASSERT(in.size() == columns_);
    StreamState out(rows_, never);
    for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t j = 0; j < columns_; ++j)
            if (at(i, j) != never) out[i] = std::max(out[i], checked_sum(at(i, j), in[j]));
    return out;
}

namespace {

MemoryEffect composed(const MemoryEffect& first, const MemoryEffect& second) {
    static_cast<void>(checked_sum(first.net.count, second.net.count));
    static_cast<void>(checked_sum(first.net.count, second.peak.count));
    return first.then(second);
}

}  // namespace

Block Block::then(const Block& later) const {
    return {times.then(later.times), composed(memory, later.memory), kernels + later.kernels};
}

Block Block::repeated(std::uint64_t n) const {
    PIPEWEAVER_ASSERT(n >= 1 && times.rows() == times.columns());
    Block power = *this;  // of 1, 2, 4, ... in a row
    for (; n % 2 == 0; n /= 2) power = power.then(power);
    Block result = power;
    while ((n /= 2) > 0) {
        power = power.then(power);
        if (n % 2 == 1) result = result.then(power);
    }
    return result;
}

Duration Block::duration() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < times.rows(); ++i)
        for (std::size_t j = 0; j < times.columns(); ++j) last = std::max(last, times.at(i, j));
    return Duration{last};
}

Block block_of(const OperatorGraph& graph) {
    const std::size_t width = graph.streams() + graph.inputs();
    const auto kernels = graph.kernels();
    // Row by row, for each kernel's end: the longest paths from each stream's and input's time.
    std::vector<std::int64_t> ends(kernels.size() * width, MaxPlusMatrix::never);
    std::vector<const std::int64_t*> last(graph.streams(), nullptr);  // the row of the last kernel on each stream
    const auto merge = [&](std::int64_t* row, const std::int64_t* other) {
        for (std::size_t j = 0; j < width; ++j) row[j] = std::max(row[j], other[j]);
    };
    const auto merge_signal = [&](std::int64_t* row, Signal signal) {
        if (signal.is_input())
            row[graph.streams() + signal.index()] = std::max<std::int64_t>(row[graph.streams() + signal.index()], 0);
        else
            merge(row, ends.data() + signal.index() * width);
    };
    const auto merge_stream = [&](std::int64_t* row, std::size_t stream) {
        if (last[stream])
            merge(row, last[stream]);
        else
            row[stream] = std::max<std::int64_t>(row[stream], 0);
    };
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        std::int64_t* row = ends.data() + i * width;
        if (kernels[i].stream != no_stream) merge_stream(row, kernels[i].stream);
        for (const Signal wait : graph.waits(i)) merge_signal(row, wait);
        for (std::size_t j = 0; j < width; ++j)
            if (row[j] != MaxPlusMatrix::never) row[j] = checked_sum(row[j], kernels[i].duration.count());
        if (kernels[i].stream != no_stream) last[kernels[i].stream] = row;
    }
    Block block{MaxPlusMatrix(graph.streams() + graph.outputs().size(), width), memory_of(graph), kernels.size()};
    for (std::size_t s = 0; s < graph.streams(); ++s) merge_stream(&block.times.at(s, 0), s);
    for (std::size_t o = 0; o < graph.outputs().size(); ++o)
        merge_signal(&block.times.at(graph.streams() + o, 0), graph.outputs()[o]);
    return block;
}

}  // namespace pipeweaver::emulator
