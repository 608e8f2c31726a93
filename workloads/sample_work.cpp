#include "workloads/sample_work.hpp"

#include "pipeweaver/workloads/counts.hpp"

#include <array>

namespace pipeweaver::workloads {

SampleWork::SampleWork(const Model& model) : model_(model) {
    for (const Module& module : model.modules) {
        const Architecture& network = module.architecture;
        Flops& flops = flops_.emplace_back();
        for (std::int64_t layer = 0; layer < network.layers; ++layer) {
            flops.of_position += layer_flops(network, layer, 1, 0);
            flops.of_pair += layer_flops(network, layer, 0, 1);
        }
        flops.of_position += head_flops(network, 1);
    }
}

double SampleWork::of(const Sample& sample, std::size_t m) const {
    double work = by_microbatch(m) ? of_length(m, sample.tokens()) : 0;
    for (const Item& item : sample.items)
        if (takes(model_.modules[m], item))
            for (std::int64_t span = 0; span < item.spans; ++span)
                work += of_length(m, (item.patches + span) / item.spans);
    return work;
}

double SampleWork::of_length(std::size_t m, std::int64_t length) const {
    const std::array lengths{length};
    return flops_[m].of_position * static_cast<double>(length) +
           flops_[m].of_pair * attention_pairs(model_.modules[m].architecture, lengths);
}

}  // namespace pipeweaver::workloads
