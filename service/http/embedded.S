// Puts the pages and the OpenAPI document into the binary. CMake sets the paths.
    .section .rodata
    .global pipeweaver_service_page
    .global pipeweaver_service_page_end
    .global pipeweaver_service_openapi
    .global pipeweaver_service_openapi_end
pipeweaver_service_page:
    .incbin PAGE_FILE
pipeweaver_service_page_end:
    .byte 0
pipeweaver_service_openapi:
    .incbin OPENAPI_FILE
pipeweaver_service_openapi_end:
    .byte 0

.macro file name, path
    .global pipeweaver_ui_\name
    .global pipeweaver_ui_\name\()_end
pipeweaver_ui_\name:
    .incbin \path
pipeweaver_ui_\name\()_end:
    .byte 0
.endm
    file page, UI_FOLDER "/page.html"
    file app, UI_FOLDER "/app.js"
    file play, UI_FOLDER "/play.js"
    file chart, UI_FOLDER "/chart.js"

    .section .note.GNU-stack, "", %progbits
