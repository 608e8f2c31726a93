"""How many tokens texts have: by their words, or by a tokenizer's file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import FileError, InputError

# A character of Chinese, Japanese or Korean is a word, and so is what stands between blanks.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_word = re.compile(f"[{_CJK}]|[^\\s{_CJK}]+")
_placeholder = re.compile(r"</?(?:image|video|audio|img)>|<\|[a-z_]+\|>")

KEYS = ("messages", "conversations", "caption", "text", "txt", "prompt")
_IN_TURN = ("content", "value", "text")

Count = Callable[[str], int]


def by_words(tokens_per_word: float) -> Count:
    return lambda text: math.ceil(len(_word.findall(text)) * tokens_per_word - 1e-9)


def by_tokenizer(path: str) -> Count:
    """A tokenizer.json. Raises InputError, FileError."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError(
            "--tokenizer: needs the package tokenizers (pip install tokenizers); allowed without it is "
            "--tokens-per-word"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # it has no class of its own
        missing = "No such file" in str(error)
        raise (FileError if missing else InputError)(f"--tokenizer: {path}: {str(error).splitlines()[0]}") from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def key_in(found: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of the keys that holds a text."""
    return next((key for key in keys if found.get(key)), None)


def plain(text: str) -> str:
    """The text without what stands for an item."""
    return _placeholder.sub(" ", text)


def texts_in(value: Any) -> Iterator[str]:
    """A caption, or the turns of a conversation as they are usually written."""
    if isinstance(value, str):
        yield plain(value)
    elif isinstance(value, Mapping):
        key = key_in(value, _IN_TURN)
        if key is not None:
            yield from texts_in(value[key])
    elif isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        for one in value:
            yield from texts_in(one)
