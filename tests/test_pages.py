"""Laws of pages: one safe file, escaped texts, one place for HTML, modules that a page and a server can share."""

import ast
import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.foundation.errors import RegardError
from regard.inspection.page import find_view
from regard.pages import notebook, panels
from regard.pages.modules import View, bundle, shared_view
from regard.pages.panels import Panel, Part
from regard.pages.shell import json_block

HOUSE = Path(__file__).parent.parent / "regard"
VIEWS = sorted([*HOUSE.glob("inspection/**/*.js"), *HOUSE.glob("pages/views/*.js")])
EVIL = "</script></style><img src=x onerror=alert(1)>\u2028&\"'"


def found(**scripts):
    return lambda name: View(scripts[name])


def test_only_pages_contains_html() -> None:
    """Strings with tags are templates: no other package has any."""
    tag = re.compile(
        r"</?(?:div|span|p|table|tr|td|html|body|head|script|style|svg|section|pre|iframe|h[1-6]|li|ol)[\s>/]"
    )
    wrong = [
        f"{file.relative_to(HOUSE)}:{node.lineno}"
        for package in ("evaluation", "search", "inspection", "tasks", "metrics", "cli")
        for file in (HOUSE / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and tag.search(node.value)
    ]
    assert not wrong


def test_jinja_is_not_imported_before_a_page_is_made() -> None:
    code = (
        "import sys, regard.cli, regard.tasks.results, regard.inspection.page, regard.evaluation.side_by_side; "
        "before = 'jinja2' in sys.modules; from regard.pages.notebook import show_line; show_line('x'); "
        "print(before, 'jinja2' in sys.modules)"
    )
    # torch imports jinja2 by itself when it compiles, never at import
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["False", "True"]


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.stem)
def test_every_view_is_a_module_that_node_accepts_and_a_page_can_contain(path, tmp_path) -> None:
    script = path.read_text(encoding="utf-8")
    if path.parent.name != "views" or path.parent.parent.name != "pages":
        assert re.search(r"^export function show\(", script, re.MULTILINE), "a view exports show(root, data)"

    def lookup(name):
        try:
            return shared_view(name)
        except KeyError:
            return find_view(name)

    joined, _ = bundle([path.stem], lookup, "")
    assert not re.search(r"^\s*(import|export)\b", joined, re.MULTILINE)
    for name in re.findall(r'^import \{(.*?)\} from "\./(\w+)\.js"', script, re.MULTILINE):
        exported = re.findall(r"^export (?:function|class|const) (\w+)", shared_view(name[1]).script, re.MULTILINE)
        wanted = [part.split(" as ")[0].strip() for part in name[0].split(",")]
        assert set(wanted) <= set(exported)
        used = [part.split(" as ")[-1].strip() for part in name[0].split(",")]
        assert [one for one in used if len(re.findall(rf"\b{one}\b", script)) < 2] == [], "imported and not used"
    if shutil.which("node"):
        (tmp_path / "module.mjs").write_text(script)
        (tmp_path / "joined.mjs").write_text(joined)
        for name in ("module", "joined"):
            done = subprocess.run(
                ["node", "--check", tmp_path / f"{name}.mjs"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr


BASE = """
const hidden = 1;
export const shared = hidden + 1;
export function twice(x) { return 2 * x; }
"""
LEFT = """
import { shared, twice as double } from "./base.js";
const hidden = 10;
export function show() { return double(shared) + hidden; }
"""
RIGHT = """
import {
  shared,
} from "./base.js";
const hidden = 100;
export async function show() { return shared + hidden; }
export class Thing {}
"""


def test_modules_keep_their_names_apart_and_share_what_they_export(tmp_path) -> None:
    start = 'modules["right"].show().then((x) => console.log(modules["left"].show(), x));'
    script, _ = bundle(["left", "right"], found(base=BASE, left=LEFT, right=RIGHT), start)
    assert script.count("export") == 0 and script.count('modules["base"] =') == 1
    if shutil.which("node"):
        (tmp_path / "joined.mjs").write_text(script)
        printed = subprocess.run(["node", tmp_path / "joined.mjs"], capture_output=True, text=True, check=True).stdout
        assert printed.split() == ["14", "102"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('import kit from "./kit.js";\n', "line 1, cannot be part of a page"),
        ('let x;\n  import * as kit from "./kit.js";\n', "line 2"),
        ('import { a } from "https://example.org/kit.js";\n', "not supported"),
        ("export default 3;\n", "not supported"),
        ("export let x = 1;\n", "not supported"),
        ("export { x };\n", "not supported"),
        ('const x = "</script>";\n', "neither </script"),
        ('const x = "<!--";\n', "neither"),
        ('import { "x" as y } from "./kit.js";\n', "is not a name"),
        ('import { a } from "./view.js";\n', "import each other"),
        ('import { a } from "./absent.js";\n', "There is no view 'absent'"),
    ],
)
def test_what_cannot_be_joined_is_refused(script, message) -> None:
    def find(name):
        return View(script) if name == "view" else shared_view(name)

    with pytest.raises(RegardError, match=re.escape(message)):
        bundle(["view"], find, "")


def policy_of(page: str) -> str:
    return re.search(r'Content-Security-Policy" content="(.*?)"', page)[1].replace("&#39;", "'")


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.fixture(scope="module")
def report() -> str:
    panel = Panel(
        "formatted_table",
        {"head": [EVIL], "rows": [[EVIL, float("nan")]], "texts": [[EVIL, "nan"]]},
        title=EVIL,
        note=EVIL,
    )
    return panels.render_parts(EVIL, [EVIL], [Part("one", EVIL, [panel])], {EVIL: EVIL}, find=find_view, run=EVIL)


def test_the_policy_allows_this_script_and_this_style_and_nothing_else(report) -> None:
    policy = policy_of(report)
    style = re.search(r"<style>(.*?)</style>", report, re.DOTALL)[1]
    script = re.search(r'<script type="module">(.*?)</script>', report, re.DOTALL)[1]
    assert f"style-src {hash_of(style)};" in policy and f"script-src {hash_of(script)};" in policy
    assert "unsafe" not in policy and "http" not in policy and policy.startswith("default-src 'none';")


def test_texts_cannot_leave_their_place(report) -> None:
    assert report.count("</script>") == 2 and report.count("</style>") == 1 and "<img" not in report
    assert not re.search(
        r"\sstyle=|\son\w+=", re.sub(r"<script.*?</script>", "", report, flags=re.DOTALL).replace("onerror=alert", "")
    )


def test_data_is_json_whatever_is_in_it(report) -> None:
    data = json.loads(re.search(r'id="data">(.*?)</script>', report, re.DOTALL)[1])
    assert data[0]["data"] == {"head": [EVIL], "rows": [[EVIL, None]], "texts": [[EVIL, "nan"]]}
    assert json.loads(json_block({"a": [1.5, float("inf"), {"b": (float("nan"),)}]})) == {
        "a": [1.5, None, {"b": [None]}]
    }


def test_a_page_names_its_run_and_has_one_main(report) -> None:
    page = panels.render(
        "Title", [Panel("formatted_table", {"head": [], "rows": [], "texts": []})], find=find_view, run="runs/mine"
    )
    assert "<title>Title · runs/mine</title>" in page and "runs/mine</p>" in page
    assert page.count("<main>") == report.count("<main>") == 1


def test_a_notebook_escapes_what_it_shows() -> None:
    for shown in (notebook.show_line(EVIL), notebook.show_probabilities({EVIL: 0.5}), notebook.show_page(EVIL)):
        assert "<img" not in shown and "</script>" not in shown
    ranked = notebook.show_probabilities({str(number): number / 78 for number in range(13)})
    assert ranked.count("<tr>") == 10 and ranked.index("<td>12</td>") < ranked.index("<td>11</td>")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to run the modules")
def test_numbers_keep_two_significant_digits(tmp_path) -> None:
    script, _ = bundle(["kit"], shared_view, "")
    values = {
        "3.9e-5, 2": "3.9e-5",
        "0, 2": "0",
        "-0.00042, 3": "-0.00042",
        "0.0042, 2": "0.0042",
        "0.0008, 2": "0.0008",
        "0.123456, 3": "0.123",
        "0.5, 2": "0.50",
        "12.345, 1": "12.3",
        "7, 0": "7",
        "3.44, 0": "3.4",
        "43.4, 0": "43",
        "1234567.8, 2": "1,234,568",
        "null, 2": "–",
        "NaN, 2": "–",
    }
    calls = ",".join(f"modules.kit.formatNumber({one})" for one in values)
    fake = "globalThis.matchMedia = () => ({ addEventListener() {} });\n"
    (tmp_path / "numbers.mjs").write_text(f"{fake}{script}\nconsole.log(JSON.stringify([{calls}]));")
    printed = subprocess.run(["node", tmp_path / "numbers.mjs"], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == list(values.values())


def test_json_numbers_have_five_significant_digits_whatever_their_size() -> None:
    import torch

    from regard.pages.packed_numbers import plain_numbers

    values = [[3.94567e-05, 0.0, -0.123456789], [12345.678, 1.0, float("inf")]]
    assert plain_numbers(torch.tensor(values, dtype=torch.float64)) == [
        [3.9457e-05, 0.0, -0.12346],
        [12346.0, 1.0, float("inf")],
    ]


def test_the_end_symbol_is_the_same_everywhere():
    """Pages, pictures and the terminal show `</s>`, the end symbol of every vocabulary, never a sign for it."""
    from regard.cli.demo import _label
    from regard.inspection.drawing import token_labels

    assert token_labels(["a", "</s>", "$"]) == ["a", "</s>", r"\$"] and [_label("</s>"), _label("ab")] == ["</s>", "a"]
    package = Path(regard.__file__).parent
    sources = [path for kind in ("py", "js", "html") for path in package.rglob(f"*.{kind}")]
    assert len(sources) > 300
    assert not [path for path in sources if set("↵⏎") & set(path.read_text(encoding="utf-8"))]
