#include "emit/targets/launch_script.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit {

using launch::Launch;

namespace {

std::string figures(const Launch& of) {
    const std::size_t fullest = of.fullest();
    return fmt::format("step {} in our emulation; the fullest GPU holds {} of {}", human(of.step),
                       human(of.peak[fullest]), human(of.usable));
}

}  // namespace

std::string comment(const std::string& text) {
    std::string line = text;
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return "# " + line + "\n";
}

std::string kind_of(const Launch& of, const std::string& module, std::string_view usual) {
    const auto kind = of.kinds.find(module);
    return kind == of.kinds.end() ? std::string(usual) : kind->second;
}

std::string expanding_segments(const Launch& of) {
    return comment(
               fmt::format("Microbatches have {} shapes: without this an allocator may take a quarter of a GPU above "
                           "what is allocated.",
                           of.shapes)) +
           "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n";
}

std::string launch_head(const Launch& of, std::string_view what) {
    return comment(fmt::format("{} for {} on {} x {}, rung {}: {}", what, of.model, of.degrees.gpus(), of.device,
                               of.rung, of.way)) +
           comment(figures(of));
}

}  // namespace pipeweaver::emit
