"""The list of mutations fits the code: otherwise `make test-long` would try changes that change nothing."""

import pytest

from tests.mutations import GROUPS, Mutation
from tests.run_mutations import near_tests

EVERY = [mutation for several in GROUPS.values() for mutation in several]


@pytest.mark.parametrize("mutation", EVERY, ids=lambda mutation: mutation.what)
def test_the_text_of_a_mutation_occurs_exactly_once_and_stays_python(mutation):
    path = mutation.place()
    changed = path.read_text(encoding="utf-8").replace(mutation.old, mutation.new)
    compile(changed, str(path), "exec")
    assert near_tests(mutation)


def test_every_mutation_has_a_name_of_its_own():
    assert len({mutation.what for mutation in EVERY}) == len(EVERY)


@pytest.mark.parametrize("text", ["no such text anywhere", "import"])
def test_a_mutation_that_fits_nowhere_or_in_several_places_is_refused(text):
    with pytest.raises(ValueError, match="occurs"):
        Mutation("stale", text, "", "grid").place()
