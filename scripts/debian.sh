# Sourced by quickstart.sh and run-tests.sh: which Debian packages the project needs, and how they get there.

# Debian's own tools first: a pip or pyenv cmake, compiler or python that comes earlier in PATH is not used.
export PATH="/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:${PATH:-}"
export LC_ALL=C.UTF-8

release_packages=(
  g++ cmake ninja-build ccache pkg-config
  libboost-dev libboost-graph-dev libtbb-dev nlohmann-json3-dev rapidjson-dev libfmt-dev libcli11-dev libyaml-cpp-dev
  libsqlite3-dev zlib1g-dev libssl-dev libspdlog-dev prometheus-cpp-dev
)
test_packages=(
  doctest-dev python3 python3-dev python3-venv curl git man-db openssl zsh fish
)
browser_packages=(chromium chromium-driver)  # not for --core
pages_packages=(doxygen)  # not for --core
slurm_packages=(slurmctld slurmd slurm-client munge)  # not for --core
fuzz_packages=(clang-14 libclang-rt-14-dev)  # for --all=fuzz alone

# missing_packages NAME...: those that are not installed, one a line.
missing_packages() {
  local name
  for name in "$@"; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || echo "$name"
  done
}

# install_packages NAME...: installs what is missing, as root or with a sudo that asks nothing; else names it and fails.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "this is no Debian system; needed are its equivalents of: $*" >&2
    return 1
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "missing Debian packages, and neither root nor sudo to install them: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo -n)
  fi
  echo "installing ${missing[*]}"
  # A source list that cannot be reached need not be the one that has the packages: only the installation decides.
  "${as_root[@]}" apt-get -qq -o Acquire::Retries=3 update </dev/null || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    install --yes --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# use_ccache ROOT: lets compiles of several build folders and checkouts share results.
use_ccache() {
  export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1
  [ -n "${HOME:-}" ] || export CCACHE_DIR="${CCACHE_DIR:-$1/.cache/ccache}"
}
