"""Configurations that name a public corpus: `data: {corpus: NAME}`."""

import re
from pathlib import Path

import pytest

from regard.cli import main
from regard.config.loading import dump, from_mapping, load
from regard.foundation.errors import UsageError

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared" / "data"
RECIPES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.yaml"))


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def sick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files of SICK's names."""
    directory = tmp_path / "own" / "sick"
    directory.mkdir(parents=True)
    for name in ("SICK_train.txt", "SICK_trial.txt"):
        (directory / name).write_text("id\ta\tb\tscore\tlabel\n1\tx\ty\t1.0\tNEUTRAL\n")
    monkeypatch.setenv("REGARD_DATA", str(directory.parent))
    return directory


def config(data: dict, *overrides: str):
    return from_mapping({"task": {"kind": "classification"}, "data": data}, overrides)


def test_a_corpus_stands_for_the_sections_it_has(sick: Path) -> None:
    found = config({"corpus": "sick/entailment", "held_out": 7}).data
    assert found.train.tsv == [str(sick / "SICK_train.txt")]
    assert found.test.tsv == [str(sick / "SICK_trial.txt")]
    assert (found.train.target_column, found.train.header, found.validation, found.held_out) == (5, True, None, 7)


def test_the_file_wins_over_the_corpus_and_the_command_line_over_both(sick: Path) -> None:
    found = config({"corpus": "sick/entailment", "test": None, "train": {"target_column": 4}}).data
    assert (found.train.target_column, found.test) == (4, None)
    assert config({"corpus": "sick/entailment"}, "data.train.target_column=1").data.train.target_column == 1
    other = config({"corpus": "sick/entailment"}, "data.corpus=sick/relatedness").data
    assert (other.train.target_column, other.test.target_column) == (4, 4)
    own = config({"train": {"tsv": "mine.tsv"}}, "data.corpus=sick/entailment").data
    assert own.train.tsv == [str(sick / "SICK_train.txt")]


def test_another_sort_of_train_file_keeps_nothing_of_the_corpus(sick: Path) -> None:
    found = config({"corpus": "sick/entailment", "train": {"jsonl": "mine.jsonl", "second_field": "b"}}).data
    assert found.train.jsonl == ["mine.jsonl"]


def test_the_paths_are_absolute_whatever_regard_data_says(sick: Path, monkeypatch) -> None:
    monkeypatch.chdir(sick.parent.parent)
    monkeypatch.setenv("REGARD_DATA", "own")
    assert config({"corpus": "sick/entailment"}).data.train.tsv == [str(sick / "SICK_train.txt")]


def test_a_dumped_configuration_is_the_same(sick: Path, tmp_path: Path) -> None:
    found = config({"corpus": "sick/entailment"})
    (tmp_path / "again.yaml").write_text(dump(found))
    assert load(tmp_path / "again.yaml") == found


def test_the_configuration_of_a_run_is_read_where_the_corpus_is_gone(sick: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "config.yaml").write_text(dump(config({"corpus": "sick/entailment"})))
    monkeypatch.delenv("REGARD_DATA")
    assert load(tmp_path / "config.yaml", of_run=True).data.train.tsv == [str(sick / "SICK_train.txt")]


def test_a_missing_corpus_is_refused_with_the_command_that_gets_it(tmp_path: Path, capsys) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("task: {kind: classification}\ndata:\n  corpus: sick/entailment\n")
    assert main(["config", "show", str(file)]) == 2
    said = capsys.readouterr().err
    assert "my.yaml:3:" in said and "`regard data get sick/entailment`" in said and "REGARD_DATA" in said
    assert len(re.findall(r"\.(?=\s|$)", said)) <= 2


@pytest.mark.parametrize(
    ("corpus", "complaint"),
    [
        ("sik", "did you mean sick"),
        ("sick/entailed", "sick/relatedness"),
        ("sick", "several parts"),
        (["sick/entailment"], "data.corpus must be a word"),
        ("", "not a known corpus"),
    ],
)
def test_what_is_no_corpus_is_refused(sick: Path, corpus: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        config({"corpus": corpus})


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_loads_from_anywhere(recipe: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(SHARED))
    monkeypatch.chdir(tmp_path)
    if start := re.search(r"start_from: (runs/([\w-]+))", (ROOT / recipe).read_text(encoding="utf-8")):
        (tmp_path / start[1]).mkdir(parents=True)
        (tmp_path / start[1] / "run.json").write_text("{}")
        first = load(ROOT / "recipes" / f"{start[2]}.yaml")  # the recipe of the run that this one starts from
        (tmp_path / start[1] / "config.yaml").write_text(dump(first.resolved()))
    data = load(ROOT / recipe).data
    for corpus in (data.train, data.validation, data.test):
        for file in corpus.files if corpus is not None else []:
            assert Path(file).is_file() or file.startswith("runs/") or recipe.startswith("recipes/wmt14")


def test_no_recipe_names_a_directory_that_users_lack() -> None:
    assert [path for path in RECIPES if "shared/data" in (ROOT / path).read_text(encoding="utf-8")] == []
