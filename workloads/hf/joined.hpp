// Models of several parts: a row for each `model_type` says where they are and how they are joined.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/joining.hpp"

namespace pipeweaver::workloads::hf {

struct JoinedRow {
    std::string_view type;
    std::string_view start_from;   ///< the catalogue's most alike
    std::string_view text_type{};  ///< where the language model's part does not say it
    std::string_view vision_type{};
    std::string_view audio_type{};
    bool audio_optional = false;  ///< read where the file has it
    std::string_view inside{};    ///< the object that holds the parts; empty: the file
    std::int64_t (*merge)(const Towers&) = nullptr;
    ModelEdge (*projector)(const Towers&) = nullptr;          ///< its widths
    void (*images)(const Towers&, Model&) = nullptr;          ///< how images become tokens
    void (*videos)(const Towers&, Model&) = nullptr;          ///< and videos; none: they are not read
    std::string_view (*text_type_by)(const Part&) = nullptr;  ///< of a file that says its language model by a release
    void (*change)(Towers&) = nullptr;                        ///< what the file says of an encoder outside its part
};

[[nodiscard]] const JoinedRow* find_joined(std::string_view type);
[[nodiscard]] std::vector<std::string> joined_types();

/// The model of such a file and of the image processors beside it, its networks without names. Throws Error{input}.
[[nodiscard]] Model joined_model(const Part& root, const JoinedRow& row, const Processors& processors);

}  // namespace pipeweaver::workloads::hf
