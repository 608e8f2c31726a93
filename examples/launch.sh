#!/bin/bash
# A launch of Megatron-LM as `pipeweaver check` reads it; it is not run there.
export CUDA_DEVICE_MAX_CONNECTIONS=1
NODES=${NODES:-8}
TP=8
PP=4

MODEL_ARGS=(
  --num-layers 80
  --hidden-size 8192
  --ffn-hidden-size 28672
  --num-attention-heads 64
  --group-query-attention
  --num-query-groups 8
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --position-embedding-type rope
  --seq-length 8192
  --max-position-embeddings 8192
  --vocab-size 128256
)
TRAIN_ARGS="--bf16 --use-distributed-optimizer --micro-batch-size 1 --global-batch-size $((NODES * 32))"

torchrun --nnodes "$NODES" --nproc-per-node 8 pretrain_gpt.py "${MODEL_ARGS[@]}" $TRAIN_ARGS \
  --tensor-model-parallel-size $TP --sequence-parallel \
  --pipeline-model-parallel-size $PP \
  --decoder-last-pipeline-num-layers 17 \
  --recompute-granularity selective
