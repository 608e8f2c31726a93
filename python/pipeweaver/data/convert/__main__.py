"""python3 -m pipeweaver.data.convert SOURCE --out FILE: a batch file of one's own data, in sizes alone."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from ..._arguments import Parser
from ...errors import InputError, PipeweaverError
from . import __doc__ as about
from .convert import convert, summary, usual_tokens_per_word
from .forms import FORMS


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"is '{text}', must be a whole number from 1")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate <= 100:
        raise argparse.ArgumentTypeError(f"is '{text}', must be a number above 0 to 100")
    return rate


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python3 -m pipeweaver.data.convert", description=about, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE", help="a folder, or a .tar, .arrow, .parquet, .json or .jsonl file")
    parser.add_argument("--out", metavar="FILE", required=True, help="the batch file to write; .gz is compressed")
    parser.add_argument("--samples", metavar="N", type=_count, help="the first N samples alone: a batch is one step's")
    parser.add_argument("--seed", metavar="N", type=int, help="with --samples: N of them at random")
    parser.add_argument("--split", metavar="NAME", default="train",
                        help="of an Energon or Hugging Face data set that has several (default: train)")
    parser.add_argument("--media", metavar="FOLDER", help="what paths of annotations are relative to (default: theirs)")
    parser.add_argument("--form", choices=[form.name for form in FORMS], default="",
                        help="of annotations (default: that of each entry's keys)")
    parser.add_argument("--sets", metavar="NAME,...", default="",
                        help="some of a file that lists data sets: LLaMA-Factory's dataset_info.json, a meta file "
                        "of InternVL")
    parser.add_argument("--text", metavar="KEY,...", default="",
                        help="keys or columns whose texts are counted (default: messages, conversations, caption, "
                        "text, txt or prompt, the first there is; .txt files before them)")
    parser.add_argument("--tokens-per-word", metavar="X", type=_rate,
                        help=f"tokens of a word (default: {usual_tokens_per_word:g}, assumed)")
    parser.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json that counts (package tokenizers)")
    parser.add_argument("--role", choices=("input", "target"), default="input",
                        help="what items are to the model: read, or made (diffusion; default: input)")
    parser.add_argument("--skip-broken", action="store_true",
                        help="leave out samples with items that cannot be read, and name their kinds")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        given = _parser().parse_args(arguments)
        done = convert(given.source, given.out, samples=given.samples, seed=given.seed, split=given.split,
                       media=given.media, text=[key for key in given.text.split(",") if key],
                       tokens_per_word=given.tokens_per_word, tokenizer=given.tokenizer,
                       target=given.role == "target", skip_broken=given.skip_broken,
                       form=given.form, sets=[name for name in given.sets.split(",") if name])
    except PipeweaverError as error:
        print(f"pipeweaver: {error}", file=sys.stderr)
        return error.exit_status
    print(f"{given.out}: {summary(done.samples)}")
    for sentence in done.assumed:
        print(f"assumed: {sentence}")
    for remark in done.remarks:
        print(remark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
