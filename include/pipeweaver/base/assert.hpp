// A bug stops the program where it is met; bad input never comes here (see error.hpp).
#pragma once

#include <cstdio>
#include <cstdlib>

/// Checks what must hold whatever the input was. On in all builds but Release.
#ifdef NDEBUG
#define PIPEWEAVER_ASSERT(condition) static_cast<void>(0)
#else
#define PIPEWEAVER_ASSERT(condition) \
    ((condition)                     \
         ? static_cast<void>(0)      \
         : (std::fprintf(stderr, "%s:%d: bug: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort()))
#endif
