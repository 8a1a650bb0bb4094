"""Records: JSON objects, rows of tables and triples as sources of texts."""

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.corpus import Pair, group_references, read
from regard.evaluation.confidence import features
from regard.foundation.errors import RegardError, UsageError
from regard.inspection.analyses.reference.compute import reference
from regard.models.field_positions import number_fields, own_field
from regard.search import Constraints, Search
from regard.tasks.loaded import load_run
from regard.tasks.preparation import prepare
from regard.text.mentions import find_missing
from regard.text.records import RecordForm, linearise, parse_record, readable_name, record_problem
from regard.text.specials import BOS, EOS, PAD, SEP
from regard.text.templates import PLACEHOLDERS, Template
from regard.training import loop
from regard.training.loop import train
from regard.training.validation import validate
from tests.serving import running_server

NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ida", "Jon")
TOWNS = ("Oslo", "Rome", "Lima", "Bonn", "Cork")


def examples(count: int = 200) -> list[dict[str, Any]]:
    """Names and towns, with two references each."""
    found = []
    for number in range(count):
        name, town, age = NAMES[number % 10], TOWNS[number // 10 % 5], 20 + number // 50
        texts = [f"{name} lives in {town} at {age}.", f"{name}, who is {age}, lives in {town}."]
        found.append({"record": {"name": name, "homeTown": town, "age": age}, "texts": texts})
    return found


def written(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def settings(directory: Path, **more: Any) -> dict[str, Any]:
    data = {"records": written(directory / "train.jsonl", examples()), "record_field": "record", "text_field": "texts"}
    found: dict[str, Any] = {
        "task": {"kind": "data-to-text"},
        "data": {"train": data, "held_out": 40},
        "model": {
            "width": 32,
            "encoder": {"kind": "transformer", "layers": 1},
            "decoder": {"kind": "transformer", "layers": 1},
        },
        "training": {
            "steps": 60,
            "validate_every": 30,
            "checkpoint_every": 30,
            "batch_tokens": 600,
            "device": "cpu",
            "optimizer": {"learning_rate": 0.01},
        },
    }
    for name, value in more.items():
        found[name] = {**found.get(name, {}), **value}
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run that describes records, with copying and positions of fields."""
    directory = tmp_path_factory.mktemp("records")
    config = from_mapping(settings(directory, model={"width": 32, "copying": True, "field_positions": True}))
    train(config, directory / "run")
    return directory / "run"


def test_a_field_that_occurs_twice_is_refused(run: Path, tmp_path: Path, capsys) -> None:
    """`json` would keep the last one."""
    twice = '{"name": "Ann", "name": "Bob"}'
    with pytest.raises(RegardError, match="has the field `name` twice"):
        parse_record(twice)
    (tmp_path / "in.jsonl").write_text(f'{{"name": "Ann"}}\n{twice}\n')
    assert main(["translate", str(run), str(tmp_path / "in.jsonl")]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 and "Line 2" in err and "twice" in err
    (tmp_path / "twice.jsonl").write_text(f'{{"record": {twice}, "text": "x"}}\n')
    corpus = from_mapping(settings(tmp_path)).data.train.model_copy(update={"records": [str(tmp_path / "twice.jsonl")]})
    with pytest.raises(RegardError, match=r"twice\.jsonl:1 has the field `name` twice"):
        list(read(corpus))


def test_comparisons_are_sliced_by_references_since_json_is_no_sentence(run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "in.jsonl").write_text('{"name": "Ann"}\n{"name": "Bob"}\n')
    (tmp_path / "said.txt").write_text("Ann\nBob\n")
    shutil.copytree(run, tmp_path / "other")
    files = ["--source", str(tmp_path / "in.jsonl"), "--reference", str(tmp_path / "said.txt")]
    assert main(["compare", str(run), str(tmp_path / "other"), *files, "--resamples", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sliced_by"] == "reference" and "with a quotation" not in found["by_kind"]


def test_values_of_numpy_and_pandas_are_read(run: Path) -> None:
    """A missing value of a data frame is NaN."""
    plain = {"name": "Ann", "age": 20, "when": "2020-02-03", "tags": [1, 2], "height": 1.5}
    given = {
        "name": "Ann",
        "age": np.int64(20),
        "when": datetime.date(2020, 2, 3),
        "tags": np.array([1, 2]),
        "height": np.float64(1.5),
    }
    model = regard.load(run)
    assert model({**given, "town": float("nan"), "country": np.float32("nan")}) == model(plain)
    for wrong in ({"a": {1, 2}}, {"a": object()}, {(1, 2): "a"}, {"a": b"x"}):
        with pytest.raises(RegardError, match="cannot be written as JSON"):
            model(wrong)


def test_the_rows_of_a_table_are_described(run: Path, tmp_path: Path, capsys) -> None:
    rows = [{"name": "Ann", "homeTown": "Oslo", "age": "20"}, {"name": "Bob, jr.", "homeTown": "Rome", "age": "21"}]
    (tmp_path / "in.csv").write_text('name,homeTown,age\nAnn,Oslo,20\n,,\n"Bob, jr.",Rome,21\n')
    assert main(["translate", str(run), str(tmp_path / "in.csv")]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found == regard.load(run).translate(rows)
    (tmp_path / "twice.csv").write_text("name,name\nAnn,Bob\n")
    assert main(["translate", str(run), str(tmp_path / "twice.csv")]) == 1
    assert "two columns of the same name" in capsys.readouterr().err


def test_a_server_takes_records_as_json(run: Path, tmp_path: Path) -> None:
    record, triples = {"name": "Ann", "homeTown": "Oslo", "age": 20}, [["Ann", "homeTown", "Oslo"]]
    with running_server(tmp_path, run, "--workers", "1") as server, server.client() as client:
        answer = client.post("/v1/translate", json={"texts": [record, triples, json.dumps(record)], "words": [2, 3]})
        texts = [output["text"] for output in answer.json()["outputs"]]
        model = regard.load(run)
        limits = Search(constraints=Constraints(words=(2, 3)))
        assert texts == [model.translate(one, limits) for one in (record, triples, record)]
        assert all(2 <= len(text.split()) <= 3 for text in texts)
        nested = client.post("/v1/translate", json={"texts": [{"name": {}}]})
        assert nested.status_code == 400 and "nested field" in nested.json()["error"]


def test_words_of_records_are_not_aligned(run: Path, tmp_path: Path, capsys) -> None:
    assert main(["inspect", "all", str(run), '{"name": "Ann"}', "-o", str(tmp_path / "all.html")]) == 0
    assert "align: Alignment links the words of two texts, and this run reads records" in capsys.readouterr().err


def test_validation_during_training_represents_the_whole_part(tmp_path: Path, monkeypatch) -> None:
    """Records sorted by size, as in WebNLG: the sample has small and large ones, with all their references."""
    rows = [
        {"record": {f"f{field}": number for field in range(1 + number // 10)}, "text": ["a", "b"]}
        for number in range(50)
    ]
    given = settings(tmp_path, training={"validation_sample": 20, "steps": 1, "validate_every": 1})
    given["data"] |= {"validation": {"records": written(tmp_path / "v.jsonl", rows), "record_field": "record"}}
    judged: list[Any] = []
    monkeypatch.setattr(loop, "validate", lambda *given, **more: judged.append(given[3]) or validate(*given, **more))
    train(from_mapping(given), tmp_path / "run")
    sizes = [len(json.loads(pair.source)) for pair in judged[0]]
    assert sizes == [size for size in range(1, 6) for _ in range(4)]
    assert all(list(pairs) == list(judged[0]) for pairs in judged)


# Reading


def test_objects_and_triples_are_read() -> None:
    record = '{"name": "Ann", "birthDate": "1970-01-02", "tags": ["a", "b"], "left": null, "tall": true, "n": 1.5}'
    assert parse_record(record) == [
        ("name", "Ann"),
        ("birth date", "1970-01-02"),
        ("tags", "a"),
        ("tags", "b"),
        ("tall", "true"),
        ("n", "1.5"),
    ]
    triples = '[["Aarhus_Airport", "runwayName", "\\"10L/28R\\""], ["Aarhus_Airport", "city_Served", "Aarhus"]]'
    assert parse_record(triples) == [
        ("Aarhus Airport", "runway name", "10L/28R"),
        ("Aarhus Airport", "city served", "Aarhus"),
    ]
    assert linearise(parse_record(triples)[1:]) == "Aarhus Airport city served Aarhus"
    assert readable_name("OCLC_number") == "OCLC number"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("Ann lives in Oslo", "is not JSON"),
        ('"Ann"', "neither a JSON object nor a list of triples"),
        ("{}", "has no field with a value"),
        ('{"name": null}', "has no field with a value"),
        ('{"name": {"first": "Ann"}}', "nested field: `name` contains an object"),
        ('{"name": [["Ann"]]}', "nested field: `name` contains a list"),
        ('[["a", "b"]]', "number 1 is"),
        ('[["a", "b", "c"], ["a", "", "c"]]', "empty part: number 2"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_bad_records_are_refused_with_a_reason(record: str, message: str) -> None:
    problem = record_problem(record)
    assert problem is not None and message in problem and problem.endswith(".")
    with pytest.raises(RegardError, match=r"^The record `"):
        parse_record(record)


def test_the_record_is_found_in_an_example() -> None:
    example = '{"record": {"name": "Ann"}, "texts": ["Ann is here."]}'
    assert parse_record(example, RecordForm("record", "texts")) == [("name", "Ann")]
    assert parse_record('{"name": "Ann"}', RecordForm("record", "texts")) == [("name", "Ann")]
    assert parse_record('{"name": "Ann", "text": "Ann is here."}', RecordForm(None, "text")) == [("name", "Ann")]


def test_every_reference_is_a_pair(tmp_path: Path) -> None:
    config = from_mapping(settings(tmp_path))
    pairs = list(read(config.data.train))
    assert len(pairs) == 400
    assert pairs[0] == Pair('{"name": "Ann", "homeTown": "Oslo", "age": 20}', "Ann lives in Oslo at 20.")
    sources, references = group_references(pairs)
    assert len(sources) == 200 and references[0] == ("Ann lives in Oslo at 20.", "Ann, who is 20, lives in Oslo.")


def test_tables_have_a_record_in_every_row(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('name,town,text\nAnn,"Oslo, Norway",Ann is there.\nBob,,Bob is not.\n')
    data = {"records": str(path)}
    pairs = list(read(from_mapping(settings(tmp_path, data={"train": data})).data.train))
    assert pairs == [
        Pair('{"name": "Ann", "town": "Oslo, Norway"}', "Ann is there."),
        Pair('{"name": "Bob", "town": ""}', "Bob is not."),
    ]
    assert parse_record(pairs[1].source) == [("name", "Bob")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('["a"]', "is a list, but every line must be a JSON object"),
        ('{"record": {"a": 1}, "texts": ["a"]', "Write one JSON object on each line."),
        ('{"texts": ["a"]}', "has no field `record` (its fields: texts)"),
        ('{"record": {"a": 1}}', "has no field `texts`"),
        ('{"record": {"a": 1}, "texts": []}', "is an empty list"),
        ('{"record": {"a": 1}, "texts": ["a", " "]}', "reference 2 in field `texts` is empty"),
        ('{"record": {"a": 1}, "texts": [1]}', "reference 1 in field `texts` is a number"),
        ('{"record": {"a": {"b": 1}}, "texts": ["a"]}', "nested field: `a`"),
        ('{"record": {}, "texts": ["a"]}', "has no field with a value"),
    ],
)
def test_bad_examples_are_refused_with_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"record": {"a": 1}, "texts": ["fine"]}\n' + line + "\n")
    config = from_mapping(
        settings(tmp_path, data={"train": {"records": str(path), "record_field": "record", "text_field": "texts"}})
    )
    with pytest.raises(RegardError) as error:
        list(read(config.data.train))
    assert str(error.value).startswith(f"{path}:2") and message in str(error.value)


@pytest.mark.parametrize(
    ("table", "more", "message"),
    [
        ("name,words\nAnn,x\n", {}, "has no column called `text`"),
        ("name,text\nAnn,\n", {}, "has no text in column"),
        ("name,text\n,fine\n", {}, "has no field with a value"),
        ("name,text\nAnn,x,y\n", {}, "has 3 columns"),
        ("name,text\nAnn,x\n", {"record_field": "name"}, "Remove record_field"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, table: str, more: dict[str, str], message: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(table)
    config = from_mapping(settings(tmp_path, data={"train": {"records": str(path), **more}}))
    with pytest.raises(RegardError, match=message):
        list(read(config.data.train))


# Tokens


def test_markers_stand_before_every_part(tmp_path: Path) -> None:
    task = prepare(from_mapping(settings(tmp_path)), tmp_path / "run").task
    tokenizer = task.input.tokenizer
    source = '{"name": "Ann", "age": 21}'
    (ids,) = tokenizer.encode_batch([source])
    encoded = tokenizer.encode(source)
    assert encoded.ids == ids
    assert [token for token in ids if token in (BOS, SEP)] == [BOS, SEP, BOS, SEP]
    assert ids[0] == BOS and tokenizer.decode(ids) == "name Ann age 21"
    linear = linearise(parse_record(source))
    spelt = "".join(linear[start:end] for start, end in encoded.offsets)
    assert spelt == linear.replace(" ", "")
    assert encoded.words == sorted(encoded.words)


def test_positions_within_fields() -> None:
    tokens = torch.tensor([[BOS, 7, 8, SEP, 9, BOS, 7, SEP, 8, 9, EOS, PAD]])
    field, part, position = (numbers[0, :11].tolist() for numbers in number_fields(tokens))
    assert field == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert part == [0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    assert position == [0, 1, 2, 0, 1, 0, 1, 0, 1, 2, 3]


def test_attention_within_fields() -> None:
    tokens = torch.tensor([[BOS, 7, SEP, 9, BOS, 7, SEP, 8, EOS]])
    near = own_field(tokens)[0]
    assert near[1].tolist() == [True, True, True, True, True, False, False, False, True]
    assert near[7].tolist() == [True, False, False, False, True, True, True, True, True]
    assert near[4].all() and near[8].all() and near[0].all()


@pytest.mark.parametrize(
    "option",
    [{"field_positions": True}, {"encoder": {"kind": "transformer", "layers": 1, "within_fields": True}}],
    ids=["positions", "attention"],
)
def test_structure_changes_the_encoding_and_padding_does_not(tmp_path: Path, option: dict[str, Any]) -> None:
    task = prepare(from_mapping(settings(tmp_path, model={"width": 16, **option})), tmp_path / "run").task
    torch.manual_seed(0)
    model = task.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    rows = task.input.rows(['{"name": "Ann", "age": 21}', '{"a": 1}'])
    (source,) = task.input.collate(["", ""], rows)
    memory = model.encode(source)
    alone = model.encode(source[1:, : len(rows[1]) + 1])
    torch.testing.assert_close(memory.states[1, : len(rows[1]) + 1], alone.states[0])
    plain = task.configured(from_mapping(settings(tmp_path, model={"width": 16}))).build().eval()
    plain.load_state_dict({key: value for key, value in model.state_dict().items() if not key.startswith("fields.")})
    assert not torch.allclose(plain.encode(source).states[0], memory.states[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"field_positions": True}, "concerns the fields of records"),
        ({"encoder": {"kind": "transformer", "within_fields": True}}, "concerns the fields of records"),
    ],
)
def test_settings_of_records_are_refused_for_texts(model: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=r"decoding\.complete concerns the fields of records"):
        from_mapping({"data": {"train": {"generate": "copy"}}, "decoding": {"complete": True}})
    with pytest.raises(UsageError, match=message):
        from_mapping({"data": {"train": {"generate": "copy"}}, "model": model})


def test_window_and_fields_exclude_each_other(tmp_path: Path) -> None:
    encoder = {"kind": "transformer", "within_fields": True, "window": 4}
    with pytest.raises(UsageError, match="both limit self-attention"):
        from_mapping(settings(tmp_path, model={"encoder": encoder}))


def test_coverage_needs_copying() -> None:
    with pytest.raises(UsageError, match=r"training\.coverage concerns the pointer"):
        from_mapping({"data": {"train": {"generate": "copy"}}, "training": {"coverage": 1.0}})


def test_scheduled_sampling_excludes_copying() -> None:
    exposure = {"scheduled_sampling": {"kind": "linear"}}
    config = {"data": {"train": {"generate": "copy"}}, "model": {"copying": True}, "training": {"exposure": exposure}}
    with pytest.raises(UsageError, match="words that the pointer of"):
        from_mapping(config)


def test_copying_is_refused_for_images() -> None:
    config = {
        "task": {"kind": "captioning"},
        "data": {"train": {"generate": "shapes"}},
        "model": {"copying": True},
    }
    with pytest.raises(UsageError, match="reads pictures"):
        from_mapping(config)


# Delexicalisation


def test_values_become_placeholders_and_values_again() -> None:
    fields = parse_record('[["Aarhus_Airport", "cityServed", "Aarhus"], ["Aarhus", "leader", "Jacob B."]]')
    template = Template.of(fields)
    first, second, third = PLACEHOLDERS[:3]
    assert template.fields == [(first, "city served", second), (second, "leader", third)]
    text = "Aarhus Airport serves aarhus, led by Jacob B. Aarhusians agree."
    inserted = template.insert_placeholders(text)
    assert inserted == f"{first} serves LOWER{second[-1]}, led by {third} Aarhusians agree."
    assert template.insert_values(inserted) == text
    assert template.insert_values(f"{PLACEHOLDERS[9]} is nobody.") == f"{PLACEHOLDERS[9]} is nobody."


def test_more_values_than_placeholders_stay_as_they_are() -> None:
    template = Template.of([("name", f"value{number}") for number in range(30)])
    assert template.fields[25] == ("name", PLACEHOLDERS[25]) and template.fields[26] == ("name", "value26")


def test_a_delexicalised_run_learns_templates_and_writes_values(tmp_path: Path) -> None:
    config = from_mapping(settings(tmp_path, task={"kind": "data-to-text", "delexicalise": True}))
    model = regard.train(config, tmp_path / "run")
    task = model.loaded.task
    pair = Pair('{"name": "Zoe", "homeTown": "Bern"}', "Zoe lives in Bern.")
    source, target = task.output.encode([pair])
    assert task.vocabularies.target.decode(target[0]) == "ENTITYA lives in ENTITYB."
    assert "Zoe" not in task.vocabularies.target.decode(source[0])
    found = model({"name": "Zoe", "homeTown": "Bern", "age": 20})
    assert "ENTITY" not in found.text
    assert "Zoe" in found.text  # a name that training never had
    long = '{"name": "Zoe Ann Lee", "homeTown": "San Marino", "age": 20}'
    (best,) = model.loaded.hypotheses([long], Search(beam=1))[0]
    (row,) = features(model.loaded, [long], [best])
    assert len(row.words) == len(best.text.split()) > len(set(row.words))  # words of one value have one confidence
    trace = model.trace(pair.source, pair.target)
    assert trace.target.ids[:-1] == list(target[0])  # a given target has placeholders, too


# Learning


def unseen_names(seed: int, count: int) -> list[dict[str, Any]]:
    """Random names, which no two corpora share, and where they live."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        letters = random.choice(list("abcdefghijklmnopqrstuvwxyz"), int(random.integers(4, 9)))
        name, town = "".join(letters).capitalize(), TOWNS[number % 3]
        found.append({"record": {"name": name, "town": town}, "texts": [f"{name} lives in {town}."]})
    return found


def test_copying_learns_to_write_names_that_training_never_had(tmp_path: Path) -> None:
    """After 150 steps, of 40 new names 29 are right with copying and 10 without (seed 1)."""
    data = {"records": written(tmp_path / "names.jsonl", unseen_names(0, 600)), "record_field": "record"}
    right = {}
    for copying in (True, False):
        config = settings(
            tmp_path,
            data={"train": {**data, "text_field": "texts"}, "held_out": 30},
            text={"tokenizer": {"vocabulary": 350}},
            model={"copying": copying, "dropout": 0.0},
            training={"steps": 150, "validate_every": 150, "batch_tokens": 800, "label_smoothing": 0.0},
        )
        model = regard.train(config, tmp_path / f"run-{copying}")
        test = unseen_names(9, 40)
        outputs = model.translate([example["record"] for example in test], beam=1)
        right[copying] = sum(output == example["texts"][0] for output, example in zip(outputs, test, strict=True))
    assert right[True] >= 22
    assert right[True] >= right[False] + 8


# Runs


def test_a_run_is_used_from_python(run: Path) -> None:
    model = regard.load(run)
    record = {"name": "Ann", "homeTown": "Oslo", "age": 21}
    one = model(record)
    assert one.text == model(json.dumps(record)).text == model.translate([record, record])[1]
    triples = [["Ann", "homeTown", "Oslo"], ("Ann", "age", 21)]
    assert model(triples).text == model([triples, record])[0].text
    assert isinstance(model([record]), list)
    with pytest.raises(RegardError, match="nested field"):
        model({"name": {"first": "Ann"}})
    with pytest.raises(RegardError, match="inputs"):
        model([record, {"name": {"first": "Ann"}}])
    with pytest.raises(RegardError, match="cannot be written as JSON"):
        model({"name": object()})
    one = model(record).text
    found = model.evaluate([(record, "Ann lives in Oslo at 21."), (record, one)])
    assert found.sentences == 1 and found.scores["bleu"] == pytest.approx(100.0)


def test_a_run_is_used_from_the_command_line(run: Path, tmp_path: Path, capsys) -> None:
    lines = [{"name": "Ann", "homeTown": "Oslo", "age": 21}, examples()[3]]
    path = written(tmp_path / "records.jsonl", lines)
    assert main(["translate", str(run), path]) == 0
    outputs = capsys.readouterr().out.splitlines()
    assert len(outputs) == 2 and all(outputs)
    assert outputs[1] == regard.load(run)(examples()[3]["record"]).text
    assert main(["translate", str(run), '{"name": {"first": "Ann"}}']) == 1
    assert "nested field: `name`" in capsys.readouterr().err
    assert main(["translate", str(run), "--keep", "numbers", '{"name": "Ann"}']) == 2
    assert "reads records" in capsys.readouterr().err
    for option in (["--document", path], ["--markup", "html", path]):
        assert main(["translate", str(run), *option]) == 2
        assert "translate texts, but this run reads records" in capsys.readouterr().err


def test_a_bad_line_is_named_after_the_outputs_before_it(run: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"name": "Ann"}\n\n{"name": "Bob"}\n{"name": {"first": "Cy"}}\n{"name": "Dan"}\n')
    assert main(["translate", str(run), str(path)]) == 1
    shown = capsys.readouterr()
    assert "Line 4: The record `" in shown.err and "nested field: `name`" in shown.err
    lines = shown.out.splitlines()
    assert len(lines) == 3 and lines[0] and lines[2] and not lines[1]  # an empty line stays empty


def test_long_records_are_read_with_a_note_or_refused(run: Path, capsys) -> None:
    longest = regard.load(run).loaded.input.trained_length
    fields = {f"field{number}": f"value {number}" for number in range(longest)}
    assert main(["translate", str(run), json.dumps(fields)]) == 0
    assert f"1 record has more than {longest} tokens, the most in training" in capsys.readouterr().err
    assert main(["translate", str(run), json.dumps(fields), "decoding.batch_tokens=50"]) == 1
    shown = capsys.readouterr().err
    assert "tokens, but this run reads at most 49 at once (decoding.batch_tokens)" in shown and shown.count("\n") == 1


def test_complete_prefers_hypotheses_that_leave_out_fewer_values(run: Path) -> None:
    """The same hypotheses in another order: first those with the fewest missing values, then by score."""
    plain, complete = (load_run(run, [f"decoding.complete={state}"]).generator for state in ("false", "true"))
    changed = 0
    for names, towns in ((["Ann", "Bob"], ["Oslo", "Rome"]), (["Eve", "Ida"], ["Lima"]), (["Dan"], ["Bonn", "Cork"])):
        record = json.dumps({"name": names, "homeTown": towns, "age": 21})
        values = [*names, *towns, "21"]
        by_score, reordered = (one.hypotheses([record], Search(beam=8, count=8))[0] for one in (plain, complete))
        missing = {one.text: len(find_missing(one.text, values)) for one in by_score}
        assert [one.text for one in reordered] == sorted(missing, key=missing.__getitem__)
        assert complete.translate(record, beam=8) == reordered[0].text
        assert complete.translate(record, beam=1) == plain.translate(record, beam=1)
        changed += reordered[0].text != by_score[0].text
    assert changed  # else this tests nothing


def test_a_reference_left_for_a_more_complete_output_is_no_search_error(run: Path) -> None:
    """Every hypothesis of a beam as the reference: it was found, so the verdict follows the order of preference."""
    loaded, seen = load_run(run, ["decoding.complete=true", "decoding.beam=8"]), set()
    for names, towns in ((["Ann", "Bob"], ["Oslo", "Rome"]), (["Eve", "Ida"], ["Lima"]), (["Dan"], ["Bonn", "Cork"])):
        record = json.dumps({"name": names, "homeTown": towns, "age": 21})
        best, *others = loaded.hypotheses([record], Search(beam=8, count=8))[0]
        for other in (one for one in others if one.ended == best.ended == "end"):
            found = reference(loaded.trace_hypothesis(record, other), loaded, record)
            assert found.verdict == "model error" and found.missing is not None
            decides = found.missing[0] < found.missing[1]
            assert ("leaves out fewer values" in found.explanation) == decides and found.missing[0] <= found.missing[1]
            assert "with a higher score" not in found.explanation
            seen.add((found.fate, found.difference > 0))
    assert ("found", True) in seen  # a reference with a higher score than the output, which is more complete


def test_validation_has_other_subjects_than_training(tmp_path: Path) -> None:
    """Records of triples are held out by their first subject, so that validation is like new subjects."""
    rows = [
        {"record": [[f"Town_{town}", "leader", f"Leader {leader}"]], "texts": [f"Town {town} is led by {leader}."]}
        for town in range(40)
        for leader in range(5)
    ]
    data = {"records": written(tmp_path / "towns.jsonl", rows), "record_field": "record", "text_field": "texts"}
    config = from_mapping(settings(tmp_path, data={"train": data, "held_out": 20}))
    prepared = prepare(config, tmp_path / "run")
    held = {parse_record(pair.source)[0][0] for pair in prepared.validation_pairs}
    assert len(prepared.validation_pairs) == 5 * len(held) and 1 <= len(held) <= 4


def test_all_references_are_used_in_evaluation(run: Path, tmp_path: Path, capsys) -> None:
    """Each record is one example; one output is right if it is any of the references."""
    data = written(tmp_path / "test.jsonl", examples(20))
    assert main(["evaluate", str(run), "--data", data, "--metrics", "exact,bleu", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sentences"] == 20
    assert "nrefs:2" in facts["signatures"]["bleu"]
    second = tmp_path / "second.txt"
    second.write_text("".join(f"{example['texts'][1]}\n" for example in examples(20)))
    assert (
        main(["evaluate", str(run), "--data", data, "--hypotheses", str(second), "--metrics", "exact", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["scores"]["exact"] == 100.0


def test_validation_scores_each_record_once(run: Path) -> None:
    task = regard.load(run).loaded.task
    pairs = [Pair('{"a": 1}', "x y z w"), Pair('{"a": 1}', "a b c d"), Pair('{"a": 2}', "e f g h")]
    judgement = task.output.grade(["a b c d", "a b c d", "e f g h"], pairs)
    assert judgement.scores["bleu"] == pytest.approx(100.0)
    assert judgement.scores.sentences == 2
    assert [sample.output for sample in judgement.samples] == ["a b c d", "e f g h"]


def test_a_trace_has_the_copied_share(run: Path) -> None:
    model = regard.load(run)
    trace = model.trace({"name": "Ann", "homeTown": "Oslo", "age": 21})
    assert "copying.gate_logits" in trace.activations
    torch.testing.assert_close(trace.log_probabilities.exp().sum(-1), torch.ones(len(trace.target)))
    assert trace.source.tokens[0] == "<s>"


@pytest.mark.parametrize("how", ["attention", "attribute", "lens"])
def test_analyses_apply_to_a_run_that_copies(run: Path, how: str) -> None:
    result = regard.load(run).explain({"name": "Ann", "age": 21}, how=how)
    assert result.to_json()


def test_patching_says_what_a_run_that_copies_takes_from_elsewhere(run: Path, capsys) -> None:
    """It also copies words of the corrupted source, so that all states together may recover little."""
    pair = ['{"name": "Ann", "age": 21}', '{"name": "Ann", "age": 54}']
    assert main(["inspect", "patch", str(run), *pair, "--target", "Ann is 21", "--instead", "Ann is 54"]) == 0
    assert "also copies words of its source" in capsys.readouterr().out


def test_direct_attribution_is_refused_for_a_run_that_copies(run: Path) -> None:
    with pytest.raises(UsageError, match="also copies source words"):
        regard.load(run).explain({"name": "Ann"}, how="direct")


@pytest.mark.parametrize("form", ["ctranslate2", "huggingface"])
def test_export_is_refused_in_one_sentence(run: Path, tmp_path: Path, capsys, form: str) -> None:
    if form == "ctranslate2":
        pytest.importorskip("ctranslate2")
    assert main(["export", str(run), str(tmp_path / "out"), "--to", form]) == 1
    said = capsys.readouterr().err
    assert "records" in said and said.count("\n") <= 2
