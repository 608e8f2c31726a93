#include "workloads/embedded.hpp"

#include "pipeweaver/base/embedded.hpp"

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_workloads_catalogue[], pipeweaver_workloads_catalogue_end[];
extern const char pipeweaver_workloads_datasets[], pipeweaver_workloads_datasets_end[];
extern const char pipeweaver_workloads_clusters[], pipeweaver_workloads_clusters_end[];
extern const char pipeweaver_workloads_networks[], pipeweaver_workloads_networks_end[];
extern const char pipeweaver_workloads_public_models[], pipeweaver_workloads_public_models_end[];
}

namespace pipeweaver::workloads {

std::string_view embedded_catalogue() {
    return embedded_text(pipeweaver_workloads_catalogue, pipeweaver_workloads_catalogue_end);
}

std::string_view embedded_datasets() {
    return embedded_text(pipeweaver_workloads_datasets, pipeweaver_workloads_datasets_end);
}

std::string_view embedded_clusters() {
    return embedded_text(pipeweaver_workloads_clusters, pipeweaver_workloads_clusters_end);
}

std::string_view embedded_networks() {
    return embedded_text(pipeweaver_workloads_networks, pipeweaver_workloads_networks_end);
}

std::string_view embedded_public_models() {
    return embedded_text(pipeweaver_workloads_public_models, pipeweaver_workloads_public_models_end);
}

}  // namespace pipeweaver::workloads
