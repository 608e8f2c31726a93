// Puts the report's template into the binary. CMake sets the path.
    .section .rodata
    .global pipeweaver_emit_report_template
    .global pipeweaver_emit_report_template_end
pipeweaver_emit_report_template:
    .incbin REPORT_TEMPLATE_FILE
pipeweaver_emit_report_template_end:
    .byte 0

    .section .note.GNU-stack, "", %progbits
