#!/usr/bin/env bash
# From a fresh Debian 12 to a planned batch: installs what the build needs, builds, and plans one step of
# ViT 5B + Qwen2 32B on 32 H100s. The plan lies in out/quickstart.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
exec </dev/null
. scripts/debian.sh

install_packages "${release_packages[@]}"
use_ccache "$PWD"
cmake --preset release
cmake --build --preset release -j"$(nproc)"
build/release/bin/pipeweaver plan --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 \
  --dataset vlm-mix --microbatches 16 --seed 1 --out out/quickstart
