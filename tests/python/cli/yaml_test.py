"""YAML and JSON as files that people write: the same answers, and errors that name file and line."""

import json

import pytest

PLAN = """# a small plan
model: {model}
cluster: h100-sxm:32
tp: 8
pp: 4
dataset: vlm-mix
microbatches: 2
max-rounds: 1
budget: 60s
"""


@pytest.fixture(scope="session")
def planned(pipeweaver, tmp_path_factory):
    """plan.json of a plan asked for on the command line."""
    folder = tmp_path_factory.mktemp("plan")
    pipeweaver("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", 8, "--pp", 4, "--dataset", "vlm-mix",
               "--microbatches", 2, "--max-rounds", 1, "--out", folder)
    return (folder / "plan.json").read_text()


def test_a_yaml_configuration_plans_like_the_options(pipeweaver, planned, tmp_path):
    (tmp_path / "c.yml").write_text(PLAN.format(model="dip-vlm-m"))
    pipeweaver("plan", "--config", tmp_path / "c.yml", "--out", tmp_path / "plan")
    assert (tmp_path / "plan/plan.json").read_text() == planned


def as_yaml(value, indent=""):
    """Block YAML of a JSON value."""
    if isinstance(value, dict) and value:
        return "".join(f"\n{indent}{key}: {as_yaml(member, indent + '  ')}" for key, member in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}- {as_yaml(element, indent + '  ')}" for element in value)
    return json.dumps(value)


def test_model_and_cluster_files_may_be_yaml(pipeweaver, planned, tmp_path):
    for name in ("dip-vlm-m", "h100-sxm"):
        (tmp_path / f"{name}.yaml").write_text(as_yaml(json.loads(pipeweaver("show", name))) + "\n")
    (tmp_path / "c.yaml").write_text(PLAN.format(model=tmp_path / "dip-vlm-m.yaml"))
    pipeweaver("plan", "--config", tmp_path / "c.yaml", "--cluster", f"{tmp_path}/h100-sxm.yaml:32", "--out",
               tmp_path / "plan")
    got, wanted = json.loads((tmp_path / "plan/plan.json").read_text()), json.loads(planned)
    assert got["makespan_ns"] == wanted["makespan_ns"]
    assert got["replicas"][0]["signature"] == wanted["replicas"][0]["signature"]


def test_an_error_in_a_yaml_model_names_its_line(pipeweaver, tmp_path):
    text = as_yaml(json.loads(pipeweaver("show", "dip-vlm-m"))).lstrip("\n") + "\n"
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines) if line.strip().startswith("layers:"))
    lines[number] = lines[number].replace("layers", "layres")
    (tmp_path / "m.yaml").write_text("\n".join(lines) + "\n")
    status, line = pipeweaver.fails("plan", "--model", tmp_path / "m.yaml", "--cluster", "h100-sxm:32", "--dataset",
                                    "vlm-mix", "--out", tmp_path / "plan")
    assert status == 2
    assert f"m.yaml:{number + 1}: modules[" in line
    assert "unknown key 'layres'; did you mean 'layers'?" in line


FAULTS = [
    ("c.yaml", "tp: 8\npp: 4\ntp: 4\n", "c.yaml:3: the key 'tp' occurs twice, first on line 1"),
    ("c.yaml", "model: dip-vlm-m\nmodle: x\n", "c.yaml:2: unknown key 'modle'; did you mean 'model'?"),
    ("c.yaml", "model: dip-vlm-m\npp: 4\nmicrobatches: 0\n",
     "c.yaml:3: microbatches: is '0', must be a whole number from 1 to 100000"),
    ("c.yaml", "threads: no\n", "c.yaml:1: threads: is 'no', must be a whole number from 1 to 1024"),
    ("c.yaml", "tp: true\n", "c.yaml:1: tp: is neither a text nor a number"),
    ("c.yaml", "tp: [8]\n", "c.yaml:1: tp: is neither a text nor a number"),
    ("c.yaml", "robust: 1\n", "c.yaml:1: robust: is 1, must be true or false"),
    ("c.yaml", "budget: 1\n", "c.yaml:1: budget: '1' is not a time; write it like 2s, 300ms or 5us"),
    ("c.yaml", "a:\n\tb: 1\n", "c.yaml:2: is indented with a tab, YAML needs spaces"),
    ("c.yaml", "tp: 8\n---\npp: 4\n", "c.yaml:2: a second document begins, only one is read"),
    ("c.yaml", "tp: 8\n 4: x\n", "c.yaml:2: is not YAML: illegal map value (column 3)"),
    ("c.yaml", "4: x\n", "c.yaml:1: the key 4 is no text, put it in quotes"),
    ("c.yaml", "- tp\n", 'c.yaml:1: is ["tp"], an object is needed'),
    ("c.yaml", "", "c.yaml: is empty"),
    ("c.json", '{"tp": 8, "pp": 4, "tp": 4}', "c.json: the key 'tp' occurs twice in one object"),
    ("c.json", '{"threads": 0}', "c.json: threads: is '0', must be a whole number from 1 to 1024"),
    ("c.json", "tp: 8\n", "c.json: is not JSON: line 1, column 2"),
]


@pytest.mark.parametrize("name, text, words", FAULTS, ids=[fault[2] for fault in FAULTS])
def test_a_bad_configuration_is_one_line_and_nothing_is_written(pipeweaver, tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    status, line = pipeweaver.fails("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--dataset", "vlm-mix",
                                    "--config", tmp_path / name, "--out", tmp_path / "plan")
    assert (status, line) == (2, f"pipeweaver: {tmp_path}/{words}")
    assert not (tmp_path / "plan").exists()


def test_a_bomb_of_aliases_is_refused(pipeweaver, tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (tmp_path / "c.yaml").write_text("\n".join(lines) + "\n")
    status, line = pipeweaver.fails("plan", "--config", tmp_path / "c.yaml", "--out", tmp_path / "plan")
    assert status == 2
    assert line.endswith("c.yaml:5: has more than 100000 values, aliases written out")
