#!/usr/bin/env python3
"""The corpora of the fuzzers: of each reader one archive, tests/fuzz/corpus/READER.tar.gz, of small files.

    tools/corpus.py list [READER...]            the cases; without readers how many each has
    tools/corpus.py add [--new] READER FILE...  more cases, by the names of the files; --new: for a reader without any
    tools/corpus.py extract READER FOLDER       all cases as files

Equal cases are equal bytes: sorted by name, without times and owners. A case stays what it is: another file of its
name is refused. Names of 40 hex digits are of what a fuzzer learnt, and tools/fuzz.py --keep replaces those.
"""

import argparse
import gzip
import io
import os
import pathlib
import sys
import tarfile

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "tests/fuzz/corpus"
ENDING = ".tar.gz"
LONGEST_NAME = 100  # bytes: as far as a header of ustar goes, and tests/fuzz/corpus_test.cpp reads


def readers():
    """Those that have an archive."""
    return sorted(path.name.removesuffix(ENDING) for path in CORPUS.glob("*" + ENDING))


def cases_of(reader):
    """Bytes by the name of the case."""
    with tarfile.open(CORPUS / (reader + ENDING), "r:gz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def packed(cases):
    """The bytes of an archive."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(cases.items()):
            if "/" in name or len(os.fsencode(name)) > LONGEST_NAME:
                raise ValueError(f"{name}: no name of a case, which has at most {LONGEST_NAME} bytes and no slash")
            member = tarfile.TarInfo(name)  # mode 0644, and 0 for time and owner
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    zipped = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=zipped, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(tar.getvalue())
    return zipped.getvalue()


def keep(reader, cases):
    """Replaces the archive, whole or not at all; one that has these cases stays as another zlib has zipped it."""
    archive = CORPUS / (reader + ENDING)
    if archive.exists() and cases_of(reader) == cases:
        return
    fresh = archive.with_suffix(".fresh")
    fresh.write_bytes(packed(cases))
    fresh.replace(archive)


def add(reader, files, new):
    """Says how many cases there are now."""
    if (reader in readers()) == new:
        raise ValueError(f"{reader}: has an archive" if new else f"{reader}: has no archive; {', '.join(readers())} do")
    cases = {} if new else cases_of(reader)
    for file in files:
        content = file.read_bytes()
        if cases.setdefault(file.name, content) != content:
            raise ValueError(f"{file}: {reader} has another case of that name")
    keep(reader, cases)
    return len(cases)


def extract(reader, folder):
    """Writes the cases into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in cases_of(reader).items():
        (folder / name).write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("list")
    command.add_argument("readers", nargs="*", metavar="READER")
    command = commands.add_parser("add")
    command.add_argument("--new", action="store_true")
    command.add_argument("reader", metavar="READER")
    command.add_argument("files", nargs="+", metavar="FILE", type=pathlib.Path)
    command = commands.add_parser("extract")
    command.add_argument("reader", metavar="READER")
    command.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    asked = parser.parse_args()
    try:
        if asked.command == "add":
            print(f"{asked.reader}: {add(asked.reader, asked.files, asked.new)} cases")
        elif asked.command == "extract":
            extract(asked.reader, asked.folder)
        elif asked.readers:
            for reader in asked.readers:
                for name, content in cases_of(reader).items():
                    print(f"{reader:14} {len(content):6} {name}")
        else:
            for reader in readers():
                print(f"{reader:14} {len(cases_of(reader)):6}")
    except (OSError, ValueError) as error:
        sys.exit(f"corpus.py: {error}")


if __name__ == "__main__":
    main()
