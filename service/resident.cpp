#include "service/resident.hpp"

#include <fstream>
#include <unistd.h>

namespace pipeweaver::service {

std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0, resident = 0;
    if (!(statm >> pages >> resident)) return 0;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace pipeweaver::service
