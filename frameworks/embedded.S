// Puts the tables of recipes into the binary. CMake sets the paths.
    .macro embed name, path
    .global pipeweaver_frameworks_\name
    .global pipeweaver_frameworks_\name\()_end
pipeweaver_frameworks_\name:
    .incbin "\path"
pipeweaver_frameworks_\name\()_end:
    .byte 0
    .endm

    .section .rodata
    embed bridge, BRIDGE_FILE
    embed titan, TITAN_FILE
    embed titan_toml, TITAN_TOML_FILE

    .section .note.GNU-stack, "", %progbits
