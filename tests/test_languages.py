"""Codes and names of languages."""

import pytest

from regard.text.languages import ALIASES, find_code, language_name


@pytest.mark.parametrize(("short", "long"), ALIASES.items())
def test_a_code_with_a_script_or_region_and_its_short_form_stand_for_each_other(short, long):
    assert find_code(short, ["en", long]) == long
    assert find_code(long, ["en", short]) == short
    assert find_code(long.upper(), [long, short]) == long  # what is named itself comes first
    assert find_code(short, ["en"]) is None
    assert language_name(short) == language_name(long) != long


def test_case_and_space_do_not_matter_and_the_known_spelling_is_returned():
    assert find_code(" EN ", ["de", "en"]) == "en" and find_code("pt-br", ["pt-BR"]) == "pt-BR"
    assert find_code("", ["en"]) is None and find_code("e", ["en"]) is None
    assert language_name("de") == "German" and language_name("no-such-code-at-all") == "no-such-code-at-all"
