"""A scene knows itself: its picture, its boxes, its sentences and its answers agree."""

import random
from collections import Counter, defaultdict

import pytest

from regard.data.scenes import COLOURS, SHAPES, SIDE, Scene, captions, draw, is_true, parse, plural, questions, scenes
from regard.foundation.errors import RegardError

SCENES = list(scenes(300, seed=5))


def test_the_same_seed_gives_the_same_scenes_and_another_others():
    assert list(scenes(50, seed=5)) == SCENES[:50]
    assert list(scenes(50, seed=6)) != SCENES[:50]
    assert len(set(SCENES)) == len(SCENES)


def test_things_never_overlap_nor_leave_the_picture():
    for scene in SCENES:
        boxes = [thing.box for thing in scene.things]
        for place, (left, top, right, bottom) in enumerate(boxes):
            assert 0 <= left < right <= SIDE and 0 <= top < bottom <= SIDE
            assert all(
                right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
                for other in boxes[place + 1 :]
            )


def test_every_caption_is_true_of_its_scene_and_often_false_of_others():
    generator = random.Random(1)
    said = [(sentence, scene) for scene in SCENES for sentence in captions(scene, generator, 3)]
    assert all(is_true(sentence, scene) for sentence, scene in said)
    elsewhere = [is_true(sentence, SCENES[(place * 7 + 11) % len(SCENES)]) for place, (sentence, _) in enumerate(said)]
    assert sum(elsewhere) / len(elsewhere) < 0.15
    assert not is_true("there is a dog", SCENES[0])


def test_every_kind_of_sentence_and_question_occurs():
    generator = random.Random(2)
    said = " | ".join(sentence for scene in SCENES for sentence in captions(scene, generator, 3))
    assert all(words in said for words in ("there is", "left of", "above", "there are two", " and "))
    asked = " | ".join(one.question for scene in SCENES for one in questions(scene, generator, 3))
    assert all(words in asked for words in ("what colour", "how many", "is there", "what is left of"))


def test_answers_follow_from_the_scene():
    generator = random.Random(3)
    for scene in SCENES:
        for one in questions(scene, generator, 4):
            assert all(thing in scene.things for thing in one.about)
            if one.question.startswith("what colour"):
                [thing] = one.about
                assert scene.those(thing.shape) == [thing] and one.answer == thing.colour
            elif one.question.startswith("how many"):
                shape = next(shape for shape in SHAPES if plural(shape) in one.question)
                assert one.answer == ("none", "one", "two", "three", "four")[len(scene.those(shape))]
            elif one.question.startswith("is there"):
                sentence = one.question.replace("is there", "there is").removesuffix(" ?")
                assert is_true(sentence, scene) == (one.answer == "yes")
            else:
                assert one.answer in {thing.name for thing in scene.things}


def test_no_kind_of_question_is_answered_by_guessing_nor_by_half_a_look():
    generator, answers, mixed = random.Random(4), defaultdict(Counter), []
    for scene in SCENES:
        for one in questions(scene, generator, 8):
            answers[" ".join(one.question.split()[:2])][one.answer] += 1
            if one.answer == "no":
                colour, shape = one.question.split()[3:5]
                mixed.append(bool(scene.those(shape)) and bool(scene.those(colour=colour)))
    counts = {kind: found.total() for kind, found in answers.items()}
    assert len(counts) == 4 and min(counts.values()) > sum(counts.values()) / 8
    assert all(found.most_common(1)[0][1] < 0.55 * counts[kind] for kind, found in answers.items())
    assert sum(mixed) > len(mixed) / 4  # both colour and shape are there, but not in one thing


def test_a_picture_shows_each_thing_inside_its_box_and_nothing_outside():
    pytest.importorskip("PIL", reason="the images extra is not installed")
    for scene in SCENES[:40]:
        picture = draw(scene)
        for thing in scene.things:
            x, y = thing.middle
            near = picture.getpixel((int(x), int(y + (2 if thing.shape == "triangle" else 0))))
            assert sum(abs(a - b) for a, b in zip(near, COLOURS[thing.colour], strict=True)) < 90, thing
        inside = {
            (x, y)
            for left, top, right, bottom in (thing.box for thing in scene.things)
            for x in range(int(left) - 2, int(right) + 3)
            for y in range(int(top) - 2, int(bottom) + 3)
        }
        ground = [picture.getpixel((x, y)) for x in range(SIDE) for y in range(SIDE) if (x, y) not in inside]
        assert all(min(pixel) > 240 for pixel in ground)


def test_an_empty_scene_cannot_be_described():
    assert not is_true("there is a red circle", Scene(()))


def test_a_scene_written_out_is_the_scene():
    assert [parse(scene.name) for scene in SCENES] == SCENES
    (circle,) = parse("shapes: red circle 0 2").things
    assert (circle.name, circle.column, circle.row, circle.shift) == ("red circle", 0, 2, (0, 0))


@pytest.mark.parametrize(
    "name",
    [
        "shapes:",
        "shapes: circle 0 0",
        "shapes: red circle",
        "shapes: red circle 0 3",
        "shapes: red circle 0 0 7 4 0",
        "shapes: pink circle 0 0",
        "shapes: red circle 0 0, blue star 0 0",
        "shapes: red circle 0 0 6",
    ],
)
def test_what_is_no_scene_is_refused_in_words(name):
    with pytest.raises(RegardError):
        parse(name)
