"""Whether a file of a plan's folder is the one that its plan.json is of."""

from __future__ import annotations

import hashlib
import json
import pathlib

from .errors import PipeweaverError


def _hashes(plan: pathlib.Path) -> dict[str, str]:
    try:
        files = json.loads(plan.read_bytes()).get("files") or {}
        return {str(name): str(of) for name, of in files.items()}
    except (ValueError, AttributeError) as error:
        raise PipeweaverError(f"{plan}: is no plan's: {error}") from error


def require_whole(path: pathlib.Path, content: bytes) -> None:
    """Raises PipeweaverError where `path`, whose bytes `content` is, lies in the folder of a plan that was not written
    to its end, or is another file than its plan.json says; OSError where plan.json cannot be read. A file elsewhere
    passes."""
    path = path.resolve()
    replica = next((folder for folder in path.parents if folder.name.startswith("replica-")), None)
    if replica is None:
        return
    plan = replica.parent / "plan.json"
    if not plan.is_file():
        if (replica.parent / "assignment.json").is_file():
            raise PipeweaverError(f"{replica.parent}: the plan there was not written to its end: plan.json is missing; "
                                  "plan again")
        return
    said = _hashes(plan).get(path.relative_to(replica.parent).as_posix())
    if said is not None and said != hashlib.sha256(content).hexdigest():
        raise PipeweaverError(f"{path}: is not the file that plan.json is of; plan again")
