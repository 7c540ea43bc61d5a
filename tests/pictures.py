"""Images made on the spot."""

import struct
import zlib


def png(width: int = 1, height: int = 1, seed: int = 0) -> bytes:
    """A grey image; of another seed it has other bytes."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = (b"\0" + bytes([seed]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + header + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
