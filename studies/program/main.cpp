// pipeweaver_studies: measures what publications claim, and what plans gain over time. No part of the product.
#include "apps/command_line.hpp"
#include "studies/program/studies.hpp"

namespace {

using namespace pipeweaver;

apps::Program program() {
    return {.name = "pipeweaver_studies",
            .about = "measures what publications on training pipelines claim",
            .version = PIPEWEAVER_VERSION,
            .manual = {.synopsis = "STUDY [OPTION...]",
                       .description = "`pipeweaver_studies STUDY --help` says what a study measures, with examples. "
                                      "studies/README.md says which page has what it found.",
                       .see_also = {"studies/README.md", "pipeweaver bench --help"}},
            .commands = {studies::add_ablation, studies::add_budget, studies::add_memory, studies::add_packing,
                         studies::add_shift, studies::add_units, studies::add_waves}};
}

}  // namespace

int main(int argc, char** argv) { return apps::run_to_exit_status(program(), argc, argv); }
