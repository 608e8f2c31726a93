"""Forms in which people keep samples as JSON: which keys hold the texts, and by which a form is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ITEMS = {"image": "images", "images": "images", "file_name": "images", "video": "videos", "videos": "videos",
         "audio": "audio", "audios": "audio"}


@dataclass(frozen=True)
class Form:
    name: str
    needs: tuple[str, ...]  # an entry of the form has all of these
    known_by: tuple[str, ...]  # and of a file that does not say its form, one of these, where there are any
    texts: tuple[str, ...]  # all that an entry has are counted; none: the first of those in use

    def keys(self) -> tuple[str, ...]:
        return self.needs + self.known_by + self.texts


_turns = ("system", "conversations", "chosen")
_chat = ("system", "messages", "chosen")
FORMS = (
    Form("internvl", ("conversations",), ("width", "width_list"), _turns),
    Form("llava", ("conversations",), ("image", "video"), _turns),
    Form("sharegpt", ("conversations",), (), _turns),
    Form("swift", ("messages",), ("images", "videos", "audios"), _chat),
    Form("openai", ("messages",), (), _chat),
    Form("alpaca", ("instruction",), ("output", "chosen"),
         ("system", "history", "instruction", "input", "output", "chosen")),
    Form("query-response", ("query", "response"), (), ("system", "history", "query", "response")),
    Form("preference", ("chosen", "rejected"), (), ("prompt", "chosen")),
    Form("captions", (), (), ()),
)
REJECTED = ("rejected", "rejected_response", "rejected_messages")


def form_named(name: str) -> Form:
    """Pre: it is the name of one."""
    return next(form for form in FORMS if form.name == name)


def is_of(form: Form, entry: Mapping[str, Any]) -> bool:
    return all(key in entry for key in form.needs)


def form_of(entry: Mapping[str, Any]) -> Form:
    """The first whose keys the entry has."""
    return next(form for form in FORMS
                if is_of(form, entry) and (not form.known_by or any(key in entry for key in form.known_by)))


def texts_of(form: Form, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys whose texts are one sequence: an answer that repeats the whole conversation stands for it."""
    chosen = entry.get("chosen")
    if not isinstance(chosen, list) or not chosen or "chosen" not in form.texts:
        return form.texts
    first = chosen[0]
    whole = isinstance(first, Mapping) and str(first.get("role", first.get("from"))) in ("user", "human", "system")
    return ("chosen",) if whole else form.texts
