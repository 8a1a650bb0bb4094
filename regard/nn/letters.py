"""Vectors of words from their letters.

Axes: N words, L letters of a word, M width of a letter, C filters, E embedding width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NO_LETTER = 0
"""The number of a letter that is not there: after the end of a word."""


class LetterEncoder(nn.Module):
    """v = W max_l relu(conv(letters))_l + b: filters of neighbouring letters, each where it is strongest.

    From Ma and Hovy (2016). A filter can recognise an ending or a prefix, also of words that do not occur in the
    training data. W and b are zero before training, so that training starts from the other vectors of a word.
    """

    def __init__(self, letters: int, *, width: int, filters: int, kernel: int, out: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.embedding = nn.Parameter(torch.randn(letters, width))
        self.convolution = nn.Linear(width * kernel, filters)
        self.linear = nn.Linear(filters, out)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, letters: Tensor) -> Tensor:
        """Return the vectors N×E of words from the numbers of their letters N×L, `NO_LETTER` after the end."""
        real = letters != NO_LETTER  # N×L
        vectors = F.embedding(letters, self.embedding) * real[:, :, None]  # N×L×M
        half = self.kernel // 2
        windows = F.pad(vectors, (0, 0, half, half)).unfold(1, self.kernel, 1)  # N×L×M×kernel
        found = torch.relu(self.convolution(windows[real].flatten(1)))  # only of real letters
        matched = found.new_zeros(*letters.shape, found.shape[1])  # N×L×C
        matched[real] = found
        vector: Tensor = self.linear(matched.amax(1))  # 0 is the least, so that missing letters change no maximum
        return vector
