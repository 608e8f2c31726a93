// libFuzzer on one of the readers, -DPIPEWEAVER_FUZZ_TARGET=... (CMakeLists.txt). tools/corpus.py has the corpora.
#include "pipeweaver/base/error.hpp"
#include "tests/fuzz/readers.hpp"

#include <cstddef>
#include <cstdint>

#define PIPEWEAVER_TEXT_OF(name) #name
#define PIPEWEAVER_TEXT(name) PIPEWEAVER_TEXT_OF(name)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto read = pipeweaver::fuzz::readers().at(PIPEWEAVER_TEXT(PIPEWEAVER_FUZZ_TARGET));
    try {
        read({reinterpret_cast<const char*>(data), size});
    } catch (const pipeweaver::Error&) {  // refused with a line: as it should be
    }
    return 0;
}
