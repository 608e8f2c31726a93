#include "pipeweaver/emulator/pass_cost.hpp"

namespace pipeweaver::emulator {

Duration PassCost::total() const {
    Duration sum{};
    for (const auto& row : shares)
        for (const Share& share : row) sum += share.time;
    return sum;
}

PassCost& PassCost::operator+=(const PassCost& other) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < bases; ++b) {
            shares[c][b].time += other.shares[c][b].time;
            shares[c][b].error_ns += other.shares[c][b].error_ns;
        }
    time += other.time;
    kernels += other.kernels;
    for (std::size_t s = 0; s < streams; ++s) exposed[s] += other.exposed[s];
    return *this;
}

PassCost operator*(std::int64_t times, const PassCost& cost) {
    PassCost product = cost;
    for (auto& row : product.shares)
        for (auto& share : row) {
            share.time *= times;
            share.error_ns *= static_cast<double>(times);
        }
    product.time *= times;
    product.kernels *= times;
    for (Duration& waited : product.exposed) waited *= times;
    return product;
}

}  // namespace pipeweaver::emulator
