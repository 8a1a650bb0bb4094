"""The counting of `benchmarks/names.py`."""

from benchmarks.names import GROUPS, count_texts, group_hits, has, values_of


def test_values_are_counted_once_per_text_as_whole_words() -> None:
    texts = ["Ann Lee met ann lee.", "Annie Leeds", "Lee and Ann", "ANN LEE!", "Ann-Marie"]
    assert count_texts(["Ann Lee", "Ann", "Bob", "…"], texts) == {"Ann Lee": 2, "Ann": 4, "Bob": 0, "…": 0}
    assert has("It is 610 m.", "610") and not has("It is 6100 m.", "610")


def test_names_of_fields_are_no_values() -> None:
    assert values_of([("Ann", "lives in", "Oslo"), ("age", "20")]) == {"Ann", "Oslo", "20"}


def test_values_that_no_reference_has_do_not_count() -> None:
    records = [[("Ann", "town", "Oslo")], [("Bob", "town", "Rome")]]
    references = [("Ann lives there.", "She lives in Oslo."), ("Bob lives in the capital of Italy.",)]
    counts = {"Ann": 0, "Oslo": 21, "Bob": 5, "Rome": 6}
    found = group_hits(records, references, ["Ann lives in Rome.", "Bobby lives in Rome."], counts)
    assert found == {GROUPS[0]: [True], GROUPS[1]: [False], GROUPS[2]: [], GROUPS[3]: [False]}
