/* The default cost database as bytes of the program; the path comes from CMake. */
        .section .rodata
        .balign 16
        .global pipeweaver_costdb_begin
        .global pipeweaver_costdb_end
pipeweaver_costdb_begin:
        .incbin PIPEWEAVER_COSTDB_DATA
pipeweaver_costdb_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
