#!/bin/bash
# InternVL#516: the language model whole takes 32 GPUs of 80 GB, adapters alone 8
GPUS=${GPUS:-32}
TUNING=${TUNING:-"--freeze_llm False"}
srun --gres=gpu:8 --ntasks=${GPUS} python -u internvl/train/internvl_chat_finetune.py \
  --model_name_or_path pretrained/InternVL2-Llama3-76B ${TUNING} --freeze_mlp False --freeze_backbone True \
  --deepspeed zero_stage3_config_100b.json --max_seq_length 4096 --grad_checkpoint True --bf16 True \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --do_train True --report_to tensorboard \
  2>&1 | tee log.txt
