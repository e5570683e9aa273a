"""Makes a picture of a page smaller: with a palette of its 256 most frequent colours."""

from __future__ import annotations

import struct
import zlib
from collections import Counter


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def lines_of(data: bytes) -> tuple[int, int, list[bytes]]:
    """Width, bytes of a pixel, and the pixels of each line, of a PNG as browsers write it."""
    packed, at, width, pixel = b"", 8, 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        at += size + 12
        if kind == b"IHDR":
            width, _, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colours in (2, 6) and not interlaced
            pixel = 3 if colours == 2 else 4
        elif kind == b"IDAT":
            packed += body
    raw, stride = zlib.decompress(packed), width * pixel
    before, lines = bytearray(stride), []
    for start in range(0, len(raw), stride + 1):
        line = bytearray(raw[start + 1:start + 1 + stride])
        undo(raw[start], line, before, pixel)
        lines.append(bytes(line))
        before = line
    return width, pixel, lines


def undo(how: int, line: bytearray, above: bytearray, pixel: int) -> None:
    """Of the five filters of PNG."""
    for index in range(len(line)):
        left = line[index - pixel] if index >= pixel else 0
        up = above[index]
        corner = above[index - pixel] if index >= pixel else 0
        if how == 1:
            line[index] = (line[index] + left) & 255
        elif how == 2:
            line[index] = (line[index] + up) & 255
        elif how == 3:
            line[index] = (line[index] + (left + up) // 2) & 255
        elif how == 4:
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                       (abs(guess - corner), 2, corner))[2]
            line[index] = (line[index] + near) & 255


def smaller(data: bytes) -> bytes:
    width, pixel, lines = lines_of(data)
    rows = [[line[at:at + 3] for at in range(0, len(line), pixel)] for line in lines]
    counts = Counter(colour for row in rows for colour in row)
    palette = [colour for colour, _ in counts.most_common(256)]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in counts:
        if colour not in places:
            places[colour] = min(range(len(palette)), key=lambda place: sum(
                (one - other) ** 2 for one, other in zip(colour, palette[place])))
    packed = b"".join(b"\0" + bytes(places[colour] for colour in row) for row in rows)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", b"".join(palette))
            + chunk(b"IDAT", zlib.compress(packed, 9)) + chunk(b"IEND", b""))
