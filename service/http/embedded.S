// Puts the page and the OpenAPI document into the binary. CMake sets the paths.
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

    .section .note.GNU-stack, "", %progbits
