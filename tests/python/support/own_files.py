"""Images, clips and audio of any size in a few bytes: headers as encoders write them, and hardly any content."""

import io
import struct
import tarfile
import zlib


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def jpeg(width, height, before=b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00", start=0xC0):
    size = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + before + struct.pack(">BBH", 0xFF, start, 2 + len(size)) + size + b"\xff\xda\x00\x02"


def exif(length):
    """A segment as large as a thumbnail makes it; what is inside looks like another image."""
    inside = b"Exif\x00\x00" + jpeg(7, 7)
    return struct.pack(">BBH", 0xFF, 0xE1, length + 2) + inside + b"\x00" * (length - len(inside))


def riff(form, data):
    return b"RIFF" + struct.pack("<I", 4 + len(data)) + form + data


def webp(width, height, form=b"VP8 "):
    if form == b"VP8 ":
        data = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    elif form == b"VP8L":
        data = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        data = b"\x10\x00\x00\x00" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return riff(b"WEBP", form + struct.pack("<I", len(data)) + data)


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def bmp(width, height, old=False):
    info = struct.pack("<IHHHH", 12, width, height, 1, 24) if old else struct.pack("<IiiHH", 40, width, -height, 1, 24)
    return b"BM" + struct.pack("<IHHI", 14 + len(info), 0, 0, 14 + len(info)) + info + b"\x00" * 8


def tiff(width, height, order="<", form="H", before=()):
    """One directory behind 4 bytes of pixels; `before` are tags in front of the sides."""
    size = 3 if form == "H" else 4
    entries = [struct.pack(order + "HHII", tag, 4, 1, 7) for tag in before]
    for tag, side in ((256, width), (257, height)):
        value = struct.pack(order + form, side).ljust(4, b"\0")
        entries.append(struct.pack(order + "HHI", tag, size, 1) + value)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 12) + b"\0" * 4
    return head + struct.pack(order + "H", len(entries)) + b"".join(entries) + b"\0" * 4


def wav(seconds, rate=16_000):
    data = b"\x00" * int(seconds * rate) * 2
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    return riff(b"WAVE", b"LIST" + struct.pack("<I", 3) + b"abc\x00" + b"fmt " + struct.pack("<I", 16) + form +
                b"data" + struct.pack("<I", len(data)) + data)


def flac(seconds, rate=44_100):
    bits = rate << 44 | 15 << 36 | int(seconds * rate)
    return b"fLaC\x80\x00\x00\x22" + b"\x10\x00" * 2 + b"\x00" * 6 + bits.to_bytes(8, "big") + b"\x00" * 16


def box(kind, *parts):
    data = b"".join(parts)
    return struct.pack(">I4s", 8 + len(data), kind) + data


def mp4(width, height, seconds, fps, last=True, version=0, handler=b"vide"):
    """With its index behind the content, as most encoders have it, or in front."""
    scale = 1000
    mdhd = struct.pack(">IIIII", 0, 0, 0, scale, round(seconds * scale)) if version == 0 else (
        struct.pack(">IQQIQ", 1 << 24, 0, 0, scale, round(seconds * scale)))
    frames = round(seconds * fps)
    stts = struct.pack(">IIIIII", 0, 2, frames - 1, 1, 1, 2)
    track = box(b"trak", box(b"tkhd", b"\x00" * 76 + struct.pack(">II", width << 16, height << 16)),
                box(b"mdia", box(b"mdhd", mdhd), box(b"hdlr", b"\x00" * 8 + handler + b"\x00" * 13),
                    box(b"minf", box(b"stbl", box(b"stts", stts)))))
    sound = box(b"trak", box(b"tkhd", b"\x00" * 84), box(
        b"mdia", box(b"mdhd", struct.pack(">IIIII", 0, 0, 0, 48_000, 480_000)),
        box(b"hdlr", b"\x00" * 8 + b"soun" + b"\x00" * 13)))
    moov, mdat = box(b"moov", box(b"mvhd", b"\x00" * 100), sound, track), struct.pack(">I4sQ", 1, b"mdat", 16 + 5000)
    parts = [mdat + b"\x00" * 5000, moov]
    return box(b"ftyp", b"isom\x00\x00\x02\x00") + b"".join(parts if last else parts[::-1])


def tar(contents):
    """A shard of text files, in their order."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as shard:
        for name, text in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            shard.addfile(member, io.BytesIO(text.encode()))
    return whole.getvalue()
