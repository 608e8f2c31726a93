"""A check as one page of HTML that needs nothing beside it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from .show import not_reached, tables

_style = """
:root { color-scheme: light dark; --line: #8886; --measured: #3b6ea8; --predicted: #c8843a; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } .scroll { overflow-x: auto; }
.verdict { font-size: 1.2rem; font-weight: 600; }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; align-items: center; }
.bar { height: .55rem; } .measured { background: var(--measured); } .predicted { background: var(--predicted); }
"""
_verdicts = {"within": "All that was judged is within the limits.", "beyond": "Something is beyond the limits.",
             "unfinished": "Not all parts are complete."}


def page(document: Mapping[str, Any]) -> str:
    """The page's text."""
    device = document.get("gpu") or document.get("cpu")
    parts = [f"<h1>Self-check on {_text(device)}</h1>",
             f"<p class=verdict id=verdict data-verdict={document['verdict']}>{_verdicts[document['verdict']]}</p>"]
    for title, lines in (("Beyond the limits", document["beyond"]), ("Missing", _missing(document)),
                         ("Not reached", not_reached(document))):
        if lines:
            parts.append(f"<h2>{title}</h2><ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>")
    parts.append(_bars(document))
    for name, header, rows in tables(document):
        if rows:
            parts.append(f"<h2>{_text(name)}</h2><div class=scroll><table>{_row('th', header)}"
                         f"{''.join(_row('td', row) for row in rows)}</table></div>")
    parts.append(_about(document))
    return ("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>pipeweaver self-check</title><style>{_style}</style><body>{''.join(parts)}</body></html>\n")


def _missing(document: Mapping[str, Any]) -> list[str]:
    return [f"{part['part']}: {part['state']} {part['why']}".rstrip() for part in document["parts"]
            if part["state"] != "complete"]


def _bars(document: Mapping[str, Any]) -> str:
    """Each step, measured over predicted."""
    rows = [row for row in document["steps"] if "shipped" in row]
    if not rows:
        return ""
    most = max(max(row["seconds"], _best(row)["seconds"]) for row in rows)
    cells = []
    for row in rows:
        name = f"{row['stack']} {row['how']} {row['recompute']}"
        cells.append(f"<div>{_text(name)}</div><div>"
                     f"<div class='bar measured' style='width:{100 * row['seconds'] / most:.2f}%'></div>"
                     f"<div class='bar predicted' style='width:{100 * _best(row)['seconds'] / most:.2f}%'></div></div>")
    return ("<h2>Steps, measured (blue) over predicted (ochre)</h2>"
            f"<div class=bars role=img aria-label='steps measured and predicted'>{''.join(cells)}</div>")


def _best(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = row.get("own", row["shipped"])
    return found


def _about(document: Mapping[str, Any]) -> str:
    keys = ("begun", "gpu", "gpus", "driver", "cuda", "torch", "python", "cpu", "host", "cluster", "version")
    known = "".join(_row("td", [key, str(document[key])]) for key in keys if document.get(key) is not None)
    limits = json.dumps(document["limits"])
    return f"<h2>Where it ran</h2><table>{known}{_row('td', ['limits', limits])}</table>"


def _row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return html.escape(str(value))
