// Puts the report's template and the style of all reports into the binary. CMake sets the paths.
    .section .rodata
    .global pipeweaver_emit_report_template
    .global pipeweaver_emit_report_template_end
pipeweaver_emit_report_template:
    .incbin REPORT_TEMPLATE_FILE
pipeweaver_emit_report_template_end:
    .byte 0

    .global pipeweaver_emit_report_style
    .global pipeweaver_emit_report_style_end
pipeweaver_emit_report_style:
    .incbin REPORT_STYLE_FILE
pipeweaver_emit_report_style_end:
    .byte 0

    .section .note.GNU-stack, "", %progbits
