// The kernels of a trace in the order of their start on each stream, in bounded memory: sorted runs go to a temporary
// file and are merged from there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

namespace pipeweaver::costdb {

struct OrderedKernel {
    std::int64_t device = 0, stream = 0, start_ns = 0;
    std::int64_t number = 0;   ///< place in the file
    std::int64_t reading = 0;  ///< which reading of the file found it
    std::int64_t duration_ns = 0;
    std::int64_t row = 0;
};

class KernelOrder {
public:
    void add(const OrderedKernel& kernel);

    /// Gives all of them by (device, stream, start, place in the file), each place in the file once, as its last
    /// reading said. Throws Error{io} where the temporary file does not hold them.
    void for_each(const std::function<void(const OrderedKernel&)>& take);

private:
    void spill();

    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::vector<OrderedKernel> run_;
    std::vector<std::int64_t> run_sizes_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace pipeweaver::costdb
