"""Loaded by schemathesis in service_openapi_test.py: most of what is put is what the document has as its example, so
that sessions are opened and steps planned; what it draws itself is refused most of the time."""

import json

import schemathesis
from checkout import ROOT

DOCUMENT = json.loads((ROOT / "service/openapi.json").read_text())


@schemathesis.hook
def map_body(context, body):
    """Every fourth body stays as it was drawn."""
    put = DOCUMENT["paths"].get(context.operation.path, {}).get("put")
    if put is None or len(json.dumps(body, default=str)) % 4 == 0:
        return body
    return put["requestBody"]["content"]["application/json"]["example"]
