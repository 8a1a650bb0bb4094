"""Configurations of earlier versions are read under the present names."""

import pytest

from regard.config.loading import dump, from_mapping, load
from regard.foundation.errors import UsageError

DATA = {"train": {"tsv": "x.tsv"}}


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ({"kind": "acceptor"}, "classification"),
        ({"kind": "acceptor", "output": "classes"}, "classification"),
        ({"kind": "acceptor", "output": "number"}, "regression"),
        ({"kind": "transducer"}, "tagging"),
        ({"kind": "translation"}, "translation"),
    ],
)
def test_earlier_names_of_tasks_are_understood(shape, kind):
    config = from_mapping({"data": DATA, "shape": shape})
    assert config.task.kind == kind
    assert "shape" not in dump(config) and from_mapping({"data": DATA, "task": {"kind": kind}}) == config


def test_overrides_may_have_earlier_names_too(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("shape:\n  kind: acceptor\n  pool: max\ndata: {train: {tsv: x.tsv}}\n")
    assert load(path, ["shape.output=number"]).task.kind == "regression"
    assert load(path, ["task.kind=regression"]).task.model_dump()["pool"] == "max"


def test_a_mistake_in_an_earlier_file_is_reported_at_its_line(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("data: {train: {tsv: x.tsv}}\nshape:\n  kind: acceptor\n  pol: max\n")
    with pytest.raises(UsageError, match=r"my\.yaml:4: task\.pol is not a setting; did you mean pool"):
        load(path)


NUMBERS = {"train": {"tsv": "pairs.tsv"}}


def test_an_acceptor_of_numbers_stays_one_under_an_override_of_its_kind():
    old = {"shape": {"kind": "acceptor", "output": "number"}, "data": NUMBERS}
    assert from_mapping(old, ["shape.kind=acceptor"]).task.kind == "regression"
    assert from_mapping(old, ["shape.output=classes"]).task.kind == "classification"
    assert from_mapping(old, ["task.kind=classification"]).task.kind == "classification"


def test_earlier_and_present_names_may_be_mixed_where_they_do_not_contradict():
    found = from_mapping({"data": NUMBERS}, ["task.kind=classification", "shape.pool=max"])
    assert (found.task.kind, found.task.pool) == ("classification", "max")
    with pytest.raises(UsageError, match="`shape` is the earlier name of `task`"):
        from_mapping({"shape": {"kind": "acceptor"}, "task": {"kind": "tagging"}, "data": NUMBERS})


def test_an_earlier_name_under_task_is_refused_with_the_present_one():
    with pytest.raises(UsageError, match='not "acceptor"; did you mean classification'):
        from_mapping({"data": DATA, "task": {"kind": "acceptor"}})
