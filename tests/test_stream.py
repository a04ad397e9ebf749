import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import RunNotFoundError, TraceFormatError
from analyzer.ingest.kineto import stream as module
from analyzer.ingest.kineto.stream import Stream

TEXT = b"".join(b'{"ph": "X", "ts": %d.125},\n' % (7 * i) for i in range(20_000))


@pytest.fixture(params=["isal", "zlib"])
def library(request, monkeypatch):
    if request.param == "zlib":
        monkeypatch.setattr(module, "_library", lambda: zlib)
        monkeypatch.setattr(module, "_PackError", zlib.error)
    return request.param


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "trace.json"
        path.write_bytes(content)
        return path

    return write


def everything(path, size=100_000):
    with Stream(path) as stream:
        blocks = []
        while block := stream.read(size):
            blocks.append(block)
        return b"".join(blocks), stream.problem


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("size", [1, 1000, 1 << 16, 1 << 30])
def test_blocks_of_any_size_add_up_to_the_file(file, pack, size):
    text = TEXT[: 5000 if size == 1 else None]
    assert everything(file(pack(text)), size) == (text, "")


@settings(deadline=None)
@given(st.lists(st.integers(1, 90_000), max_size=12))
def test_sizes_may_change_from_one_read_to_the_next(sizes):
    path = Path(__file__)
    text = path.read_bytes()
    with Stream(path) as stream:
        got = b"".join(stream.read(size) for size in sizes)
    assert got == text[: sum(sizes)]


def test_gzip_is_told_by_its_first_bytes_not_by_the_name(file):
    with Stream(file(gzip.compress(TEXT))) as stream:
        assert stream.is_packed


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("read_bytes", [1, 2, 7, 1 << 16])
def test_members_are_joined_wherever_a_read_ends(file, monkeypatch, read_bytes):
    monkeypatch.setattr(module, "READ_BYTES", read_bytes)
    text = TEXT[:3000]
    packed = gzip.compress(text[:1000]) + gzip.compress(b"") + gzip.compress(text[1000:])
    assert everything(file(packed)) == (text, "")


@pytest.mark.usefixtures("library")
def test_zero_padding_behind_gzip_is_legal(file):
    assert everything(file(gzip.compress(TEXT) + bytes(70_000))) == (TEXT, "")


@pytest.mark.usefixtures("library")
def test_something_else_behind_gzip_is_told(file):
    assert everything(file(gzip.compress(TEXT) + b"hello")) == (
        TEXT,
        "5 or more bytes of something else follow the gzip data: not read",
    )


@pytest.mark.usefixtures("library")
def test_a_cut_gzip_file_gives_all_that_was_packed(file):
    packed = gzip.compress(TEXT)
    text, problem = everything(file(packed[: len(packed) // 2]))
    assert (text == TEXT[: len(text)], len(text) > 200_000, problem.split(",")[0]) == (
        True,
        True,
        "the gzip data ends early",
    )


@pytest.mark.usefixtures("library")
def test_a_flipped_bit_in_gzip_is_damage_and_not_an_early_end(file):
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1  # of the checksum
    _, problem = everything(file(bytes(packed)))
    assert problem.startswith("the gzip data is damaged before byte")


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "Zstandard data, not JSON; unpack it first: zstd -d"),
        (b"\xfd7zXZ\x00\x00", "xz data, not JSON; unpack it first: xz -d"),
        (b"BZh91AY", "bzip2 data, not JSON; unpack it first: bzip2 -d"),
        (b"\x04\x22\x4d\x18", "LZ4 data, not JSON; unpack it first: lz4 -d"),
        (b"PK\x03\x04", "a zip archive, not JSON; unpack it first"),
        (b"SQLite format 3\x00", "an SQLite database, not JSON; export the trace as Chrome-trace JSON"),
        (b"\xff\xfe{\x00", "UTF-16 text, not JSON; convert it to UTF-8 first"),
    ],
)
def test_other_packings_are_named_with_their_cure(file, start, says):
    path = file(start)
    with pytest.raises(TraceFormatError) as error:
        Stream(path)
    assert str(error.value) == f"{path}: {says}"


def test_an_empty_file_is_named(file):
    with pytest.raises(TraceFormatError, match=r"empty file \(0 bytes\); record or copy the trace again"):
        Stream(file(b""))


def test_a_directory_is_named(tmp_path):
    with pytest.raises(TraceFormatError, match="a directory, not a trace file"):
        Stream(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RunNotFoundError, match="no such file"):
        Stream(tmp_path / "none.json")


def test_a_file_without_permission_is_named(file, monkeypatch):
    path = file(TEXT)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceFormatError, match=r"cannot be opened \(Permission denied\); check its permissions"):
        Stream(path)


def test_a_disk_error_ends_the_stream_and_is_told(file):
    class Disk:
        def read(self, _size):
            raise OSError(5, "Input/output error")

        def tell(self):
            return 1234

        def close(self):
            pass

    with Stream(file(TEXT)) as stream:
        stream._file.close()
        stream._file = Disk()
        text = stream.read(50) + stream.read(50)
    assert (text, stream.problem) == (
        TEXT[:16],
        "the disk gave an error at byte 1,234 of the file (Input/output error): the rest is missing",
    )
