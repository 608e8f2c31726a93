#!/bin/bash
# ms-swift examples/train/liger: 4 A100, 42 GB with the fused loss and 54 GB without
nproc_per_node=4
NPROC_PER_NODE=$nproc_per_node swift sft --model Qwen/Qwen2.5-7B --tuner_type full --dataset own --torch_dtype bfloat16 \
  --packing true --attn_impl flash_attn --max_length 8192 --per_device_train_batch_size 1 \
  --gradient_accumulation_steps $(expr 8 / $nproc_per_node) --deepspeed zero3 --use_liger_kernel ${LIGER:-true}
