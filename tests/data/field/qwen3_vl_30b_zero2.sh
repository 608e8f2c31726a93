#!/bin/bash
# Qwen3-VL#2053: 32 GPUs of 80 GB on ZeRO 2 are short when the optimizer makes its states
torchrun --nproc_per_node=8 --nnodes=4 qwenvl/train/train_qwen.py \
  --model_name_or_path Qwen/Qwen3-VL-30B-A3B-Instruct --dataset_use own --data_flatten True \
  --tune_mm_vision True --tune_mm_mlp True --tune_mm_llm True --bf16 --gradient_checkpointing True \
  --deepspeed scripts/zero2_own.json --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \
  --model_max_length 8192 --max_pixels 50176 --learning_rate 1e-5 --output_dir out
