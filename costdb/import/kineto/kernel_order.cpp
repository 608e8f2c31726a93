#include "costdb/import/kineto/kernel_order.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

constexpr std::size_t longest_run = std::size_t{1} << 16;
constexpr std::int64_t read_ahead = 64;  // kernels of each run held while merging

bool before(const OrderedKernel& a, const OrderedKernel& b) {
    return std::tuple(a.device, a.stream, a.start_ns, a.number, a.reading) <
           std::tuple(b.device, b.stream, b.start_ns, b.number, b.reading);
}

bool same(const OrderedKernel& a, const OrderedKernel& b) { return a.number == b.number; }

[[noreturn]] void refuse() { fail(ErrorKind::io, "the temporary file for sorting kernels cannot be used"); }

/// A run of the file, read a few kernels at a time.
class Run {
public:
    Run(std::FILE* file, std::int64_t first, std::int64_t count) : file_(file), next_(first), left_(count) { fill(); }

    bool done() const { return at_ == held_.size(); }
    const OrderedKernel& front() const { return held_[at_]; }
    void pop() {
        if (++at_ == held_.size()) fill();
    }

private:
    void fill() {
        const auto count = std::min(left_, read_ahead);
        held_.resize(static_cast<std::size_t>(count));
        at_ = 0;
        if (count == 0) return;
        if (fseeko(file_, next_ * static_cast<std::int64_t>(sizeof(OrderedKernel)), SEEK_SET) != 0 ||
            std::fread(held_.data(), sizeof(OrderedKernel), held_.size(), file_) != held_.size())
            refuse();
        next_ += count;
        left_ -= count;
    }

    std::FILE* file_;
    std::int64_t next_, left_;
    std::vector<OrderedKernel> held_;
    std::size_t at_ = 0;
};

}  // namespace

void KernelOrder::add(const OrderedKernel& kernel) {
    run_.push_back(kernel);
    if (run_.size() == longest_run) spill();
}

void KernelOrder::spill() {
    if (run_.empty()) return;
    std::sort(run_.begin(), run_.end(), before);
    if (!file_) file_.reset(std::tmpfile());
    if (!file_ || std::fwrite(run_.data(), sizeof(OrderedKernel), run_.size(), file_.get()) != run_.size()) refuse();
    run_sizes_.push_back(static_cast<std::int64_t>(run_.size()));
    run_.clear();
}

void KernelOrder::for_each(const std::function<void(const OrderedKernel&)>& take) {
    spill();
    if (!file_) return;
    if (std::fflush(file_.get()) != 0) refuse();
    std::vector<Run> runs;
    std::int64_t first = 0;
    for (const auto size : run_sizes_) {
        runs.emplace_back(file_.get(), first, size);
        first += size;
    }
    const auto later = [&](std::size_t a, std::size_t b) { return before(runs[b].front(), runs[a].front()); };
    std::vector<std::size_t> heap;
    for (std::size_t i = 0; i < runs.size(); ++i) heap.push_back(i);
    std::make_heap(heap.begin(), heap.end(), later);
    std::optional<OrderedKernel> held;
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), later);
        auto& run = runs[heap.back()];
        if (held && !same(*held, run.front())) take(*held);
        held = run.front();
        run.pop();
        if (run.done())
            heap.pop_back();
        else
            std::push_heap(heap.begin(), heap.end(), later);
    }
    if (held) take(*held);
}

}  // namespace pipeweaver::costdb
