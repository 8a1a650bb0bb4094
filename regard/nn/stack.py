"""A list of layers of one kind."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, cast

from torch import nn

Layer = TypeVar("Layer", bound=nn.Module)


class Stack(nn.Module, Generic[Layer]):
    """Layers under the names 0, 1, …; unlike `nn.ModuleList` it is generic in their type."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        super().__init__()
        for depth, layer in enumerate(layers):
            self.add_module(str(depth), layer)

    def __iter__(self) -> Iterator[Layer]:
        return cast(Iterator[Layer], iter(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, depth: int) -> Layer:
        return list(self)[depth]
