#include "apps/costdb.hpp"
namespace pipeweaver::apps { void add_costdb_commands(CLI::App&) {} }
