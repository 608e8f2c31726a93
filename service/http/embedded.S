// Puts the pages and the OpenAPI document into the binary. CMake sets the paths.
#define EMBEDDED(name, path) .global name; .global name##_end; name: .incbin path; name##_end: .byte 0

    .section .rodata
EMBEDDED(pipeweaver_service_page, PAGE_FILE)
EMBEDDED(pipeweaver_service_openapi, OPENAPI_FILE)
EMBEDDED(pipeweaver_ui_page, UI_PAGE)
EMBEDDED(pipeweaver_ui_app, UI_APP)
EMBEDDED(pipeweaver_ui_play, UI_PLAY)
EMBEDDED(pipeweaver_ui_play_page, UI_PLAY_PAGE)
EMBEDDED(pipeweaver_ui_chart, UI_CHART)

    .section .note.GNU-stack, "", %progbits
