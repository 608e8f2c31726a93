#include "service/http/embedded.hpp"

#include <array>

extern "C" {
extern const char pipeweaver_service_page[], pipeweaver_service_page_end[];
extern const char pipeweaver_ui_page[], pipeweaver_ui_page_end[];
extern const char pipeweaver_ui_app[], pipeweaver_ui_app_end[];
extern const char pipeweaver_ui_play[], pipeweaver_ui_play_end[];
extern const char pipeweaver_ui_play_page[], pipeweaver_ui_play_page_end[];
extern const char pipeweaver_ui_chart[], pipeweaver_ui_chart_end[];
extern const char pipeweaver_service_openapi[], pipeweaver_service_openapi_end[];
}

namespace pipeweaver::service {

std::string page_text() { return {pipeweaver_service_page, pipeweaver_service_page_end}; }

std::span<const UiFile> ui_files() {
    static const std::array<UiFile, 5> all{
        {{"/", "text/html", {pipeweaver_ui_page, pipeweaver_ui_page_end}},
         {"/ui/app.js", "text/javascript", {pipeweaver_ui_app, pipeweaver_ui_app_end}},
         {"/ui/play.js", "text/javascript", {pipeweaver_ui_play, pipeweaver_ui_play_end}},
         {"/ui/play_page.js", "text/javascript", {pipeweaver_ui_play_page, pipeweaver_ui_play_page_end}},
         {"/ui/chart.js", "text/javascript", {pipeweaver_ui_chart, pipeweaver_ui_chart_end}}}};
    return all;
}

std::string openapi_text() { return {pipeweaver_service_openapi, pipeweaver_service_openapi_end}; }

}  // namespace pipeweaver::service
