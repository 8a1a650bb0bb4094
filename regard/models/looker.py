"""image + n → 1: a question is read, its words look at a picture, and an answer is chosen.

Axes: B batch, S question positions, P places of the picture (row by row), H rows and W columns of pixels, D width,
C classes.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.config import shape
from regard.config.cell import settled
from regard.models.image_encoder import make_image_encoder
from regard.models.parts import kept_heads, self_attention
from regard.models.reader import Chooser
from regard.nn.attention import Attention
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class Look(nn.Module):
    """x + SelfAttention(norm x), x + Attention(norm x, picture), x + FeedForward(norm x): one look at the picture.

    Two memories side by side, each attended to by the words of the question (as in Tan and Bansal, 2019).
    """

    def __init__(self, cell: config.Model, width: int, picture_width: int, depth: int) -> None:
        super().__init__()
        self.attention = self_attention(cell, width, f"looks.{depth}.attention")
        self.picture_attention = Attention(
            query_width=width,
            memory_width=picture_width,
            heads=settled(cell.attention.heads),
            score=settled(cell.attention.score),
            project=True,
            dropout=cell.attention.dropout,
            kept=kept_heads(cell, f"looks.{depth}.picture_attention"),
        )
        self.feed_forward = FeedForward(width, 4 * width, activation="relu", dropout=cell.dropout)
        self.norms = Stack(nn.LayerNorm(width, eps=cell.norm_epsilon) for _ in range(3))
        self.dropout = Dropout(cell.dropout)
        self.states = Tap(time=1)

    def forward(self, states: Tensor, mask: Tensor, places: Tensor) -> Tensor:
        """Question states B×S×D with their mask B×1×1×S, and places B×P×D of a picture."""
        own, seen, further = self.norms
        normed = own(states)
        states = states + self.dropout(self.attention(normed, self.attention.remember(normed), mask))
        remembered = self.picture_attention.remember(places)
        states = states + self.dropout(self.picture_attention(seen(states), remembered))
        result: Tensor = self.states(states + self.dropout(self.feed_forward(further(states))))
        return result


class Looker(Chooser):
    """scores = W h_0 + b, h_0 the state of the question's first token behind so many looks at the picture."""

    def __init__(self, cell: config.Model, how: shape.Questions, vocabulary: int, answers: int) -> None:
        super().__init__(cell, vocabulary)
        part = settled(cell.picture)
        self.picture = make_image_encoder(cell, part, "picture")
        self.looks = Stack(Look(cell, self.width, settled(part.width), depth) for depth in range(how.looks))
        self.norm = nn.LayerNorm(self.width, eps=cell.norm_epsilon)
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, answers)

    def outputs(self, source: Tensor, pixels: Tensor) -> Tensor:
        """The one vector that questions B×S about pictures B×3×H×W are answered by: B×1×D."""
        memory = self.encode(source)
        states, places = memory.states, self.picture(pixels).states  # B×S×D and B×P×D
        for look in self.looks:
            states = look(states, memory.mask[:, None, None, :], places)
        result: Tensor = self.norm(states[:, :1])
        return result

    def scores(self, outputs: Tensor) -> Tensor:
        """Scores …×C of outputs …×D."""
        scores: Tensor = self.classifier(self.dropout(outputs))
        return scores

    def forward(self, source: Tensor, pixels: Tensor) -> Tensor:
        """Scores B×C of the answers to questions B×S about pictures B×3×H×W."""
        return self.scores(self.outputs(source, pixels))[:, 0]
