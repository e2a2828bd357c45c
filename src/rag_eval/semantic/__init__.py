"""A local sentence encoder for groundedness: given by path and digest, never downloaded, nothing of it executed.

The files are read as numbers and text: ``model.safetensors``, ``config.json``, ``vocab.txt``, ``tokenizer_config.json``
and, where it is there, ``1_Pooling/config.json``. No library that could reach a network or run a model's code takes
part: the forward pass is in :mod:`rag_eval.semantic.bert`, on numpy.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from functools import lru_cache

from rag_eval.errors import MissingExtra, UsageError
from rag_eval.safe import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from rag_eval.semantic.bert import Bert, Shape

VERSION = 1
"""Goes up when the same files give other similarities."""
POOLING = "1_Pooling/config.json"
FILES = (POOLING, "config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt")
"""What a model consists of, in the order of its digest; the first may be absent."""
REMEMBERED = 1 << 14  # texts whose vectors are kept
DECIMALS = 3  # of a similarity: what the last bits of a processor say decides nothing
_GIB = 1 << 30
_MOST = 2 * _GIB  # bytes of a file
_LONGEST = 256  # pieces of a text; a sentence has fewer
_HEADER = 8  # bytes that say how long the header of a safetensors file is


@dataclass(frozen=True)
class Encoder:
    """The model in folder ``path`` whose digest is ``sha256``, read when it is first asked."""

    path: str
    sha256: str

    @property
    def identity(self) -> str:
        """What similarities hang on."""
        return f"{VERSION}:{self.sha256}"

    def similar(self, sentences: Sequence[str], texts: Sequence[str]) -> list[float]:
        """For each sentence the greatest cosine, -1 to 1, between it and any of the texts; 0 where there are none.

        Raises MissingExtra without numpy, UsageError where the folder does not hold the model of this digest.
        """
        vector, one_thread = _reader(self.path, self.sha256)
        with one_thread():
            against = [vector(text) for text in texts]
            found = [max([float(own @ other) for other in against], default=0.0) for own in map(vector, sentences)]
        return [round(number, DECIMALS) for number in found]


@lru_cache(maxsize=2)
def _reader(path: str, sha256: str) -> tuple[Callable[[str], NDArray[np.float32]], Callable[[], Any]]:
    """A function from a text to its vector, and what holds numpy to one thread."""
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, import-not-found, unused-ignore]

        from rag_eval.semantic.bert import Bert
        from rag_eval.semantic.wordpiece import WordPiece
    except ImportError:
        raise MissingExtra("groundedness.model", "semantic") from None
    held = _files(path)
    found = digest(held)
    if found != sha256:
        raise UsageError(
            f"{_shown(path)}: the model's files have the sha256 {found}, and groundedness.model asks for {sha256}. "
            "Restore the files, or say the new digest: scores are not comparable with those of the other model."
        )
    try:
        shape, tensors = _shape(_object(held["config.json"])), _tensors(held["model.safetensors"])
        vocabulary = {word: number for number, word in enumerate(held["vocab.txt"].decode().splitlines())}
        lower = bool(_object(held["tokenizer_config.json"]).get("do_lower_case", True))
        bert = Bert(shape, tensors, by_first=_by_first(held))
        pieces = WordPiece(vocabulary, lower=lower)
        bert.vector([len(vocabulary) - 1] * shape.longest)  # what does not fit together shows here
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise UsageError(f"{_shown(path)}: no model that can be read ({why}). {_WANTED}") from None
    pools = ThreadpoolController()
    return _remembering(bert, pieces.numbers, shape), lambda: pools.limit(limits=1)


def _remembering(
    bert: Bert, numbers: Callable[[str, int], list[int]], shape: Shape
) -> Callable[[str], NDArray[np.float32]]:
    return lru_cache(maxsize=REMEMBERED)(lambda text: bert.vector(numbers(text, shape.longest)))


def digest(held: Mapping[str, bytes]) -> str:
    """The digest of a model: the sha256 of what ``sha256sum`` prints of its files, in the order of :data:`FILES`."""
    lines = [f"{hashlib.sha256(held[name]).hexdigest()}  {name}\n" for name in FILES if name in held]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _files(path: str) -> dict[str, bytes]:
    held = {name: _bytes(os.path.join(path, name)) for name in FILES[1:]}  # noqa: PTH118
    pooling = os.path.join(path, POOLING)  # noqa: PTH118
    return {POOLING: _bytes(pooling), **held} if os.path.lexists(pooling) else held


def _bytes(path: str) -> bytes:
    """The bytes of a plain file: a pipe or a device would never end."""
    try:
        with open(path, "rb", opener=_unblocked) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST:
                raise UsageError(f"{_shown(path)}: no plain file of at most 2 GiB. {_WANTED}")
            return file.read(_MOST)
    except OSError as error:
        raise UsageError(f"{_shown(path)}: cannot be read ({error.strerror}). {_WANTED}") from None


def _unblocked(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _shown(path: str) -> str:
    return one_line(path, 200)


def _object(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise TypeError("a configuration that is no object")
    return found


def _shape(config: Mapping[str, Any]) -> Shape:
    from rag_eval.semantic.bert import Shape

    said = {name: config.get(name, usual) for name, usual in _UNDERSTOOD.items()}
    if said != _UNDERSTOOD:
        raise ValueError(f"a model of another kind: {said}")
    longest = min(_LONGEST, int(config["max_position_embeddings"]))
    return Shape(
        int(config["num_hidden_layers"]), int(config["num_attention_heads"]), float(config["layer_norm_eps"]), longest
    )


def _by_first(held: Mapping[str, bytes]) -> bool:
    """Whether the first piece speaks for the text; else the mean of all does."""
    said = _object(held[POOLING]) if POOLING in held else {}
    modes = {name for name, on in said.items() if name.startswith("pooling_mode_") and on is True}
    if modes <= {"pooling_mode_mean_tokens"}:
        return False
    if modes == {"pooling_mode_cls_token"}:
        return True
    raise ValueError(f"pooled in a way that is not known: {', '.join(sorted(modes))}")


def _tensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a safetensors file: a JSON header of names, shapes and places, and numbers behind it."""
    import numpy as np

    start = _HEADER + int.from_bytes(data[:_HEADER], "little")
    found: dict[str, NDArray[np.float32]] = {}
    for name, about in _object(data[_HEADER:start]).items():
        if name == "__metadata__" or about["dtype"] not in _TYPES:
            continue
        first, last = about["data_offsets"]
        numbers = np.frombuffer(data[start + first : start + last], _TYPES[about["dtype"]])
        found[name.removeprefix("bert.")] = numbers.reshape(about["shape"]).astype(np.float32)
    return found


_TYPES = {"F32": "<f4", "F16": "<f2"}
_UNDERSTOOD = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_WANTED = (
    "groundedness.model.path is a folder with config.json, model.safetensors, tokenizer_config.json and vocab.txt of a "
    "sentence encoder of BERT's form."
)
