#!/bin/bash
# the recipe as it was tuned on one node of H100; TP is its caller's
uv run python -m torch.distributed.run --nproc_per_node=8 scripts/training/run_recipe.py \
 --recipe gemma4_vl_26b_sft_8gpu_h100_bf16_config model.tensor_model_parallel_size=$TP
