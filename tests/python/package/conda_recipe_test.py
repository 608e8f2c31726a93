"""scripts/conda/recipe.yaml: it asks for what CMake and pip ask for, in conda-forge's names."""

import re
import tomllib

import yaml
from checkout import ROOT

NAMES = {"Boost": "libboost-headers", "TBB": "tbb-devel", "SQLite3": "libsqlite"}  # else the name in small letters


def recipe():
    return yaml.safe_load((ROOT / "scripts/conda/recipe.yaml").read_text())


def test_its_libraries_are_those_of_cmake():
    wanted = set()
    cmake = (ROOT / "CMakeLists.txt").read_text()
    for name, version in re.findall(r"^ *find_package\(([\w-]+)(?: ([\d.]+))?", cmake, re.MULTILINE):
        if name not in ("Threads", "PkgConfig"):
            wanted.add(NAMES.get(name, name.lower()) + (f" >={version}" if version else ""))
    wanted.add("prometheus-cpp >=1.0")
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = {re.sub(r"([\w-]+)(>=)", r"\1 \2", name) for name in python["build-system"]["requires"]}
    assert set(recipe()["requirements"]["host"]) - {"pip", "python >=3.10"} == wanted | built


def test_its_version_and_packages_are_those_of_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cmake = (ROOT / "CMakeLists.txt").read_text()
    version = recipe()["context"]["version"]
    assert version == project["version"] == re.search(r"project\(pipeweaver VERSION ([\d.]+)", cmake)[1]
    needed = {re.sub(r"([\w-]+)(>=)", r"\1 \2", name) for name in project["dependencies"]}
    assert set(recipe()["requirements"]["run"]) == needed | {"python " + project["requires-python"]}
