"""Laws of questions about a text: what is asked, and where the answer is looked up."""

from pathlib import Path

from regard.data.stories import Question, questions

STORY = [
    "1 Mary moved to the bathroom.",
    "2 Where is Mary? \tbathroom\t1",
    "3 John went to the hallway.",
    "4 Where is John? \thallway\t3 1",
    "1 Sandra sat.",
    "2 Who sat? \tSandra",
]


def test_evidence_counts_the_sentences_of_the_story_and_not_the_questions_between(tmp_path: Path):
    path = tmp_path / "qa.txt"
    path.write_text("".join(f"{line}\n" for line in STORY))
    told = ("Mary moved to the bathroom.", "John went to the hallway.")
    assert list(questions(path)) == [
        Question(told[:1], "Where is Mary?", "bathroom", (0,)),
        Question(told, "Where is John?", "hallway", (1, 0)),
        Question(("Sandra sat.",), "Who sat?", "Sandra", ()),
    ]
