"""Ways to damage a run directory, by accident or on purpose."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import load_file, save_file

from regard.runs.manifest import Digest, Manifest
from regard.runs.records import seal

Mutation = Callable[[Path, random.Random, Path], bool]
"""Changes a run (directory, random numbers, a directory outside it); returns whether it was sealed again, so that
only the strict parsing can notice the change, and another result is allowed."""


def files_of(run: Path, suffix: str = "") -> list[Path]:
    """All files of a run whose names end so, without its lock."""
    return sorted(path for path in run.rglob(f"*{suffix}") if path.is_file() and path.name != ".lock")


def flip_byte(run: Path, chance: random.Random, outside: Path) -> bool:
    path = chance.choice([path for path in files_of(run) if path.stat().st_size])
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return False


def cut_or_extend(run: Path, chance: random.Random, outside: Path) -> bool:
    path = chance.choice(files_of(run))
    content = path.read_bytes()
    ways = (b"", content[: chance.randrange(len(content) + 1)], content + content[:7] + b"\0", content * 2)
    path.write_bytes(chance.choice(ways))
    return False


def remove(run: Path, chance: random.Random, outside: Path) -> bool:
    chance.choice(files_of(run)).unlink()
    return False


def swap(run: Path, chance: random.Random, outside: Path) -> bool:
    one, other = chance.sample(files_of(run), 2)
    contents = other.read_bytes(), one.read_bytes()
    one.write_bytes(contents[0])
    other.write_bytes(contents[1])
    return False


def replace_by_other_kind(run: Path, chance: random.Random, outside: Path) -> bool:
    path = chance.choice([*files_of(run), run / "data", run / "tokenizers", run / "checkpoints"])
    kept = outside / "kept"
    if path.is_dir():
        shutil.copytree(path, kept, dirs_exist_ok=True)
        shutil.rmtree(path)
        path.symlink_to(kept)
        return False
    shutil.copy(path, kept)
    path.unlink()
    kind = chance.choice(("directory", "link out", "zero", "pipe", "loop", "relative"))
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        target = {"link out": kept, "zero": Path("/dev/zero"), "loop": path}.get(kind)
        path.symlink_to(target or os.path.relpath(kept, path.parent))
    return False


def lay_a_trap(run: Path, chance: random.Random, outside: Path) -> bool:
    """Put a link to a file outside where a command may write next."""
    names = (".config.yaml.aside", ".run.json.aside", ".model.safetensors.aside", "metrics.jsonl", "curves.png")
    names += ("checkpoints/.aside-00000013", ".lock", "README.md", "checkpoints/latest", "manifest.json")
    path = run / chance.choice(names)
    path.unlink(missing_ok=True)
    path.symlink_to(outside / "secret")
    return False


def point_elsewhere(run: Path, chance: random.Random, outside: Path) -> bool:
    shutil.copytree(run / "checkpoints" / "step-00000012", outside / "step-00000012")
    places = (str(outside / "step-00000012"), "../../outside/step-00000012", "step-00000012/../../..", "step-1", "\0")
    (run / "checkpoints" / "latest").write_text(chance.choice(places))
    if chance.random() < 0.5:
        _reseal(run, {"status": "stopped"})
        (run / "model.safetensors").unlink()
        manifest = Manifest.load(run)
        del manifest.files["model.safetensors"]
        manifest.save(run)
        return True
    return False


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    1e308,
    float("nan"),
    "",
    "\x1b[31mred",
    "../../etc",
    [],
    {},
    [[]],
    "x" * 9999,
)


def _mutate_json(content: Any, chance: random.Random) -> Any:
    """Change one place of a JSON value."""
    if isinstance(content, dict) and content and chance.random() < 0.8:
        key = chance.choice(sorted(content))
        if chance.random() < 0.2:
            return {name: value for name, value in content.items() if name != key}
        return {**content, key: _mutate_json(content[key], chance)}
    if isinstance(content, list) and content and chance.random() < 0.8:
        place = chance.randrange(len(content))
        return [*content[:place], _mutate_json(content[place], chance), *content[place + 1 :]]
    if chance.random() < 0.1:
        deep: Any = 0
        for _ in range(500):
            deep = [deep]
        return deep
    return chance.choice(ODD)


def odd_json(run: Path, chance: random.Random, outside: Path) -> bool:
    path = chance.choice([*files_of(run, ".json"), *files_of(run, ".jsonl")])
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        lines = text.splitlines() or ["{}"]
        place = chance.randrange(len(lines))
        lines[place] = json.dumps(_mutate_json(json.loads(lines[place]), chance))
        path.write_text("\n".join(lines) + "\n")
    elif chance.random() < 0.1:
        path.write_text("[" * 100_000)
    else:
        content = _mutate_json(json.loads(text), chance)
        path.write_text(json.dumps(seal(content) if isinstance(content, dict) and "checksum" in text else content))
    return _reseal_manifest(run, path)


def odd_config(run: Path, chance: random.Random, outside: Path) -> bool:
    path = run / "config.yaml"
    content = yaml.safe_load(path.read_text())
    if chance.random() < 0.5:
        content["model"]["width"] = chance.choice((32, 4096, 65536, -1, 0, 2**40))
    else:
        content = _mutate_json(content, chance)
    path.write_text(json.dumps(content))  # which is YAML, too
    return _reseal_manifest(run, path)


def odd_weights(run: Path, chance: random.Random, outside: Path) -> bool:
    path = run / "model.safetensors"
    weights = load_file(path)
    name = chance.choice(sorted(weights))
    metadata = {
        "regard": chance.choice(("{}", "[" * 10_000, "null", '{"tokenizers": 3}', '{"tokenizers": {"source": 1}}'))
    }
    way = chance.choice(("nan", "inf", "int8", "missing", "surplus", "shape", "metadata"))
    tensor = weights[name].clone()
    if way in ("nan", "inf"):
        tensor.view(-1)[0] = float(way)
    changed = {
        "int8": {name: tensor.to(torch.int8)},
        "surplus": {"more": tensor},
        "shape": {name: torch.zeros(*tensor.shape, 2)},
    }.get(way, {name: tensor})
    weights |= changed
    if way == "missing":
        del weights[name]
    save_file(weights, path, metadata=metadata if way == "metadata" else None)
    return _reseal_manifest(run, path)


def _reseal(run: Path, facts: dict[str, Any]) -> None:
    path = run / "run.json"
    path.write_text(json.dumps(seal(json.loads(path.read_text()) | facts)))


def _reseal_manifest(run: Path, path: Path) -> bool:
    """Make the manifest agree with a changed file, as somebody would who means harm."""
    if path.name == "manifest.json":
        return True
    manifest = Manifest.load(run)
    name = path.relative_to(run).as_posix()
    if name in manifest.files:
        manifest.files[name] = [Digest.of(path)]
        manifest.save(run)
    return True


MUTATIONS: tuple[Mutation, ...] = (
    *(flip_byte, flip_byte, cut_or_extend, remove, swap, replace_by_other_kind, lay_a_trap, point_elsewhere),
    *(odd_json, odd_json, odd_json, odd_config, odd_weights),
)
