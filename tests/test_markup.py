"""Markup and documents: every tag comes back exactly once and well nested, around the words it belongs to."""

import random
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from regard.foundation.errors import UsageError
from regard.tasks.aligned import diagonal
from regard.text.documents import Document
from regard.text.html_tree import VOID, parse, text_of
from regard.text.inline_tags import Aligned, align_tokens
from regard.text.markup import translate_html


def in_order(texts: list[str]) -> list[Aligned]:
    """Translates by writing words in capitals."""
    return [Aligned(text.upper(), [(place, place) for place in range(len(text.split()))]) for text in texts]


def reversed_words(texts: list[str]) -> list[Aligned]:
    """Translates by reversing the order of words."""
    results = []
    for text in texts:
        words = text.upper().split()
        results.append(Aligned(" ".join(words[::-1]), [(len(words) - 1 - place, place) for place in range(len(words))]))
    return results


def unchanged(texts: list[str]) -> list[Aligned]:
    return [Aligned(text, [(place, place) for place in range(len(text.split()))]) for text in texts]


def visible(source: str) -> str:
    """All text outside tags, without white space."""
    return re.sub(r"\s", "", "".join(text_of(child) for child in parse(source).children))


class Translators:
    """A translator that drops, repeats and moves words at random, with random alignments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, texts: list[str]) -> list[Aligned]:
        results = []
        for text in texts:
            words = text.split()
            output = [self.random.choice([*words, "X", "Y.", "&", "<"]) for _ in range(self.random.randrange(0, 9))]
            links = [
                (self.random.randrange(-1, len(words) + 2), self.random.randrange(-1, len(output) + 2))
                for _ in range(self.random.randrange(0, 12))
            ]
            results.append(Aligned(" ".join(output), links))
        return results


class Tags(HTMLParser):
    """Reads the tags of a document: each opening tag as it is written, and whether all are well nested."""

    VOID = VOID

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.open: list[str] = []
        self.well_nested = True
        self.comments: list[str] = []
        self.feed(source)
        self.close()
        self.well_nested &= not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(self.get_starttag_text())
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(self.get_starttag_text())

    def handle_endtag(self, tag):
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.well_nested = False

    def handle_comment(self, data):
        self.comments.append(data)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("Hello <b>big dog</b>.", "HELLO <b>BIG DOG</b>."),
        ("A <a href='x&amp;y'>link <i>here</i></a>, ok", "A <a href='x&amp;y'>LINK <i>HERE</i></a>, OK"),
        ("<p>One<p>Two", "<p>ONE</p><p>TWO</p>"),
        ("<ul><li>a<li>b</ul>", "<ul><li>A</li><li>B</li></ul>"),
        ("a<br>b <img src=x> c", "A<br>B <img src=x> C"),
        ("run <code>a < b</code> now", "RUN <code>a &lt; b</code> NOW"),
        ("<pre>a\n b</pre>x", "<pre>a\n b</pre>X"),
        ("<script>if (a<b) {}</script>x", "<script>if (a<b) {}</script>X"),
        ("<p translate=no>keep <b>me</b></p>x", "<p translate=no>keep <b>me</b></p>X"),
        ('<span class="notranslate">Regard</span> runs', '<span class="notranslate">Regard</span> RUNS'),
        ("a <!-- note --> b", "A <!-- note --> B"),
        ("<b><i>x</b></i> y", "<b><i>X</i></b> Y"),
        ("5 &lt; 6 &amp; x", "5 &lt; 6 &amp; X"),
        ("x </b> y", "X Y"),
        ("<!DOCTYPE html><title>t</title>", "<!DOCTYPE html><title>T</title>"),
        ("<div>a <div>b</div> c</div>", "<div>A <div>B</div> C</div>"),
    ],
)
def test_tags_stay_where_they_were(source, expected):
    assert re.sub(r"\s+", " ", translate_html(source, in_order)) == re.sub(r"\s+", " ", expected)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("the <b>red</b> car", "CAR <b>RED</b> THE"),
        ("<i>one two</i> three", "THREE <i>TWO ONE</i>"),
        ("<i>one</i> <b>two</b>", "<b>TWO</b> <i>ONE</i>"),
        ("see <code>x=1</code> here", "HERE <code>x=1</code> SEE"),
        ("<a href=u>all of it</a>", "<a href=u>IT OF ALL</a>"),
    ],
)
def test_tags_follow_their_words(source, expected):
    assert translate_html(source, reversed_words) == expected


NAMES = (
    *("b", "i", "em", "strong", "a", "span", "code", "p", "div", "ul", "li", "br", "img", "h1", "td", "tr", "table"),
    *("script", "pre", "u-x", "q", "sub", "section", "hr", "kbd", "input"),
)
TEXTS = (
    *("word", "two words", "Mr. X,", "a&b", "&lt;", "&nbsp;", " ", "\n", "5 < 6", "ü ß", "…", "'", "-", "\x00"),
    "x" * 30,
)
ATTRIBUTES = (
    *("", ' a="1"', " b='<>'", " class=x", ' translate="no"', " data-é=ü", ' x="&quot;"', " hidden"),
    " translate=yes",
)
ODD = ("<!-- c -->", "<!doctype html>", "<?x y?>", "<![CDATA[q]]>", "<", "</", "&#0;", "<!")


def random_html(chance: random.Random) -> str:
    """A fragment with all that people and programs write: unclosed, crossed and stray tags, comments, entities."""
    pieces = []
    for _ in range(chance.randrange(1, 25)):
        kind = chance.random()
        name = chance.choice(NAMES)
        if kind < 0.35:
            pieces.append(chance.choice(TEXTS) + chance.choice(["", " "]))
        elif kind < 0.65:
            pieces.append(f"<{name}{chance.choice(ATTRIBUTES)}>")
        elif kind < 0.9:
            pieces.append(f"</{name}>")
        elif kind < 0.95:
            pieces.append(f"<{name}{chance.choice(ATTRIBUTES)}/>")
        else:
            pieces.append(chance.choice(ODD))
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(300))
def test_every_tag_comes_back_exactly_once_and_well_nested(seed):
    source = random_html(random.Random(seed))
    output = translate_html(source, Translators(seed))
    before, after = Tags(source), Tags(output)
    assert sorted(before.tags) == sorted(after.tags), (source, output)
    assert sorted(before.comments) == sorted(after.comments), (source, output)
    assert after.well_nested, (source, output)


@pytest.mark.parametrize("seed", range(100))
def test_no_text_is_lost(seed):
    source = random_html(random.Random(1000 + seed))
    output = translate_html(source, unchanged)
    lost = Counter(visible(source)) - Counter(visible(output))
    assert not lost, (source, output)


def test_text_without_markup_is_translated_as_plain_text():
    assert translate_html("a man, a dog", in_order) == in_order(["a man, a dog"])[0].text


@pytest.mark.parametrize(
    "text, alignment, expected",
    [
        ("x y x", [(0, 0), (1, 1), (0, 2)], "<b>x</b> <i>y</i> x"),  # of equals the first
        ("x y x x", [(0, 0), (1, 1), (0, 2), (0, 3)], "x <i>y</i> <b>x x</b>"),  # the longest
        ("x y z", [(0, 0), (0, 2)], "<b>x y z</b> <i></i>"),  # a word between that belongs to nothing is covered
    ],
)
def test_an_element_whose_words_are_scattered_covers_their_longest_stretch(text, alignment, expected):
    assert translate_html("<b>a</b> <i>b</i>", lambda texts: [Aligned(text, alignment)]).strip() == expected


def test_a_long_document_takes_linear_time():
    source = "<p>a <b>c</b> d</p>" * 5000
    assert translate_html(source, in_order).count("<b>C</b>") == 5000


def test_deep_nesting_is_no_danger():
    source = "<b>" * 5000 + "x" + "</b>" * 5000
    output = translate_html(source, in_order)
    assert output.count("<b>") == output.count("</b>") == 5000 and "X" in output and Tags(output).well_nested


def test_punctuation_is_aligned_with_punctuation():
    assert align_tokens("the dog.", "der Hund!", [(0, 0), (1, 1)]) == [[0], [1], [2]]
    assert align_tokens("a", "b", [(5, 0), (0, 9), (-1, 0)]) == [[]]


def test_the_diagonal_aligns_every_target_word():
    assert diagonal(2, 4) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert diagonal(0, 3) == [] and diagonal(3, 0) == []


def test_entities_stay_text():
    assert parse("a &lt;b&gt; c").children == ["a <b> c"]
    assert translate_html("a &lt;b&gt; c", in_order) == "A &lt;B&gt; C"


def rendered(name: str, content: str) -> str:
    document = Document(name, content)
    return document.render(in_order([segment.text for segment in document.segments]))


class TestDocuments:
    def test_plain_text_keeps_lines_and_white_space(self):
        assert rendered("a.txt", " a & b\n\n\tc <b>\r\nd") == " A & B\n\n\tC <B>\r\nD"

    def test_subtitles_keep_numbers_times_and_lines(self):
        source = (
            "1\r\n00:00:01,000 --> 00:00:02,500 X1:5\r\nHello <i>dear</i> friends,\r\nhow & why?\r\n\r\n"
            "2\r\n00:00:03,000 --> 00:00:04,000\r\nEnd\r\n"
        )
        expected = source.replace("Hello", "HELLO").replace(">dear<", ">DEAR<").replace("friends", "FRIENDS")
        expected = expected.replace("how & why", "HOW & WHY").replace("End", "END")
        assert rendered("film.SRT", source) == expected

    def test_html(self):
        assert rendered("a.htm", "<p>a <b>b</b></p>") == "<p>A <b>B</b></p>"

    @pytest.mark.parametrize("name", ["a.docx", "a", "a.txt.exe", ".html2"])
    def test_other_formats_are_refused(self, name):
        with pytest.raises(UsageError, match=r"cannot be translated. Use one of .txt, .html, .srt"):
            Document(name, "x")

    def test_other_encodings_are_refused(self):
        with pytest.raises(UsageError, match="not UTF-8"):
            Document.decode("../a.txt", b"\xff\xfea\x00")

    @pytest.mark.parametrize("name", ["a.txt", "a.srt"])
    @pytest.mark.parametrize("content", ["", "\n", " \n \n", "00:00:01,000 --> 00:00:02,000", "1\n2\n3"])
    def test_odd_documents_keep_their_structure(self, name, content):
        assert rendered(name, content) == content
