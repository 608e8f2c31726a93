#!/bin/bash
# LLaMA-Factory#5590: the same by flags, on 16 GPUs; with 24 it trains
torchrun --nproc_per_node 8 --nnodes 2 src/train.py --stage sft --do_train --finetuning_type full \
  --model_name_or_path /models/Qwen2-VL-72B-Instruct --template qwen2_vl --dataset own_images --output_dir saves/72b \
  --deepspeed configs/ds_z3_config.json --cutoff_len 2048 --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 16 --learning_rate 1e-6 --warmup_ratio 0.1 --plot_loss --bf16
