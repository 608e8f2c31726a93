"""tools/widen_schema.py: a schema takes what files have, and keeps what it says besides."""

import json
import subprocess
import sys

from checkout import ROOT


def widened(folder, *documents):
    files = [folder / f"{at}.json" for at in range(len(documents))]
    for file, document in zip(files, documents):
        file.write_text(json.dumps(document))
    schema = folder / "schema.json"
    subprocess.run([sys.executable, ROOT / "tools/widen_schema.py", schema, *files], check=True)
    return json.loads(schema.read_text())


def test_a_schema_is_begun_and_widened(tmp_path):
    first = widened(tmp_path, {"format": "a/1", "step": 1, "rows": [{"rank": 0}], "parameters": {"vit": 3}})
    assert first["title"] == "a/1" and first["properties"]["format"] == {"const": "a/1"}
    assert first["required"] == ["format", "step", "rows", "parameters"]
    first["properties"]["step"]["minimum"] = 0
    (tmp_path / "schema.json").write_text(json.dumps(first))
    second = widened(tmp_path, {"format": "a/1", "step": None, "new": True, "parameters": {"llm": 0.5}})
    of = second["properties"]
    assert of["step"] == {"type": ["null", "integer"], "minimum": 0} and of["new"] == {"type": "boolean"}
    assert second["required"] == ["format", "step", "parameters"]
    assert of["parameters"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert of["rows"]["items"]["properties"] == {"rank": {"type": "integer"}}
