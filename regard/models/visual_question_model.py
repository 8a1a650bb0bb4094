"""The visual question model: attends to a question and an image in turn, and chooses an answer.

Axes: B batch, S question positions, N distinct images, P positions of an image (row by row), H rows and W columns of
pixels, D width, C classes.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.config.task import VisualQuestions
from regard.models.encoder_model import ChoiceModel
from regard.models.image_encoder import make_image_encoder
from regard.models.memory import Memory
from regard.models.parts import kept_heads
from regard.nn.attention import Attention
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.source_rows import SourceRows
from regard.nn.stack import Stack
from regard.nn.taps import Tap, watched


class Look(nn.Module):
    """h + Attention(norm h, question), h + Attention(norm h, image), h + FeedForward(norm h): one look.

    Attention to the question selects the words to follow, attention to the image what it shows about them (as in
    Hudson and Manning, 2018).
    """

    def __init__(self, cell: config.Model, width: int, picture_width: int, depth: int) -> None:
        super().__init__()
        self.question_attention = _attention(cell, width, width, f"looks.{depth}.question_attention")
        self.picture_attention = _attention(cell, width, picture_width, f"looks.{depth}.picture_attention")
        self.feed_forward = FeedForward(width, 4 * width, activation="relu", dropout=cell.dropout)
        self.norms = Stack(nn.LayerNorm(width, eps=cell.norm_epsilon) for _ in range(3))
        self.dropout = Dropout(cell.dropout)
        self.states = Tap(time=1)

    def forward(self, state: Tensor, question: Memory, places: Tensor, rows: SourceRows) -> Tensor:
        """Update states B×1×D from the questions and image states N×P×D; `rows` maps each row to its image: B×1×D."""
        asking, seeing, further = self.norms
        found = self.question_attention(asking(state), question.states, question.mask[:, None, None, :])
        state = state + self.dropout(found)
        seen = replace(self.picture_attention.key_values(places), rows=rows)
        state = state + self.dropout(self.picture_attention(seeing(state), seen))
        result: Tensor = self.states(state + self.dropout(self.feed_forward(further(state))))
        return result


def _attention(cell: config.Model, width: int, memory_width: int, path: str) -> Attention:
    return Attention(
        query_width=width,
        memory_width=memory_width,
        heads=resolved(cell.attention.heads),
        score=resolved(cell.attention.score),
        dropout=cell.attention.dropout,
        kept=kept_heads(cell, path),
    )


class VisualQuestionModel(ChoiceModel):
    """scores = W h + b, where h is the state of the question's first token after all looks."""

    def __init__(self, cell: config.Model, how: VisualQuestions, vocabulary: int, answers: int) -> None:
        super().__init__(cell, vocabulary)
        part = resolved(cell.picture)
        self.picture = make_image_encoder(cell, part, name="picture")
        self.looks = Stack(Look(cell, self.width, resolved(part.width), depth) for depth in range(how.looks))
        self.norm = nn.LayerNorm(self.width, eps=cell.norm_epsilon)
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, answers)

    def outputs(self, source: Tensor, pixels: Tensor) -> Tensor:
        """Return the vector from which questions B×S about images B×3×H×W are answered: B×1×D."""
        question = self.encode(source)
        first, which = find_distinct_images(pixels) if not watched(self.picture) else keep_all_images(pixels)
        places, rows = self.picture(pixels[first]).states, SourceRows(which, len(first))  # N×P×D
        state = question.states[:, :1]
        for look in self.looks:
            state = look(state, question, places, rows)
        result: Tensor = self.norm(state)
        return result

    def forward(self, source: Tensor, pixels: Tensor) -> Tensor:
        """Return the logits B×C, before temperature, of the answers to questions B×S about images B×3×H×W."""
        return self.logits(self.outputs(source, pixels))[:, 0]


def find_distinct_images(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first row of each run of equal images B×3×H×W, N, and the run that each row belongs to, B.

    The image encoder dominates the cost, so adjacent questions about one image share a pass.
    """
    another = (pixels[1:] != pixels[:-1]).flatten(1).any(1)  # B-1
    begins = torch.cat([another.new_ones(1), another])  # B
    return begins.nonzero()[:, 0], begins.cumsum(0) - 1


def keep_all_images(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same with every row its own run, for watched taps, which record all rows of a batch."""
    rows = torch.arange(len(pixels), device=pixels.device)
    return rows, rows
