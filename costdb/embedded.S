/* The default cost databases, one a device, as bytes of the program; the paths come from CMake. */
#define STORE(device)                       \
        .balign 16;                         \
        .global pipeweaver_costdb_##device; \
        .global pipeweaver_costdb_##device##_end; \
        pipeweaver_costdb_##device:         \
        .incbin DATA_##device;              \
        pipeweaver_costdb_##device##_end:   \
        .byte 0

        .section .rodata
        STORE(a100_pcie)
        STORE(a100_sxm)
        STORE(b200)
        STORE(b300)
        STORE(gb200)
        STORE(gb300)
        STORE(h100_sxm)
        STORE(h200_sxm)
        .section .note.GNU-stack, "", %progbits
