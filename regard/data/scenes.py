"""Coloured shapes in a scene, sentences that are true of it, and questions with their answers.

The box of every object is known, and `is_true` decides whether a sentence is true of a scene. So captions can be
evaluated by truth instead of similarity to a reference, and attention by the object it falls on.
Sizes are in pixels of the finished image; objects never overlap.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 48
"""Width and height of an image."""
CELLS = 3
"""Objects are placed on a grid of this many cells per side, a few pixels off the centre of their cell."""
MOST = 4
"""Largest number of objects in a scene."""
RADII = (5, 7)
"""Smallest and largest radius of an object, in pixels."""

COLOURS = {
    "red": (214, 48, 49),
    "green": (46, 160, 67),
    "blue": (41, 98, 218),
    "yellow": (241, 196, 15),
    "purple": (142, 68, 173),
    "orange": (243, 130, 33),
    "black": (30, 30, 34),
    "grey": (140, 146, 155),
}
SHAPES = ("circle", "square", "triangle", "star", "cross")
NUMBERS = ("none", "one", "two", "three", "four")
PLACES = {"left of": (-1, 0), "right of": (1, 0), "above": (0, -1), "below": (0, 1)}
"""Relations between two objects: the signs of the horizontal and vertical distance."""

SCENE = "shapes:"
"""Prefix of the name of a scene."""

_FINER = 4
"""Images are drawn this many times larger and then reduced, for smooth edges."""


@dataclass(frozen=True, slots=True)
class Thing:
    """An object: a coloured shape in a cell of the scene."""

    shape: str
    colour: str
    column: int
    row: int
    radius: int
    """Half its width in pixels."""
    shift: tuple[int, int]
    """Offset of its centre from the centre of its cell, in pixels."""

    @property
    def name(self) -> str:
        """Such as `red circle`."""
        return f"{self.colour} {self.shape}"

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre (x, y) in pixels."""
        cell = SIDE / CELLS
        return (self.column + 0.5) * cell + self.shift[0], (self.row + 0.5) * cell + self.shift[1]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom in pixels."""
        x, y = self.middle
        return x - self.radius, y - self.radius, x + self.radius, y + self.radius


@dataclass(frozen=True, slots=True)
class Scene:
    """Several objects; no two have the same shape and colour."""

    things: tuple[Thing, ...]

    @property
    def name(self) -> str:
        """The scene as text that `parse` reads: colour, shape, column, row, radius and shift of each object."""
        things = (
            f"{thing.name} {thing.column} {thing.row} {thing.radius} {thing.shift[0]} {thing.shift[1]}"
            for thing in self.things
        )
        return f"{SCENE} {', '.join(things)}"

    def those(self, shape: str | None = None, colour: str | None = None) -> list[Thing]:
        """Return the objects of a shape, of a colour, or both."""
        return [thing for thing in self.things if shape in (None, thing.shape) and colour in (None, thing.colour)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a scene, its only answer, and the objects that it is about."""

    question: str
    answer: str
    about: tuple[Thing, ...]


def scenes(count: int, seed: int, most: int = MOST) -> Iterator[Scene]:
    """Yield `count` different scenes of at most `most` objects, which depend on the seed only."""
    generator = random.Random(f"shapes {seed}")
    seen: set[Scene] = set()
    while len(seen) < count:
        scene = _scene(generator, most)
        if scene not in seen:
            seen.add(scene)
            yield scene


def _scene(generator: random.Random, most: int) -> Scene:
    number = generator.randint(1, most)
    kinds = generator.sample([(shape, colour) for shape in SHAPES for colour in COLOURS], number)
    if number > 1 and generator.random() < 0.5:  # repeated shapes and colours make scenes harder to describe
        shape = kinds[0][0]
        colours = generator.sample(list(COLOURS), 2)
        kinds[:2] = [(shape, colour) for colour in colours]
        kinds = list(dict.fromkeys(kinds))
    cells = generator.sample([(column, row) for column in range(CELLS) for row in range(CELLS)], len(kinds))
    things = []
    for (shape, colour), (column, row) in zip(kinds, cells, strict=True):
        radius = generator.randint(*RADII)
        room = _room(radius)
        shift = generator.randint(-room, room), generator.randint(-room, room)
        things.append(Thing(shape, colour, column, row, radius, shift))
    return Scene(tuple(sorted(things, key=lambda thing: (thing.row, thing.column))))


def _room(radius: int) -> int:
    """Return by how many pixels an object can be off the centre of its cell."""
    return SIDE // CELLS // 2 - radius


def parse(name: str) -> Scene:
    """Return the scene that a text describes; radius and shift of an object may be omitted."""
    things = []
    for part in name.removeprefix(SCENE).split(","):
        colour, shape, *numbers = [*part.split(), "", ""]
        try:
            column, row, *rest = map(int, filter(None, numbers))
            radius, across, down = rest or (6, 0, 0)
        except ValueError:
            column = row = radius = -1
            across = down = 0
        room = _room(radius)
        placed = 0 <= column < CELLS and 0 <= row < CELLS and radius > 0 and max(abs(across), abs(down)) <= room
        if colour not in COLOURS or shape not in SHAPES or not placed:
            raise RegardError(
                f"`{part.strip()[:80]}` is not an object of a scene. Write a colour ({', '.join(COLOURS)}), a shape "
                f"({', '.join(SHAPES)}), its column and its row (0 to {CELLS - 1}), such as `red circle 0 2`."
            )
        things.append(Thing(shape, colour, column, row, radius, (across, down)))
    if len({(thing.column, thing.row) for thing in things}) < len(things):
        raise RegardError("Two objects of this scene are in the same cell. Give each a different column or row.")
    return Scene(tuple(sorted(things, key=lambda thing: (thing.row, thing.column))))


def caption_pairs(count: int, seed: int, sentences: int) -> Iterator[tuple[str, str]]:
    """Yield (the name of a scene, a true sentence about it) for `count` scenes with `sentences` sentences each."""
    generator = random.Random(f"captions {seed}")
    for scene in scenes(count, seed):
        for sentence in captions(scene, generator, sentences):
            yield scene.name, sentence


def question_pairs(count: int, seed: int, number: int) -> Iterator[tuple[str, str]]:
    """Yield (the name of a scene, a tab and a question, its answer) for `count` scenes, `number` questions each."""
    generator = random.Random(f"questions {seed}")
    for scene in scenes(count, seed):
        for question in questions(scene, generator, number):
            yield f"{scene.name}\t{question.question}", question.answer


def name_pairs(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (the name of a scene with one object, the name of the object) for `count` scenes."""
    shifts = sum((2 * _room(radius) + 1) ** 2 for radius in range(RADII[0], RADII[1] + 1))
    different = len(SHAPES) * len(COLOURS) * CELLS**2 * shifts
    if count > different:
        raise RegardError(f"There are {different:,} different pictures of one shape, not {count:,}. Reduce size.")
    for scene in scenes(count, seed, most=1):
        yield scene.name, scene.things[0].name


def draw(scene: Scene, side: int = SIDE) -> "Image":
    """Draw a scene on a white background as an image of `side`×`side` pixels."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise RegardError(f"Images need Pillow. Install it with `{install_command('images')}`.") from None
    finer = _FINER * -(-side // SIDE)
    large = Image.new("RGB", (SIDE * finer, SIDE * finer), (255, 255, 255))
    pen = ImageDraw.Draw(large)
    for thing in scene.things:
        left, top, right, bottom = (edge * finer for edge in thing.box)
        ink = COLOURS[thing.colour]
        if thing.shape == "circle":
            pen.ellipse((left, top, right, bottom), fill=ink)
        elif thing.shape == "cross":
            third = (right - left) / 3
            pen.rectangle((left + third, top, right - third, bottom), fill=ink)
            pen.rectangle((left, top + third, right, bottom - third), fill=ink)
        else:
            pen.polygon([(left + x * (right - left), top + y * (bottom - top)) for x, y in _OUTLINES[thing.shape]], ink)
    return large.resize((side, side), Image.Resampling.LANCZOS)


_OUTLINES = {
    "square": [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)],
    "triangle": [(0.5, 0.0), (1.0, 1.0), (0.0, 1.0)],
    "star": [
        (0.5, 0.0), (0.62, 0.36), (1.0, 0.38), (0.7, 0.61), (0.81, 0.98), (0.5, 0.77),
        (0.19, 0.98), (0.3, 0.61), (0.0, 0.38), (0.38, 0.36),
    ],
}  # fmt: skip
"""Corners within the unit square."""


def captions(scene: Scene, generator: random.Random, count: int) -> list[str]:
    """Return `count` true sentences about a scene; in simple scenes some may be equal."""
    return [_caption(scene, generator) for _ in range(count)]


def _caption(scene: Scene, generator: random.Random) -> str:
    things = list(scene.things)
    generator.shuffle(things)
    if len(things) == 1 or generator.random() < 0.25:
        return f"there is {_article(things[0].name)}"
    first, second = things[:2]
    relations = [name for name in PLACES if _is_related(name, first, second)]
    if relations and generator.random() < 0.6:
        return f"{_article(first.name)} is {generator.choice(relations)} {_article(second.name)}"
    several = [shape for shape in SHAPES if len(scene.those(shape)) > 1]
    if several and generator.random() < 0.5:
        shape = generator.choice(several)
        return f"there are {NUMBERS[len(scene.those(shape))]} {plural(shape)}"
    return f"there is {_article(first.name)} and {_article(second.name)}"


def questions(scene: Scene, generator: random.Random, count: int) -> list[Asked]:
    """Return `count` questions of all kinds, each with exactly one answer."""
    return [_question(scene, generator) for _ in range(count)]


def _question(scene: Scene, generator: random.Random) -> Asked:
    """Return a question of any kind that is possible for the scene."""
    kinds = [_ask_colour, _ask_number, _ask_presence, _ask_place]
    generator.shuffle(kinds)
    return next(question for kind in kinds if (question := kind(scene, generator)))


def _ask_colour(scene: Scene, generator: random.Random) -> Asked | None:
    """Return a question about the colour of the only object of its shape, or `None` if there is none."""
    unique = [thing for thing in scene.things if len(scene.those(thing.shape)) == 1]
    if not unique:
        return None
    thing = generator.choice(unique)
    return Asked(f"what colour is the {thing.shape} ?", thing.colour, (thing,))


def _ask_number(scene: Scene, generator: random.Random) -> Asked:
    """Return a question about the number of a shape; all numbers that occur are equally likely."""
    numbers = {shape: len(scene.those(shape)) for shape in SHAPES}
    number = generator.choice(sorted(set(numbers.values())))
    shape = generator.choice([shape for shape in SHAPES if numbers[shape] == number])
    return Asked(f"how many {plural(shape)} are there ?", NUMBERS[number], tuple(scene.those(shape)))


def _ask_presence(scene: Scene, generator: random.Random) -> Asked:
    """Return a yes-no question; half are true, half of the others combine a colour and a shape of the scene."""
    if generator.random() < 0.5:
        thing = generator.choice(scene.things)
        return Asked(f"is there {_article(thing.name)} ?", "yes", (thing,))
    absent = [(shape, colour) for shape in SHAPES for colour in COLOURS if not scene.those(shape, colour)]
    mixed = [(shape, colour) for shape, colour in absent if scene.those(shape) and scene.those(colour=colour)]
    shape, colour = generator.choice(mixed if mixed and generator.random() < 0.5 else absent)
    return Asked(f"is there {_article(f'{colour} {shape}')} ?", "no", ())


def _ask_place(scene: Scene, generator: random.Random) -> Asked | None:
    """Return a question about an object with exactly one other object on one side, or `None`."""
    neighbours = [
        (name, thing, [other for other in scene.things if other != thing and _is_related(name, other, thing)])
        for thing in scene.things
        for name in PLACES
    ]
    answerable = [(name, thing, others[0]) for name, thing, others in neighbours if len(others) == 1]
    if not answerable:
        return None
    name, thing, other = generator.choice(answerable)
    return Asked(f"what is {name} the {thing.name} ?", other.name, (thing, other))


def is_true(sentence: str, scene: Scene) -> bool:
    """Return whether a sentence is true of a scene; sentences that `captions` cannot produce are false."""
    thing = rf"an? ({'|'.join(COLOURS)}) ({'|'.join(SHAPES)})"
    if found := re.fullmatch(rf"there is {thing}( and {thing})?", sentence):
        first, second = found.group(2, 1), found.group(5, 4)
        both = second != (None, None)
        return bool(scene.those(*first)) and (not both or (first != second and bool(scene.those(*second))))
    if found := re.fullmatch(rf"{thing} is ({'|'.join(PLACES)}) {thing}", sentence):
        return any(
            _is_related(found.group(3), thing, other)
            for thing in scene.those(*found.group(2, 1))
            for other in scene.those(*found.group(5, 4))
        )
    if found := re.fullmatch(rf"there are ({'|'.join(NUMBERS[2:])}) ({'|'.join(map(plural, SHAPES))})", sentence):
        shape = next(shape for shape in SHAPES if plural(shape) == found.group(2))
        return len(scene.those(shape)) == NUMBERS.index(found.group(1))
    return False


def plural(shape: str) -> str:
    """Return the plural of a shape."""
    return f"{shape}es" if shape.endswith("s") else f"{shape}s"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _is_related(relation: str, thing: Thing, other: Thing) -> bool:
    """Return whether a relation holds: another column (row), and this distance is larger than the other one."""
    across, down = thing.column - other.column, thing.row - other.row
    sign_across, sign_down = PLACES[relation]
    if sign_across:
        return across * sign_across > 0 and abs(across) >= abs(down)
    return down * sign_down > 0 and abs(down) >= abs(across)
