"""Directories of Hugging Face datasets: every layout gives the same pairs, and what is missing is named."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from regard.config.loading import from_mapping
from regard.data.corpus import Pair, read
from regard.foundation.errors import RegardError
from regard.tasks.preparation import prepare

pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
pytest.importorskip("pyarrow.ipc")
pytest.importorskip("pyarrow.parquet")

ROWS = [{"translation": {"en": f"row {n}", "de": f"Zeile\t{n}"}, "stars": n, "label": n % 3 - 1} for n in range(40)]
PAIRS = [Pair(f"row {n}", f"Zeile {n}") for n in range(40)]
FEATURES = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "stars": {"dtype": "int64", "_type": "Value"}}
METADATA = {b"huggingface": json.dumps({"info": {"features": FEATURES}}).encode()}


def tables(parts: int = 3) -> list[Any]:
    whole = pyarrow.Table.from_pylist(ROWS).replace_schema_metadata(METADATA)
    cuts = [round(part * len(ROWS) / parts) for part in range(parts + 1)]
    return [whole.slice(start, end - start) for start, end in pairwise(cuts)]


def save_to_disk(directory: Path) -> None:
    """Write what `Dataset.save_to_disk` writes: a stream of Arrow batches in each file."""
    directory.mkdir(parents=True)
    names = [f"data-{number:05}-of-00003.arrow" for number in range(3)]
    for name, table in zip(names, tables(), strict=True):
        with pyarrow.ipc.new_stream(str(directory / name), table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    (directory / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (directory / "dataset_info.json").write_text("{}")


def save_splits(directory: Path) -> None:
    for split in ("train", "validation"):
        save_to_disk(directory / split)
    (directory / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation"]}))


def save_parquet(directory: Path) -> None:
    (directory / "data").mkdir(parents=True)
    for number, table in enumerate(tables()):
        pyarrow.parquet.write_table(table, directory / "data" / f"train-{number:05}-of-00003.parquet", row_group_size=7)
    pyarrow.parquet.write_table(tables()[0], directory / "data" / "test-00000-of-00001.parquet")


def save_converted(directory: Path) -> None:
    """Write the layout of the hub's own conversion: a folder for each split, and numbers for names."""
    (directory / "train").mkdir(parents=True)
    for number, table in enumerate(tables()):
        pyarrow.parquet.write_table(table, directory / "train" / f"{number:04}.parquet")


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "a dataset": save_to_disk,
    "splits": save_splits,
    "parquet": save_parquet,
    "converted": save_converted,
}


def corpus(directory: Path, **settings: Any) -> Any:
    return from_mapping({"data": {"train": {"dataset": str(directory), **settings}}}).data.train


@pytest.mark.parametrize("names", [("en", "de"), ("translation.en", "translation.de")])
@pytest.mark.parametrize("save", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_has_the_same_pairs(save: Callable[[Path], None], names: tuple[str, str], tmp_path: Path) -> None:
    save(tmp_path / "set")
    assert list(read(corpus(tmp_path / "set", source=names[0], target=names[1]))) == PAIRS


def test_classes_have_their_names_and_numbers_stay_numbers(tmp_path: Path) -> None:
    """-1 stands for no label, and such examples are dropped."""
    save_to_disk(tmp_path / "set")
    found = list(read(corpus(tmp_path / "set", source="en", second="stars", target="label")))
    assert found[:3] == [Pair("row 0\t0", ""), Pair("row 1\t1", "bad"), Pair("row 2\t2", "good")]


def test_a_dataset_is_prepared(tmp_path: Path) -> None:
    save_splits(tmp_path / "set")
    data = {part: {"dataset": str(tmp_path / "set"), "split": part, "source": "en", "target": "de"} for part in SPLITS}
    assert len(prepare(from_mapping({"data": data}), tmp_path / "run").train) == 40


SPLITS = ("train", "validation")


def lose_a_file(directory: Path) -> None:
    (directory / "data-00001-of-00003.arrow").unlink()


def cut_a_file(directory: Path) -> None:
    path = directory / "data-00002-of-00003.arrow"
    path.write_bytes(path.read_bytes()[:-500])


def lead_outside(directory: Path) -> None:
    (directory / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../../etc/passwd"}]}))


@pytest.mark.parametrize(
    ("damage", "settings", "message"),
    [
        (lambda _: None, {"source": "fr"}, r"no column called `fr` \(it has translation.en, translation.de, stars, "),
        (lambda _: None, {"source": "translation"}, "no column called `translation`"),
        (lose_a_file, {}, "data-00001-of-00003.arrow, a file of the dataset, does not exist"),
        (cut_a_file, {}, "cannot be read after row"),
        (lead_outside, {}, "does not exist"),
        (lambda place: (place / "state.json").write_text("{"), {}, "cannot be read as JSON"),
        (lambda place: (place / "state.json").write_text("[]"), {}, "not a JSON object"),
        (lambda place: (place / "state.json").unlink(), {}, "is not a dataset"),
        (shutil.rmtree, {}, "is not a directory"),
    ],
)
def test_what_is_missing_or_damaged_is_named(
    damage: Callable[[Path], Any], settings: dict[str, str], message: str, tmp_path: Path
) -> None:
    save_to_disk(tmp_path / "set")
    damage(tmp_path / "set")
    with pytest.raises(RegardError, match=message):
        list(read(corpus(tmp_path / "set", **{"source": "en", "target": "de", **settings})))


@pytest.mark.parametrize("save", [save_splits, save_parquet])
def test_a_missing_split_is_named_with_those_there_are(save: Callable[[Path], None], tmp_path: Path) -> None:
    save(tmp_path / "set")
    with pytest.raises(RegardError, match=r"no split `dev` \(it has .*train.*\)\. Set split"):
        list(read(corpus(tmp_path / "set", split="dev", source="en", target="de")))


def test_several_datasets_in_one_directory_are_not_mixed(tmp_path: Path) -> None:
    for name in ("de-en", "fr-en"):
        save_parquet(tmp_path / "set" / name)
    with pytest.raises(RegardError, match=r"several datasets .*de-en/data, fr-en/data"):
        list(read(corpus(tmp_path / "set", source="en", target="de")))
