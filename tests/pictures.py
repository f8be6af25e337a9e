"""Pictures of every kind, as small as their headers: what follows the headers does not matter here."""

import struct


def png(width: int = 640, height: int = 480) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


def gif(width: int = 640, height: int = 480) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def jpeg(width: int = 640, height: int = 480) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 40) + bytes(38)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + exif + frame


def webp(kind: bytes = b"VP8X", width: int = 640, height: int = 480) -> bytes:
    match kind:
        case b"VP8X":
            data = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case b"VP8L":
            data = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
        case _:
            data = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + data
