"""The laboratory's one function of its own.

Owns a stand-in: no face is found here, and nothing of the pictures is real.
"""  # noqa: INP001  (a file that commands and brokers are told of)

from collections.abc import Mapping
from typing import Any

from headwater import Function


def face_detect(video: Mapping[str, Any]) -> str:
    """Stands in for a detector of faces: the bright bytes of a frame, counted in a word."""
    frame = video.get("frame", b"")
    bright = sum(byte > 250 for byte in frame)
    return f"{bright // 64} faces"


FaceDetect = Function(face_detect, "text")
