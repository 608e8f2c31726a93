#!/usr/bin/env bash
# Uses pipeweaver in bare root filesystems of Debian 12 and Debian 13, and prints a line for each: what was planned. The
# roots are made by mmdebstrap from the package mirror of this machine, which must be a Debian system; needs root.
#
#   tests/install/in_clean_roots.sh [WHEEL]      installs the wheel (else it is built first, by scripts/wheel.sh) by the
#                                                steps of the Containerfile, where there is no compiler
#   tests/install/in_clean_roots.sh --source     clones HEAD and runs quickstart.sh, which installs what it needs
#   tests/install/in_clean_roots.sh --core       and run-tests.sh --core after it, in Debian 13 alone
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
exec </dev/null
. scripts/debian.sh

[ "$(id -u)" -eq 0 ] || { echo "chroot needs root" >&2; exit 1; }
install_packages mmdebstrap python3 python3-venv
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# root_of SUITE PACKAGE,...: makes it, with these packages and nothing that compiles.
root_of() {
  mmdebstrap --quiet --variant=apt --include="$2" "$1" "$work/$1" ${mirror:+"$mirror"}
  local tool
  for tool in cc gcc g++ clang make cmake; do
    ! chroot "$work/$1" sh -c "command -v $tool" || { echo "$1 has $tool" >&2; return 1; }
  done
}

# inside SUITE [NAME=VALUE...] COMMAND...: in the root, with a /proc, a /dev and an environment of its own.
inside() {
  local root=$work/$1
  shift
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"' \
    "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
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

# use_wheel SUITE
use_wheel() {
  root_of "$1" python3,python3-venv
  wheels_for "$1"
  local offline=(PATH=/opt/pipeweaver/bin:/usr/bin:/bin PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels)
  inside "$1" "${offline[@]}" sh -ec "$(install_steps)" >&2
  cp tests/install/use.py "$work/$1/root/"
  inside "$1" "${offline[@]}" sh -ec 'cd "$(mktemp -d)" && /opt/pipeweaver/bin/python /root/use.py'
}

# clone_in SUITE: HEAD, in /root/pipeweaver of a root that reaches package mirrors as this machine does.
clone_in() {
  root_of "$1" ca-certificates,git
  local file
  for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp --dereference "$file" "$work/$1$file"
  done
  git clone --quiet --no-hardlinks . "$work/$1/root/pipeweaver"
}

# from_source SUITE: the first line of the ladder that quickstart.sh prints.
from_source() {
  clone_in "$1"
  inside "$1" /root/pipeweaver/quickstart.sh >"$work/$1/quickstart" || { tail -n 20 "$work/$1/quickstart" >&2; return 1; }
  grep -m 1 '^ *now ' "$work/$1/quickstart"
}

case "${1:-}" in
  --source) of_suite=from_source ;;
  --core) from_source trixie; inside trixie /root/pipeweaver/run-tests.sh --core; exit ;;
  *) wheel=${1:-$(scripts/wheel.sh)}; of_suite=use_wheel ;;
esac
for suite in bookworm trixie; do
  answer=$("$of_suite" "$suite")
  echo "$suite: $answer"
done
