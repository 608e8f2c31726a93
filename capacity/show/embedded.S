// Puts the template of a study's page into the binary. CMake sets the path.
    .section .rodata
    .global pipeweaver_capacity_report_template
    .global pipeweaver_capacity_report_template_end
pipeweaver_capacity_report_template:
    .incbin REPORT_TEMPLATE_FILE
pipeweaver_capacity_report_template_end:
    .byte 0

    .section .note.GNU-stack, "", %progbits
