"""Compressed streams: what goes in comes out, and nothing that comes in is trusted (S7, S15)."""

from __future__ import annotations

import random
import tarfile
import time

import pytest

from memfs.errors import CorruptRecord
from memfs.fs.archive import compress, compressed, decompress, decompressed, header, members

TEXT = b"a line of state, again and again\n" * 20_000
NOISE = random.Random(1).randbytes(300_000)


def written(*pieces: bytes, threads: int = 0) -> bytes:
    """One frame of these pieces."""
    return b"".join(compressed(pieces, 3, threads))


@pytest.mark.parametrize("threads", [0, 2])
def test_a_stream_comes_back_across_frames(threads: int) -> None:
    """Frames may follow each other, and may be read in pieces of any size."""
    data = written(TEXT, NOISE, threads=threads) + compress(b"end") + written()
    found = b"".join(decompressed(data[at : at + 70_001] for at in range(0, len(data), 70_001)))

    assert found == TEXT + NOISE + b"end"
    assert len(written(TEXT)) < len(TEXT) / 20


def test_the_same_bytes_give_the_same_frame() -> None:
    """Archives and payloads are deterministic."""
    assert compress(TEXT) == compress(TEXT)
    assert written(TEXT, NOISE) == written(TEXT + NOISE)


@pytest.mark.parametrize(
    "damaged",
    [b"", b"not compressed", compress(TEXT)[:-1], compress(TEXT)[:3], compress(TEXT) + b"rest"],
    ids=["empty", "foreign", "cut off", "only a beginning", "followed by something"],
)
def test_what_is_not_whole_is_refused(damaged: bytes) -> None:
    """A stream that ends early is not taken for a short one."""
    with pytest.raises(CorruptRecord, match=r"cut off|damaged"):
        decompress(damaged, 1 << 20, "a.zst")


def test_every_flipped_bit_of_the_content_is_noticed() -> None:
    """The frame's own checksum vouches for what comes out (S18)."""
    whole = compress(NOISE[:5_000])
    for at in range(4, len(whole), 397):
        damaged = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
        try:
            found = decompress(damaged, 1 << 20)
        except CorruptRecord:
            continue
        assert found == NOISE[:5_000]  # a bit that says nothing


def test_a_bomb_is_never_unpacked() -> None:
    """No more comes out than the caller allows; the error names file and remedy."""
    bomb = compress(bytes(50_000_000))

    with pytest.raises(CorruptRecord, match="more than 1000 bytes") as caught:
        decompress(bomb, 1000, "bomb.zst")

    assert caught.value.path == "bomb.zst"
    assert caught.value.hint
    assert decompress(bomb[:0] + compress(b"x" * 1000), 1000) == b"x" * 1000


@pytest.mark.parametrize("extended", [b"9" * 30 + b" path=a\n", b"1" * 65_000], ids=["huge length", "digits"])
def test_an_extended_header_is_refused_at_once(extended: bytes) -> None:
    """Whatever is in the header of a tar, it is damage, and costs no time."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, len(extended)
    before = info.tobuf(tarfile.USTAR_FORMAT) + extended + bytes(-len(extended) % 512)
    began = time.process_time()
    with pytest.raises(CorruptRecord, match="a header is damaged"):
        list(members([before + header("a", 0) + bytes(1024)]))
    assert time.process_time() - began < 1
