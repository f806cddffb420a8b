"""Compressed text, line by line."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def text_lines(path: Path) -> Iterator[TextIO]:
    """Opens a text that zstd compressed."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(f"{path.name} is compressed by zstd; install the extra: pip install 'stealgrid[events]'") from error
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as bytes_:
        yield io.TextIOWrapper(bytes_, encoding="utf-8")
