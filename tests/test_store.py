"""The token store: what is stored comes back, and a damaged store is refused."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.store import StoreWriter, TokenStore
from regard.foundation.errors import RegardError

ROWS = st.lists(st.lists(st.integers(0, 70_000), max_size=9), max_size=12)


@given(sources=ROWS, chunk=st.integers(1, 5), large=st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_is_stored_comes_back(
    sources: list[list[int]], chunk: int, large: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("store") / "s"
    limit = 70_001 if large else 65_536
    sources = [[token % limit for token in row] for row in sources]
    targets = [row[::-1] * 2 for row in sources]
    with StoreWriter(directory, limit) as writer:
        for start in range(0, len(sources), chunk):
            writer.write(sources[start : start + chunk], targets[start : start + chunk])
    store = TokenStore(directory)
    store.verify()
    assert [(s.tolist(), t.tolist()) for s, t in (store[i] for i in range(len(store)))] == list(
        zip(sources, targets, strict=True)
    )
    assert store.lengths[0].tolist() == [len(row) for row in sources]
    assert store.tokens == (sum(map(len, sources)), 2 * sum(map(len, sources)))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with StoreWriter(tmp_path / "store", 100) as writer:
        writer.write([[7, 8], [9]], [[1], [2, 3]])
    return tmp_path / "store"


DAMAGE: dict[str, Any] = {
    "cut tokens": lambda d: os.truncate(d / "source.tokens", 2),
    "no offsets": lambda d: (d / "target.offsets").unlink(),
    "no header": lambda d: (d / "header.json").unlink(),
    "broken header": lambda d: (d / "header.json").write_text("{"),
    "a list": lambda d: (d / "header.json").write_text("[]"),
    "foreign": lambda d: (d / "header.json").write_text('{"format": "other"}'),
    "other counts": lambda d: (d / "header.json").write_text(
        (d / "header.json").read_text().replace('"pairs": 2', '"pairs": 3')
    ),
    "strange type": lambda d: (d / "header.json").write_text((d / "header.json").read_text().replace("uint16", "junk")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_or_foreign_store_is_refused(damage: Any, stored: Path) -> None:
    damage(stored)
    with pytest.raises(RegardError, match="not a token store, or is damaged"):
        TokenStore(stored)


def test_a_store_of_a_newer_version_is_refused(stored: Path) -> None:
    (stored / "header.json").write_text((stored / "header.json").read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(RegardError, match="update Regard"):
        TokenStore(stored)


def test_a_changed_byte_fails_the_checksum(stored: Path) -> None:
    (stored / "source.tokens").write_bytes(b"\1" * 6)
    with pytest.raises(RegardError, match="checksum"):
        TokenStore(stored).verify()


def test_a_failed_writing_leaves_the_old_store(stored: Path) -> None:
    with pytest.raises(KeyboardInterrupt), StoreWriter(stored, 100) as writer:
        writer.write([[1]], [[1]])
        raise KeyboardInterrupt
    assert len(TokenStore(stored)) == 2
    assert [path.name for path in stored.parent.iterdir()] == ["store"]
