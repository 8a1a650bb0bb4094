"""The ctranslate2 library: whether it is installed, which types this processor supports, and its token names."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.installation import install_command

TYPES = ("float32", "int8", "int16", "float16", "bfloat16")


def installed() -> bool:
    """Return whether the library is installed, without importing it."""
    return find_spec("ctranslate2") is not None


def library() -> Any:
    """Import the library; raises with the command that installs it."""
    try:
        import ctranslate2
    except ImportError as error:
        if installed():
            raise RegardError(
                f"CTranslate2 is installed but cannot be imported ({error}). Install it again with "
                f"`{install_command('fast')}`."
            ) from error
        raise RegardError(f"CTranslate2 is not installed. Install it with `{install_command('fast')}`.") from None
    return ctranslate2


def supports(quantize: str) -> bool:
    """Return whether this processor supports a type."""
    return quantize in library().get_supported_compute_types("cpu")


def check_type(quantize: str) -> None:
    """Raise if a type does not exist."""
    if quantize not in TYPES:
        raise UsageError(f"--quantize must be one of {', '.join(TYPES)}, not `{quantize}`.")


def check_supported(quantize: str) -> None:
    """Raise if this processor does not support a type."""
    if not supports(quantize):
        known = ", ".join(sorted(library().get_supported_compute_types("cpu")))
        raise RegardError(f"CTranslate2 does not support {quantize} on this processor. Use {known}.")


def unique_names(tokens: Sequence[str]) -> list[str]:
    """Return unique names of tokens, as CTranslate2 needs; a repeated token gets its number as a suffix."""
    if len(set(tokens)) == len(tokens):
        return list(tokens)
    seen: set[str] = set()
    names: list[str] = []
    for number, token in enumerate(tokens):
        names.append(f"{token}#{number}" if token in seen else token)
        seen.add(token)
    return names
