"""Damages inputs, by a seed: of any bytes, of JSON, of tables of lines, and of what a gzip holds."""

import gzip
import json
import zlib

NUMBERS = ["0", "-1", "1", "2", "-0", "0.5", "1e-300", "2147483648", "4611686018427387904", "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1" + "0" * 40, "1e308", "1e400",
           "-1e400", "NaN", "Infinity", "0x10", "1e6", "100000", "1_000"]
WORDS = [b"", b" ", b"\\u0000", b"\x00", b"\x1b[31mred", b"\x07\x08\x7f", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
         b"\xc2\x9b2J", b"\xe2\x80\xae", b"x" * 500, b"x" * 70_000, b"../../x", b"/dev/null", b"a\tb", b"a\rb", b"none",
         b"\xf0\x9f\x98\x80", b"%s%n", b"{}", b"\\ud800", b"'", b'\\"', b",", b"-"]
DEEP = 100_000  # brackets of what is nested deeply


def whole(draw, data):
    """Any bytes: some of them changed, taken out, doubled, put in, or the end cut off."""
    data, way = bytearray(data), draw.choice(["flip", "cut", "out", "twice", "in", "empty", "mark", "lines"])
    at = draw.randrange(len(data) + 1)
    some = draw.choice([1, 2, 10, 100, 1000])
    if way == "flip":
        for _ in range(draw.choice([1, 1, 3, 20])):
            if data:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif way == "cut":
        del data[at:]
    elif way == "out":
        del data[at:at + some]
    elif way == "twice":
        data[at:at] = data[at:at + some]
    elif way == "in":
        data[at:at] = draw.choice(WORDS + [b"\x00" * 300, b"[" * DEEP, b"\n" * 3000])
    elif way == "empty":
        data = bytearray(draw.choice([b"", b"\n", b" ", b"\x00", b"{}", b"[]", b"null", b"\xef\xbb\xbf", b"\x1f\x8b"]))
    elif way == "mark":
        data = bytearray(b"\xef\xbb\xbf" + data)
    else:
        data = data.replace(b"\n", draw.choice([b"\r\n", b"\r", b""]))
    return f"bytes: {way} at {at}", bytes(data)


def places(value, path=()):
    """Where a document's values are, as paths of keys and numbers."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


class Raw:
    """Words to be put into a text of JSON as they are, each in the place of a name that stands in it once."""

    def __init__(self):
        self.words = []

    def __call__(self, word, quoted):
        self.words.append(b'"' + word + b'"' if quoted else word)
        return f"@raw{len(self.words) - 1}@"

    def put_in(self, text):
        for number, word in enumerate(self.words):
            text = text.replace(f'"@raw{number}@"'.encode(), word)
        return text


def other(draw, value, raw):
    """What stands in place of a value."""
    way = draw.random()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and way < 0.7:
        near = [value + 1, value - 1, -value, value * 1000, value / 3, value * 2]
        return raw(draw.choice(NUMBERS).encode(), False) if draw.random() < 0.5 else draw.choice(near)
    if isinstance(value, str) and way < 0.7:
        return raw(draw.choice(WORDS), True)
    if way < 0.74:
        return raw(b"[" * DEEP + b"]" * DEEP, False)
    if way < 0.76:
        return raw(b'{"a":' * DEEP + b"1" + b"}" * DEEP, False)
    return draw.choice([None, True, [], {}, "", 0, -1, 1.5, "x", [value], {"x": value}, [[]], raw(b"\x1b", True)])


def of_object(draw, members, raw):
    """One member dropped, renamed, doubled or added."""
    key, way = draw.choice(list(members)), draw.choice(["drop", "rename", "double", "add"])
    if way == "drop":
        del members[key]
    elif way == "rename":
        renamed = draw.choice([key + "s", key[:-1], key.upper(), raw(draw.choice(WORDS), True)])
        members[renamed] = members.pop(key)
    elif way == "double":
        members[raw(json.dumps(key)[1:-1].encode(), True)] = draw.choice([members[key], None])
    else:
        members[draw.choice(["x", "", raw(draw.choice(WORDS), True)])] = draw.choice([1, {}, members[key]])
    return way, key


def of_list(draw, items):
    """One item dropped or doubled, or two exchanged."""
    way, first, second = draw.choice(["drop", "double", "swap", "many"]), *(draw.randrange(len(items)) for _ in "ab")
    if way == "drop":
        del items[first]
    elif way == "double":
        items.insert(second, items[first])
    elif way == "many":
        items.extend([items[first]] * draw.choice([10, 1000]))
    else:
        items[first], items[second] = items[second], items[first]
    return way, first


def once(draw, document, raw):
    """Changes one place of a document; returns what was done and the document."""
    path = draw.choice(list(places(document)))
    value = at(document, path)
    if isinstance(value, dict) and value and draw.random() < 0.8:
        return (*of_object(draw, value, raw), path), document
    if isinstance(value, list) and value and draw.random() < 0.8:
        return (*of_list(draw, value), path), document
    changed = other(draw, value, raw)
    if not path:
        return ("all", changed), changed
    at(document, path[:-1])[path[-1]] = changed
    return ("value", path, str(changed)[:40]), document


def of_json(draw, data):
    """A document of JSON, one to three places changed."""
    document, raw, done = json.loads(data), Raw(), []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        told, document = once(draw, document, raw)
        done.append(told)
    text = raw.put_in(json.dumps(document).encode())
    return f"json: {done} {[word[:30] for word in raw.words]}", text


def of_lines(draw, data):
    """A document of JSON a line: one line of them changed."""
    lines = data.splitlines()
    number = draw.randrange(len(lines))
    told, lines[number] = of_json(draw, lines[number])
    return f"line {number}: {told}", b"\n".join(lines) + b"\n"


def of_table(draw, data):
    """A table: a cell, a row or a column changed."""
    rows = [line.split(b",") for line in data.splitlines()]
    number = draw.randrange(len(rows))
    way = draw.choice(["cell", "cell", "cell", "number", "number", "row", "twice", "column", "head", "wide", "short"])
    row = rows[number]
    column = draw.randrange(len(row))
    if way == "cell":
        row[column] = draw.choice(WORDS + [b'"', b'"a\nb"', b'"a""b"', b"a;b"])
    elif way == "number":
        row[column] = draw.choice(NUMBERS).encode()
    elif way in ("row", "twice"):
        rows[number:number + 1] = [] if way == "row" else [row, row]
    elif way == "column":
        rows = [each[:column] + each[column + 1:] for each in rows]
    elif way == "head":
        head = rows[0]
        head[column % len(head)] = draw.choice([head[0], b"", b"x", *WORDS])
    else:
        row[column:] = row[column:] + [b"1"] * 3 if way == "wide" else []
    return f"table: {way} {number} {column}", b"\n".join(b",".join(each) for each in rows) + b"\n"


def of_words(draw, data):
    """A text of words and numbers, as scripts and YAML are: one replaced, or one line dropped, doubled or moved in."""
    lines = data.split(b"\n")
    number = draw.randrange(len(lines))
    way = draw.choice(["word", "word", "number", "drop", "double", "indent"])
    if way in ("word", "number"):
        words = lines[number].split(b" ")
        words[draw.randrange(len(words))] = draw.choice(NUMBERS).encode() if way == "number" else draw.choice(WORDS)
        lines[number] = b" ".join(words)
    elif way == "indent":
        lines[number] = b"  " + lines[number]
    else:
        lines[number:number + 1] = [] if way == "drop" else [lines[number]] * 2
    return f"words: {way} {number}", b"\n".join(lines)


WAYS = {"json": of_json, "lines": of_lines, "table": of_table, "words": of_words, "bytes": whole}


def mutated(draw, data, kind):
    """What was done, and the bytes after it. `kind`: one of WAYS, by what the bytes are; of a gzip what it holds."""
    if data[:2] == b"\x1f\x8b" and draw.random() < 0.7:
        told, inner = mutated(draw, gzip.decompress(data), kind)
        packed = zlib.compressobj(1, wbits=31)
        return f"zipped, {told}", packed.compress(inner) + packed.flush()
    if data[:2] == b"\x1f\x8b" or draw.random() < 0.25:
        return whole(draw, data)
    return WAYS[kind](draw, data)
