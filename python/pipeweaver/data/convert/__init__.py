"""A batch file of one's own data, in sizes alone: nothing is decoded.

    python3 -m pipeweaver.data.convert photos --out batch.jsonl
    python3 -m pipeweaver.data.convert shards --samples 512 --seed 1 --tokenizer tokenizer.json --out batch.jsonl

The source is a folder of images, clips and audio with captions beside them, a folder of WebDataset or Energon shards,
a Hugging Face data set on disk (Arrow or Parquet), a .json or .jsonl of chats, conversations or captions, or a file
that lists such data sets.
"""

from .convert import Converted, convert

__all__ = ["Converted", "convert"]
