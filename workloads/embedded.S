// Puts the data files into the binary. CMake sets the paths.
    .macro embed name, path
    .global pipeweaver_workloads_\name
    .global pipeweaver_workloads_\name\()_end
pipeweaver_workloads_\name:
    .incbin "\path"
pipeweaver_workloads_\name\()_end:
    .byte 0
    .endm

    .section .rodata
    embed catalogue, CATALOGUE_FILE
    embed datasets, DATASETS_FILE
    embed clusters, CLUSTERS_FILE
    embed networks, NETWORKS_FILE
    embed public_models, PUBLIC_MODELS_FILE

    .section .note.GNU-stack, "", %progbits
