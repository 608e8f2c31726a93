"""The wheel: what is in it, and that it needs nothing of the machine on which it was built."""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

import pytest
from absent import left_out, needed
from checkout import ROOT
from cli_shared import full

# Libraries of every Linux with glibc, as PEP 600 and the policies after it have them.
EVERYWHERE = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libpthread.so.0", "libdl.so.2",
              "librt.so.1", "ld-linux-x86-64.so.2"}
MIB = 1 << 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that run-tests.sh built, made portable; or that of PIPEWEAVER_WHEEL, which is."""
    if "PIPEWEAVER_WHEEL" in os.environ:
        return pathlib.Path(os.environ["PIPEWEAVER_WHEEL"])
    needed("auditwheel")
    plain = list((ROOT / "build/wheel").glob("pipeweaver-*.whl"))
    if not plain:
        left_out("there is no wheel in build/wheel")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, ROOT / "scripts/portable_wheel.py", "--level", "1", "--out", folder, plain[0]],
                   check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of an environment that has the wheel, and of this one only what the wheel asks for."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in ("numpy", "nanobind_backend"):
        of_this = pathlib.Path(needed(name).__file__).parent
        for path in of_this.parent.glob(f"{name}*"):
            (site / path.name).symlink_to(path)
    return python


def elf_files(folder):
    """Programs and shared libraries below it."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def test_it_is_for_every_python_from_3_10_and_every_linux_from_some_glibc(wheel):
    tags = re.fullmatch(r"pipeweaver-[\d.]+-cp310-abi3-manylinux_2_(\d+)_x86_64\.whl", wheel.name)
    assert tags and int(tags[1]) <= int(platform.libc_ver()[1].split(".")[1])  # where it was built
    assert wheel.stat().st_size < 32 * MIB


def test_it_has_command_package_pages_and_licences(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    below = {name.split("/", 1)[1] for name in names if re.match(r"pipeweaver(-[^/]*)?/", name)}
    assert {"bin/pipeweaver", "_core.abi3.so", "__main__.py", "py.typed", "scripts/pipeweaver"} <= below | {
        name.split("/", 1)[1] for name in names if ".data/" in name}
    for page in ("bash-completion/completions/pipeweaver", "zsh/site-functions/_pipeweaver",
                 "fish/vendor_completions.d/pipeweaver.fish", "man/man1/pipeweaver.1"):
        assert any(name.endswith(f".data/data/share/{page}") for name in names), page
    licences = {name.rsplit("/", 2)[1] for name in names if "/licenses/third-party/" in name}
    assert {"libfmt-dev", "libtbb-dev", "libssl-dev", "libsqlite3-dev", "libboost-dev", "nanobind"} <= licences


def test_its_libraries_come_along(installed):
    site = next(installed.parents[1].glob("lib/python*/site-packages"))
    own = {path.name for path in (site / "pipeweaver.libs").iterdir()}
    found = elf_files(site / "pipeweaver") + elf_files(site / "pipeweaver.libs")
    assert {"pipeweaver", "_core.abi3.so"} < {path.name for path in found}
    for path in found:
        said = subprocess.run(["readelf", "--dynamic", path], check=True, capture_output=True, text=True).stdout
        assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", said)) <= own | EVERYWHERE, path
        loaded = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
        assert "not found" not in loaded
        assert all(str(site) in line for line in loaded.splitlines() if line.split()[0] in own), loaded


def test_it_is_used_in_a_bare_environment(installed, tmp_path):
    done = subprocess.run([installed, ROOT / "tests/install/use.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["step_ns"] > 0 and found["planner_step_ns"] > 0
    assert {"libtbb", "libcrypto", "libsqlite3"} <= set(found["libraries"])


def test_the_command_imports_no_package(installed):
    """It is as quick as the program: NumPy alone would take a tenth of a second."""
    command = installed.with_name("pipeweaver")
    done = subprocess.run([installed, "-X", "importtime", command, "--version"], check=True, capture_output=True,
                          text=True)
    assert done.stdout.startswith("pipeweaver ") and "numpy" not in done.stderr


def test_sources_without_the_program_say_so(tmp_path):
    main = tmp_path / "__main__.py"
    main.write_text((ROOT / "python/pipeweaver/__main__.py").read_text())
    done = subprocess.run([sys.executable, main, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (f"pipeweaver: {tmp_path}/bin/pipeweaver: No such file or directory; allowed is a package "
                           "that pip installed\n")


if full():  # minutes
    def test_it_is_used_in_root_filesystems_without_a_compiler(wheel):
        if os.geteuid() != 0:
            left_out("chroot needs root")
        done = subprocess.run([ROOT / "tests/install/in_clean_roots.sh", wheel], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = [json.loads(line.split(": ", 1)[1]) for line in done.stdout.splitlines()]
        assert [one["python"] for one in found] == ["3.11", "3.13"]
        assert len({(one["step_ns"], one["planner_step_ns"]) for one in found}) == 1
