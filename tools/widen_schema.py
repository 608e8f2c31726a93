#!/usr/bin/env python3
"""Widens a JSON Schema of docs/schema until files that the program wrote are valid under it, strictly.

    tools/widen_schema.py docs/schema/plan.json plan/plan.json ...       files may be gzip; the schema may be new

Keys that a schema does not have are added, as optional ones where the schema was there before; types are widened; keys
that a file lacks are no longer required. What stands in the schema besides (descriptions, enums, bounds) stays. Objects
whose keys are names (NAMED) have one schema for all of their values.
"""

import argparse
import gzip
import json
import pathlib
import sys

# Keys whose objects map names (of modules, operators, devices, ranks, chains) to values.
NAMED = {"parameters", "by_operator", "by_basis", "precision", "runs", "layer_ns_of", "files", "launch", "axes",
         "prices", "speed"}
ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")


def kind(value):
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def types(schema):
    said = schema.get("type", [])
    return {said} if isinstance(said, str) else set(said)


def with_type(schema, name):
    """The schema, which takes values of that type as well."""
    all_of = types(schema) | {name}
    if "number" in all_of:
        all_of.discard("integer")
    ordered = [one for one in ORDER if one in all_of]
    return {"type": ordered[0] if len(ordered) == 1 else ordered, **{k: v for k, v in schema.items() if k != "type"}}


def widened(schema, value, key=""):
    """The schema, under which the value is valid."""
    if "enum" in schema or "const" in schema:
        return schema
    known = "object" in types(schema)
    schema = with_type(schema, kind(value))
    if isinstance(value, list):
        for one in value:
            schema["items"] = widened(schema.get("items", {}), one)
    elif isinstance(value, dict) and (key in NAMED or isinstance(schema.get("additionalProperties"), dict)):
        for one in value.values():
            schema["additionalProperties"] = widened(schema.get("additionalProperties", {}), one)
    elif isinstance(value, dict):
        of = dict(schema.get("properties", {}))
        for name, one in value.items():
            of[name] = widened(of.get(name, {}), one, name)
        schema["properties"] = of
        required = schema.get("required") if known else list(value)
        if required is not None:
            schema["required"] = [name for name in required if name in value]
    return schema


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def begun(path, document):
    """A schema without any key but the format."""
    name = document.get("format", path.stem) if isinstance(document, dict) else path.stem
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("schema", type=pathlib.Path, metavar="SCHEMA")
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    documents = [read(path) for path in options.files]
    schema = json.loads(options.schema.read_text()) if options.schema.is_file() else begun(options.schema, documents[0])
    for document in documents:
        schema = widened(schema, document)
    if "format" in schema.get("properties", {}):
        schema["properties"]["format"] = {"const": schema["title"]}
    options.schema.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
