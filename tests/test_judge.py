"""Laws of human evaluation: forms name no system, what was planted is counted, agreement is Krippendorff's."""

import csv
import io
import json
import re
import shutil
import subprocess

import pytest

from regard.cli import main
from regard.evaluation.form import LETTERS, Key, make_form
from regard.evaluation.verdicts import Answer, Answers, count_verdicts, read_answers
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.agreement import krippendorff
from regard.pages import judge_page

SOURCES = [f"source {number}" for number in range(20)]
SYSTEMS = {
    "good": [f"good {number}" for number in range(20)],
    "bad": [f"bad {number}" if number % 5 else f"good {number}" for number in range(20)],
}


def honest(form, key, judge="anna", **other):
    """A judge who finds what `good` says adequate and better, and everything fluent."""
    items = {}
    for item in form.items:
        right = [text.startswith("good") for text in item.candidates]
        better = right.index(True) if len(right) > 1 else None
        items[item.id] = Answer(adequate=tuple(right), fluent=(True,) * len(right), better=better)
    return Answers(judge=judge, form=key.form, items={**items, **other.get("items", {})})


def test_the_form_names_no_system_and_the_key_does():
    systems = {"SECRET-one": ["x"] * 20, "SECRET-two": ["y"] * 20}
    form, key = make_form(SOURCES, systems, SOURCES, count=10)
    assert "SECRET" not in judge_page.render(form.facts(), LETTERS) + form.as_csv() + json.dumps(form.facts())
    assert len(form.items) == 10 == len(key.items)
    places = [item.candidates.index("x") for item in form.items]
    assert {0, 1} == set(places)  # shuffled
    for item in form.items:
        assert item.source == SOURCES[key.lines[item.id] - 1]
        assert [systems[names[0]][0] for names in key.items[item.id]] == list(item.candidates)


def test_the_same_seed_deals_the_same_form_and_another_another():
    assert make_form(SOURCES, SYSTEMS, seed=3) == make_form(SOURCES, SYSTEMS, seed=3)
    assert make_form(SOURCES, SYSTEMS, seed=3) != make_form(SOURCES, SYSTEMS, seed=4)


def test_systems_that_say_the_same_are_judged_once():
    form, key = make_form(SOURCES, SYSTEMS, count=20)
    alike = [item for item in form.items if len(item.candidates) == 1]
    assert len(alike) == 4 and all(key.items[item.id] == (("good", "bad"),) for item in alike)


def test_what_was_planted_is_counted():
    form, key = make_form(SOURCES, SYSTEMS, count=20)
    found = count_verdicts(key, [honest(form, key)])
    best, worst = found.standings
    assert (best.system, worst.system) == ("good", "bad")
    assert best.rates["adequate"] == (20, 20) and worst.rates["adequate"] == (4, 20)
    assert worst.rates["fluent"] == (20, 20)
    assert (best.wins, worst.wins) == (1.0, 0.0) and (best.first, worst.first) == (1.0, 0.0)
    assert found.agreement == {"adequate": None, "fluent": None, "better": None}  # one judge agrees with nobody
    assert "good" in str(found).splitlines()[1] and json.dumps(found.facts())


def test_judges_who_say_the_same_agree_perfectly():
    form, key = make_form(SOURCES, SYSTEMS, count=20)
    found = count_verdicts(key, [honest(form, key, "anna"), honest(form, key, "ben")])
    assert found.agreement["adequate"] == 1.0
    assert found.agreement["fluent"] is None  # nobody ever said no: nothing to agree on
    assert found.judges == {"anna": 20, "ben": 20}


def test_equal_is_half_a_win_for_everyone():
    form, key = make_form(SOURCES, SYSTEMS, count=20)
    equal = {
        item.id: Answer(adequate=(None,) * len(item.candidates), fluent=(None,) * len(item.candidates), better="equal")
        for item in form.items
    }
    found = count_verdicts(key, [Answers(judge="anna", form=key.form, items=equal)])
    assert [(one.wins, one.first) for one in found.standings] == [(0.5, 0.5), (0.5, 0.5)]
    assert found.standings[0].rates["adequate"] == (0, 0)


def test_shares_of_coming_first_sum_to_one_whatever_ties():
    systems = {name: [f"{name} {at}" for at in range(len(SOURCES))] for name in ("one", "two", "three")}
    form, key = make_form(SOURCES, systems, count=6, seed=3)
    answers = {}
    for place, item in enumerate(form.items):
        count = len(item.candidates)
        better = [0, 1, 2, "equal", 0, 1][place % 6]
        answers[item.id] = Answer(adequate=(True,) * count, fluent=(True,) * count, better=better)
    found = count_verdicts(key, [Answers(judge="anna", form=key.form, items=answers)])
    assert sum(one.first for one in found.standings) == pytest.approx(1.0)


def test_krippendorffs_own_examples():
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability: B (two observers, nominal), C (four, gaps).
    two = ["0100000010", "1110010000"]
    assert krippendorff(list(zip(*two, strict=True))) == pytest.approx(0.095, abs=5e-4)
    four = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    units = [[value for value in unit if value != "."] for unit in zip(*four, strict=True)]
    assert krippendorff(units) == pytest.approx(0.743, abs=5e-4)


def test_agreement_by_chance_is_about_zero_and_none_of_nothing():
    assert krippendorff([]) is None and krippendorff([["a"], ["b"]]) is None
    assert krippendorff([["a", "b"], ["b", "a"]]) < 0


def filled_in(text, mark=","):
    """A CSV form as a judge with a spreadsheet returns it."""
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    for row in rows:
        good = row["text"].startswith("good")
        row.update(adequate="Yes" if good else "no", fluent="y", better="x" if good else "")
    out = io.StringIO()
    table = csv.DictWriter(out, rows[0], delimiter=mark)
    table.writeheader()
    table.writerows(rows)
    return "\ufeff" + out.getvalue()


def written(tmp_path, suffix):
    """A form made by the command line, with its key."""
    (tmp_path / "s.txt").write_text("".join(f"{line}\n" for line in SOURCES))
    arguments = ["judge", "make", "--source", str(tmp_path / "s.txt"), "-o", str(tmp_path / f"form{suffix}")]
    for name, lines in SYSTEMS.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        arguments += ["--system", f"{name}={tmp_path / name}.txt"]
    assert main([*arguments, "-n", "20"]) == 0
    return tmp_path / f"form{suffix}", tmp_path / "form.key.json"


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_csv_form_comes_back_counted(mark, tmp_path, capsys):
    form, key = written(tmp_path, ".csv")
    (tmp_path / "anna.csv").write_text(filled_in(form.read_text(), mark))
    (tmp_path / "ben.csv").write_text(filled_in(form.read_text(), mark))
    capsys.readouterr()
    answers = [str(tmp_path / f"{name}.csv") for name in ("anna", "ben")]
    assert main(["judge", "score", *answers, "--key", str(key), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["systems"]["bad"]["adequate"]["rate"] == 0.2 and found["systems"]["good"]["wins"]["rate"] == 1.0
    assert found["agreement"]["adequate"] == 1.0 and found["judges"] == {"anna": 20, "ben": 20}


BROWSER = """
const saved = {}, made = [];
class Node {
  constructor(tag) { this.tag = tag; this.children = []; this.classList = {toggle() {}}; made.push(this); }
  append(...nodes) { this.children.push(...nodes); }
  remove() {}
  click() { if (this.tag === 'a') console.log(this.href); }
}
const named = {};
global.localStorage = {getItem: key => saved[key] ?? null, setItem: (key, value) => { saved[key] = value; }};
global.Blob = class { constructor(parts) { this.text = parts.join(''); } };
global.URL = {createObjectURL: blob => blob.text};
global.document = {createElement: tag => new Node(tag), getElementById: id => named[id] ||= new Node(id),
  body: new Node('body')};
const DATA = %s;
document.getElementById('data').textContent = JSON.stringify(DATA);
%s
const judge = document.getElementById('judge');
judge.value = 'Änne'; judge.oninput();
for (const item of DATA.items) {
  const right = item.candidates.map(text => text.startsWith('good'));
  const say = (name, value) => {
    const buttons = made.filter(node => node.type === 'radio' && node.name === name);
    buttons[value].onchange();
  };
  right.forEach((good, at) => { say(item.id + '-adequate-' + at, good ? 0 : 1); say(item.id + '-fluent-' + at, 0); });
  if (right.length > 1) say(item.id + '-better', right.indexOf(true));
}
document.getElementById('save').onclick();
if (document.getElementById('done').textContent !== '20 of 20 done') throw new Error('not done');
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to run the page's script")
def test_the_page_saves_what_a_judge_clicks(tmp_path, capsys):
    form, key = written(tmp_path, ".html")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', form.read_text())[1]
    script = re.search(r'<script type="module">\n(.*)</script>', form.read_text(), re.DOTALL)[1]
    (tmp_path / "browser.js").write_text(BROWSER % (data, script))
    done = subprocess.run(["node", tmp_path / "browser.js"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "answers.json").write_text(done.stdout)
    answers = read_answers(tmp_path / "answers.json")
    assert answers.judge == "Änne" and len(answers.items) == 20
    best, worst = count_verdicts(Key.load(key), [answers]).standings
    assert best.rates["adequate"] == (20, 20) and worst.rates["adequate"] == (4, 20) and best.wins == 1.0


def test_the_page_is_one_file_and_escapes_everything():
    evil = "</script><img src=x onerror=alert(1)>"
    form = make_form([evil], {"a": [evil], "b": ["=1+1"]}, [evil])[0]
    page = judge_page.render(form.facts(), LETTERS)
    assert page.count("</script>") == 2 and "<img" not in page and "http" not in page.replace("http-equiv", "")


def test_no_spreadsheet_takes_a_text_for_a_formula():
    assert ",'=1+1," in make_form(["s"], {"a": ["=1+1"]})[0].as_csv()


def test_what_does_not_belong_together_is_refused(tmp_path):
    form, key = make_form(SOURCES, SYSTEMS, count=5)
    other = Answers(judge="anna", form="other", items={})
    with pytest.raises(UsageError, match="belong to form other"):
        count_verdicts(key, [other])
    with pytest.raises(UsageError, match="Two files are by judge anna"):
        count_verdicts(key, [honest(form, key), honest(form, key)])
    changed = {1: Answer(adequate=(True,) * 9, fluent=(True,) * 9)}
    with pytest.raises(RegardError, match="item 1 does not fit"):
        count_verdicts(key, [honest(form, key, items=changed)])
    with pytest.raises(UsageError, match="19 outputs of `a` for 20 sources"):
        make_form(SOURCES, {"a": ["x"] * 19})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not valid JSON"),
        ("a.json", "[]", "contains no answers"),
        (
            "a.json",
            '{"form": "x", "answers": [{"item": 1, "adequate": ["?"], "fluent": [null], "better": 0}]}',
            "no answers",
        ),
        ("a.csv", "", "is not a form"),
        ("a.csv", "form,item,candidate,adequate,fluent,better\nf,1,A,perhaps,yes,\n", "item 1: `perhaps` is neither"),
        ("a.csv", "form,item,candidate,adequate,fluent,better\nf,one,A,yes,yes,\n", "was changed"),
        ("a.csv", "form,item,candidate,adequate,fluent,better\nf,1,A,,,x\nf,1,B,,,x\nf,1,C,,,\n", "mark one"),
    ],
)
def test_answers_that_cannot_be_read_are_told(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(RegardError, match=message):
        read_answers(tmp_path / name)


def test_a_key_that_is_none_is_told(tmp_path):
    (tmp_path / "key.json").write_text("{}")
    with pytest.raises(RegardError, match="not the key of a form"):
        Key.load(tmp_path / "key.json")


def test_of_an_unanswered_form_nothing_is_known():
    form, key = make_form(SOURCES, SYSTEMS, count=10)
    empty = {item.id: Answer(adequate=(None,) * 2, fluent=(None,) * 2, better=None) for item in form.items}
    empty = {number: one for number, one in empty.items() if len(key.items[number]) == 2}
    found = count_verdicts(key, [Answers(judge="anna", form=key.form, items=empty)])
    assert "50 %" not in str(found)
    assert all(one.facts()["wins"]["rate"] is None for one in found.standings)
