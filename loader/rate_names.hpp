// The rates of a stage by their keys in files.
#pragma once

#include "pipeweaver/loader/loader.hpp"

#include <array>
#include <string_view>

namespace pipeweaver::loader {

struct RateName {
    std::string_view unit;  ///< "clip_second": in files clip_second_ns and, of what is read, clip_second_bytes
    Duration Rates::*rate;
};

inline constexpr std::array rate_names{RateName{"pack", &Rates::pack},
                                       RateName{"sample", &Rates::sample},
                                       RateName{"token", &Rates::token},
                                       RateName{"image", &Rates::image},
                                       RateName{"megapixel", &Rates::megapixel},
                                       RateName{"clip", &Rates::clip},
                                       RateName{"clip_second", &Rates::clip_second},
                                       RateName{"audio", &Rates::audio},
                                       RateName{"audio_second", &Rates::audio_second}};

}  // namespace pipeweaver::loader
