// The published networks and models that ship with the program.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <span>

namespace pipeweaver::workloads {

/// All networks of the catalogue, in its order. Parsed once; threads may share it.
[[nodiscard]] std::span<const Architecture> architectures();

/// The network of that name. Throws Error{input} naming the nearest.
[[nodiscard]] const Architecture& architecture(std::string_view name);

/// Names of all models that `model()` knows: multimodal ones, and every language model, vision encoder or diffusion
/// transformer alone. In catalogue order.
[[nodiscard]] std::vector<std::string> model_names();

/// The model of that name. Throws Error{input} naming the nearest.
[[nodiscard]] Model model(std::string_view name);

/// The catalogue's name of the model that people call so: an owner and a name ("Qwen/Qwen2.5-7B-Instruct"), a folder
/// whose last part is the name ("/models/Llama-3.1-8B/") or a checkpoint in it, in any case, with '_' or '-' for '.',
/// and with what releases of equal sizes have behind it (-Instruct, -Base, -Chat, -Thinking, ...). Models of equal
/// sizes may be one. Empty: none is known by it.
[[nodiscard]] std::string model_called(std::string_view name);

/// The model that a release with weights of fewer than 16 bits was made of, "Qwen2.5-7B-Instruct-AWQ", as
/// model_called(). Empty: it is no such release, or none is known.
[[nodiscard]] std::string model_of_fewer_bits(std::string_view name);

/// Whether such a release is called so, of whatever model.
[[nodiscard]] bool has_fewer_bits(std::string_view name);

/// The catalogue's name of the model whose name is most like this one, for errors. Empty: none is near.
[[nodiscard]] std::string model_like(std::string_view name);

/// A model as --model names it: of the catalogue, by its name or as model_called() knows it, a model file, or
/// hf:CONFIG.json. Errors name the option that it is of. Throws Error{input}, Error{io}.
[[nodiscard]] Model find_model(const std::string& name, std::string_view option = "--model");

/// Where `name` is a Hugging Face configuration of a kind that find_model() refuses, a model file that begins with what
/// could be read of it, and is refused until it is finished; else nothing. Throws Error{input}, Error{io}.
[[nodiscard]] std::string begun_model(const std::string& name);

/// Positions of a microbatch for a generator alone, where nobody says it (Model::microbatch_tokens_of_file is 0) and
/// the samples of a step are given: 16384, or the longest clip that its rule makes. Steps of 256 clips of 5 s or images
/// of 1024 x 1024 pixels on 64 H100s took 1.1 to 1.4 times as long with 131072: more microbatches fill pipelines, and
/// small ones leave memory for layouts that need none.
[[nodiscard]] std::int64_t usual_latents(const Model& model);

/// A catalogue entry that cannot be used, and why.
struct Refused {
    std::string name;
    std::string reason;
};

/// Entries of the catalogue that this version does not represent (VAEs, U-Nets, tokenizers), each with its reason.
[[nodiscard]] std::span<const Refused> refused();

}  // namespace pipeweaver::workloads
