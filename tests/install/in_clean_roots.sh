#!/usr/bin/env bash
# Installs the wheel in root filesystems that have Python and no compiler, and uses it there: Debian 12 and Debian 13, by
# the steps of the Containerfile. Prints a line for each: what was planned. The roots are made by mmdebstrap from the
# package mirror of this machine, which must be a Debian system; needs root. Without WHEEL it is built first, by
# scripts/wheel.sh.
#
#   tests/install/in_clean_roots.sh [WHEEL]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
exec </dev/null
. scripts/debian.sh

wheel=${1:-}
[ -n "$wheel" ] || wheel=$(scripts/wheel.sh)
[ "$(id -u)" -eq 0 ] || { echo "chroot needs root" >&2; exit 1; }
install_packages mmdebstrap python3 python3-venv
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# root_of SUITE: makes it, with a Python and nothing that compiles.
root_of() {
  mmdebstrap --quiet --variant=apt --include=python3,python3-venv "$1" "$work/$1" ${mirror:+"$mirror"}
  local tool
  for tool in cc gcc g++ clang make cmake; do
    ! chroot "$work/$1" sh -c "command -v $tool" || { echo "$1 has $tool" >&2; return 1; }
  done
}

# inside SUITE COMMAND...: in the root, with a /proc, a /dev and an environment of its own.
inside() {
  local root=$work/$1
  shift
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"' \
    "$root" env -i PATH=/opt/pipeweaver/bin:/usr/bin:/bin HOME=/root PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels "$@"
}

# What pip would fetch: the wheel's own needs, for the Python of that root.
wheels_for() {
  local version
  version=$(chroot "$work/$1" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  python3 -m venv "$work/pip"
  "$work/pip/bin/pip" --quiet --disable-pip-version-check download --only-binary :all: --python-version "$version" \
    --dest "$work/$1/wheels" "$wheel"
  mkdir -p "$work/$1/image" && cp "$wheel" "$work/$1/image/"
}

# The RUN lines of the Containerfile from that which installs the wheel on; what stands before it, the root has.
install_steps() { sed -n 's/^RUN \(python3 -m venv .*\)/\1/p' Containerfile; }

for suite in bookworm trixie; do
  root_of "$suite"
  wheels_for "$suite"
  inside "$suite" sh -ec "$(install_steps)" >&2
  cp tests/install/use.py "$work/$suite/root/"
  echo "$suite: $(inside "$suite" sh -ec 'cd "$(mktemp -d)" && /opt/pipeweaver/bin/python /root/use.py')"
done
