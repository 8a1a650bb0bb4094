"""Values of records in texts: which are found, and how they are written back."""

import pytest

from regard.text.mentions import Writing, find_mentions, fold, split_note, write_value
from regard.text.templates import Template


@pytest.mark.parametrize(
    ("value", "text", "writing"),
    [
        ("Aarhus", "Aarhus is a city.", Writing.SAME),
        ("Doña Ana County", "He died in Dona Ana County.", Writing.SAME),
        ("Adolfo Suárez Madrid–Barajas Airport", "Adolfo Suarez Madrid-Barajas airport is large.", Writing.SAME),
        ("A-Rosa Luna", "The A Rosa Luna is a ship.", Writing.SAME),
        ("Wheeler, Texas", "He is from Wheeler Texas.", Writing.SAME),
        ("A.C. Milan", "He plays for AC Milan.", Writing.SAME),
        ("United States", "They live in the U.S. now.", Writing.SAME),
        ("United States", "They live in the USA.", Writing.SAME),
        ("Asphalt", "It has an asphalt surface.", Writing.LOWER),
        ("Antioch, California", "Antioch is large.", Writing.SHORT),
        ("English language", "They speak English.", Writing.SHORT),
        ("610.0", "It is 610.0 metres high.", Writing.SAME),
        ("610.0", "It is 610 metres high.", Writing.SHORT),
        ("1219.0", "It is 1,219 metres long.", Writing.SHORT),
        ("21.2", "It has a 21.2m beam.", Writing.SAME),
        ("-7", "The offset is −7.", Writing.SAME),
        ("1.5E7", "It weighs 15,000,000 kg.", Writing.SAME),
        ("1999-05-06", "She was born on 1999-05-06.", Writing.SAME),
        ("1999-05-06", "She was born on May 6, 1999.", Writing.DATE),
        ("1999-05-06", "She was born on May 6th 1999.", Writing.DATE),
        ("1999-05-06", "She was born on the 6th of May, 1999.", Writing.DATE),
        ("1999-05-06", "She was born on 06 May 1999.", Writing.DATE),
    ],
)
def test_values_are_found_as_texts_write_them(value: str, text: str, writing: Writing) -> None:
    (mention,) = find_mentions(text, [value])
    assert (mention.value, mention.writing) == (value, writing)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Aarhus", "Aarhusians agree."),
        ("61", "It is 610 metres high."),
        ("61", "It is 61.5 or 3,610 or 61/24."),
        ("1999-05-06", "She was born on May 7, 1999."),
        ("1999-05-06", "She was born on May 6, 1998."),
        ("1999-02-31", "She was born on February 31, 1999."),
        ("United States", "Tell us."),
        ("Bread and bacon, often with ketchup", "Bread and bacon are popular."),
    ],
)
def test_other_words_are_not_found(value: str, text: str) -> None:
    assert not find_mentions(text, [value])


def test_long_mentions_come_before_short_ones_and_do_not_overlap() -> None:
    text = "Texas A&M is in Austin, Texas, and Austin is large."
    found = find_mentions(text, ["Texas", "Austin, Texas", "Austin"])
    assert [(text[one.start : one.end], one.value) for one in found] == [
        ("Texas", "Texas"),
        ("Austin, Texas", "Austin, Texas"),
        ("Austin", "Austin"),
    ]


def test_folding_keeps_the_length() -> None:
    text = "Ærø, Straße – İzmir’s ﬁ Łódź 東京"
    assert len(fold(text)) == len(text) and "Lodz" in fold(text) and "- Izmir's" in fold(text)


@pytest.mark.parametrize(
    ("value", "writing", "written"),
    [
        ("610.0", Writing.SAME, "610.0"),
        ("610.0", Writing.SHORT, "610"),
        ("610.05", Writing.SHORT, "610.05"),
        ("18R/36L", Writing.SAME, "18R/36L"),
        ("Asphalt", Writing.LOWER, "asphalt"),
        ("Antioch, California", Writing.SHORT, "Antioch"),
        ("Antioch", Writing.SHORT, "Antioch"),
        ("1999-05-06", Writing.DATE, "6 May 1999"),
        ("1999-05-06", Writing.SAME, "1999-05-06"),
        ("1999-02-31", Writing.DATE, "1999-02-31"),
        ("Ann", Writing.DATE, "Ann"),
    ],
)
def test_values_are_written_as_placeholders_say(value: str, writing: Writing, written: str) -> None:
    assert write_value(value, writing) == written


def test_notes_stay_in_the_record() -> None:
    assert split_note("Aaron Turner (musician)") == ("Aaron Turner", "(musician)")
    assert split_note("12.5 (kilometrePerSeconds)") == ("12.5", "(kilometre per seconds)")
    assert split_note("Aaron") == ("Aaron", "") and split_note("Aaron ()") == ("Aaron ()", "")
    template = Template.of([("Ceres", "speed", "12.0 (kilometrePerSeconds)"), ("Ceres", "found", "1801-01-01")])
    assert template.fields == [
        ("ENTITYA", "speed", "ENTITYB (kilometre per seconds)"),
        ("ENTITYA", "found", "ENTITYC"),
    ]
    text = template.insert_placeholders("Ceres, found January 1, 1801, moves at 12km per second.")
    assert text == "ENTITYA, found DATEC, moves at SHORTB km per second."
    assert template.insert_values(text) == "Ceres, found 1 January 1801, moves at 12 km per second."
    assert template.insert_values("SHORTZ and ENTITYAB are words.") == "SHORTZ and ENTITYAB are words."


def test_a_full_stop_of_a_value_at_the_end_is_also_that_of_the_sentence() -> None:
    template = Template.of([("Ann", "club", "Alianza F.C.")])
    for text in ("Alianza F.C. is the club of Ann.", "Ann plays for Alianza F.C.", "Ann plays for Alianza F.C. now."):
        assert template.insert_values(template.insert_placeholders(text)) == text
    assert template.insert_placeholders("Ann plays for Alianza FC.") == "ENTITYA plays for ENTITYB."
    assert template.insert_values("ENTITYA plays for ENTITYB.") == "Ann plays for Alianza F.C."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("$5 million", "It cost $5 million."),
        ("(I Can't Get No)", "They wrote (I Can't Get No) in 1965."),
        ("¡Bang!", 'The song "¡Bang!" is short.'),
        ("*NSYNC", "Is *NSYNC, a band, old?"),
    ],
)
def test_punctuation_around_a_value_is_part_of_its_mention(value: str, text: str) -> None:
    """Otherwise it would be written twice: `$$5 million`."""
    template = Template.of([("name", value)])
    assert "ENTITYA" in template.insert_placeholders(text)
    assert template.insert_values(template.insert_placeholders(text)) == text
    bare = value.strip("$()¡!*")
    assert template.insert_placeholders(f"a {bare} b") == "a ENTITYA b"
