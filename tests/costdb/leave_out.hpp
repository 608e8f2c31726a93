// The library's leave-out, under the tests' namespace.
#pragma once

#include "pipeweaver/costdb/leave_out.hpp"

namespace pipeweaver::costdb::testing {}
