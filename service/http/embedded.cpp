#include "service/http/embedded.hpp"

extern "C" {
extern const char pipeweaver_service_page[], pipeweaver_service_page_end[];
extern const char pipeweaver_service_openapi[], pipeweaver_service_openapi_end[];
}

namespace pipeweaver::service {

std::string page_text() { return {pipeweaver_service_page, pipeweaver_service_page_end}; }

std::string openapi_text() { return {pipeweaver_service_openapi, pipeweaver_service_openapi_end}; }

}  // namespace pipeweaver::service
