"""Constraints given as text, and their translation to rules over tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from regard.foundation.errors import RegardError, UsageError
from regard.search.forbidden import Forbidden
from regard.search.phrases import Only, Prefix, Required, Tokens
from regard.search.rules import Every, Rule
from regard.search.word_count import WordCount
from regard.text.specials import UNK
from regard.text.tokenizer import Tokenizer

MakeRule = Callable[[str, Tokenizer], Rule]
"""(value of the constraint, target tokenizer) → a rule over tokens."""

MOST_WORDS = 10_000

EXTRA: dict[str, MakeRule] = {}
"""Constraints that extensions add, by name."""


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Constraints on an output; none by default."""

    prefix: str | None = None
    """The output begins with this text."""
    prefix_tokens: tuple[int, ...] = ()
    """The output begins with these tokens of the target vocabulary; instead of `prefix`."""
    require: tuple[str, ...] = ()
    """The output contains each of these phrases, independently of the source."""
    forbid: tuple[str, ...] = ()
    """The output contains none of these as whole words; `cat*` also forbids all words that begin with `cat`."""
    only: tuple[str, ...] | None = None
    """The output is one of these texts."""
    words: tuple[int, int] | None = None
    """The output has at least and at most these numbers of words."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Constraints that extensions have added, by name, with their values."""

    def __post_init__(self) -> None:
        if self.prefix is not None and not isinstance(self.prefix, str):
            kind = type(self.prefix).__name__
            raise UsageError(f"The constraint `prefix` is {str(self.prefix)[:80]!r} ({kind}). It must be a text.")
        object.__setattr__(self, "prefix_tokens", _tokens(self.prefix_tokens))
        if self.prefix and self.prefix_tokens:
            raise UsageError("An output cannot begin with both `prefix` and `prefix_tokens`. Give one of them.")
        if self.words is not None:
            object.__setattr__(self, "words", _limits(self.words))
        for name in self.extra:
            if name not in EXTRA:
                known = ", ".join(EXTRA) or "none"
                raise UsageError(f"There is no constraint {name!r}: the extensions that are loaded add {known}.")
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))
        for name in ("require", "forbid", "only"):
            if name != "only" or self.only is not None:
                object.__setattr__(self, name, as_phrases(name, getattr(self, name)))

    def __bool__(self) -> bool:
        return bool(
            self.prefix
            or self.prefix_tokens
            or self.require
            or self.forbid
            or self.only is not None
            or self.words
            or self.extra
        )

    def __hash__(self) -> int:
        texts = self.prefix, self.prefix_tokens, self.require, self.forbid, self.only, self.words
        return hash((*texts, tuple(self.extra.items())))

    def rule(self, tokenizer: Tokenizer) -> Rule:
        """Return the rule of these constraints for a target tokenizer; contradictions raise `UsageError`."""
        prefix = tokenizer.normalise(self.prefix or "")
        require = _normal(self.require, tokenizer)
        forbid = _normal(self.forbid, tokenizer)
        forbidden = Forbidden(forbid, tokenizer)
        for name, text in (("prefix", prefix), *(("required", phrase) for phrase in require)):
            for phrase in forbid:
                if text and Forbidden((phrase,), tokenizer).breaks(text):
                    raise UsageError(f'The {name} text "{text}" contains "{phrase}", which is forbidden. Drop one.')
        rules = [_extra_rule(name, value, tokenizer) for name, value in self.extra.items()]
        if self.words is not None:
            rules.append(WordCount(*self.words, tokenizer))
        if self.only is not None:
            only = _only(_normal(self.only, tokenizer), prefix, require, forbidden, tokenizer)
            return Every([only, *rules]) if rules else only
        if prefix:
            rules.append(Prefix(encode_phrase(prefix, tokenizer)))
        if self.prefix_tokens:
            if max(self.prefix_tokens) >= tokenizer.size:
                raise UsageError(
                    f"The target vocabulary has {tokenizer.size:,} tokens, and no {max(self.prefix_tokens)}."
                )
            rules.append(Prefix(self.prefix_tokens))
        if require:
            rules.append(Required([writings(phrase, tokenizer) for phrase in require]))
        if forbid:
            rules.append(forbidden)
        return rules[0] if len(rules) == 1 else Every(rules)


def _tokens(tokens: object) -> tuple[int, ...]:
    """Check the tokens of a prefix, and return them."""
    if isinstance(tokens, list | tuple) and all(isinstance(token, int) and token >= 0 for token in tokens):
        return tuple(tokens)
    raise UsageError(f"The constraint `prefix_tokens` is {str(tokens)[:80]!r}. It must be a list of token numbers.")


def _limits(words: object) -> tuple[int, int]:
    """Check the limits of `words`, and return them."""
    match words:
        case (int(least), int(most)) if 1 <= least <= most <= MOST_WORDS:
            return least, most
    raise UsageError(
        f"The constraint `words` is {str(words)[:80]!r}. It must be the least and the most words of an output, two "
        f"whole numbers from 1 to {MOST_WORDS:,}, such as (4, 6)."
    )


def _extra_rule(name: str, value: str, tokenizer: Tokenizer) -> Rule:
    """Return the rule of a constraint that an extension adds."""
    rule = EXTRA[name](value, tokenizer)
    if not all(hasattr(rule, part) for part in ("needs", "start", "after", "allowed")):
        raise RegardError(
            f"The constraint {name} of an extension gives {type(rule).__name__}, but it must give a "
            "regard.search.rules.Rule. Correct the extension."
        )
    return rule


def as_phrases(name: str, phrases: object) -> tuple[str, ...]:
    """Check that phrases are a list or tuple of texts, and return them as a tuple."""
    if isinstance(phrases, list | tuple) and all(isinstance(phrase, str) for phrase in phrases):
        return tuple(phrases)
    remedy = f'["{phrases[:80]}"]' if isinstance(phrases, str) else '["first phrase", "second phrase"]'
    raise UsageError(
        f"The search option `{name}` is {str(phrases)[:80]!r} ({type(phrases).__name__}). It must be a list of texts, "
        f"such as {remedy}."
    )


def _only(
    outputs: Sequence[str], prefix: str, require: Sequence[str], forbidden: Forbidden, tokenizer: Tokenizer
) -> Rule:
    """Return the rule of the allowed outputs that also satisfy all other constraints."""
    if not outputs:
        raise UsageError("The list of allowed outputs is empty, so that no output is allowed. Add an output.")
    tests: list[tuple[str, Callable[[str], bool]]] = [
        (f'begins with the prefix "{prefix}"', lambda output: output.startswith(prefix)),
        *((f'contains the required "{phrase}"', partial(_contains, phrase)) for phrase in require),
        ("is free of forbidden phrases", lambda output: not forbidden.breaks(output)),
    ]
    for requirement, test in tests:
        outputs = [output for output in outputs if test(output)]
        if not outputs:
            raise UsageError(
                f"None of the allowed outputs {requirement} (and satisfies the other constraints). Drop one of the "
                "constraints."
            )
    return Only([encode_phrase(output, tokenizer) for output in outputs])


def _contains(phrase: str, text: str) -> bool:
    return phrase in text


def _normal(phrases: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Normalise phrases with the tokenizer, and drop empty ones and duplicates."""
    return list(dict.fromkeys(normal for phrase in phrases if (normal := tokenizer.normalise(phrase)).strip("*")))


def encode_phrase(text: str, tokenizer: Tokenizer) -> Tokens:
    """Return the tokens of a text at the start of an output; raises `UsageError` if the vocabulary has none."""
    tokens = tuple(tokenizer.encode(text).ids)
    if UNK in tokens:
        raise UsageError(f'The vocabulary of the model has no tokens for "{text}". Use another text.')
    return tokens


def writings(phrase: str, tokenizer: Tokenizer) -> list[Tokens]:
    """Return the tokenizations of a phrase inside an output: after a space, and directly after another character."""
    apart = encode_phrase(phrase, tokenizer)
    joined = tokenizer.encode(f"({phrase}")
    inside = tuple(token for token, (_, end) in zip(joined.ids, joined.offsets, strict=True) if end > 1)
    fits = inside and UNK not in inside and tokenizer.decode(inside).strip() == phrase
    return list(dict.fromkeys([apart, inside])) if fits else [apart]
