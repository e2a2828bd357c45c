"""The forward pass of BERT (Devlin et al. 2019) over one text at a time, in float32 on one thread.

One text at a time: what a text gives hangs on nothing that is read beside it.
"""

from __future__ import annotations

import numpy as np

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

# erf to 1.5e-7: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26
_ERF = 0.3275911, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


class Shape(NamedTuple):
    """What config.json says of the model: its layers, the heads of each, and what is added to a variance."""

    layers: int
    heads: int
    epsilon: float
    longest: int  # pieces of a text


class Bert:
    """An encoder: texts as numbers of pieces in, vectors of length 1 out."""

    def __init__(self, shape: Shape, tensors: Mapping[str, Array], *, by_first: bool) -> None:
        self._shape, self._by_first = shape, by_first
        self._words = tensors["embeddings.word_embeddings.weight"]
        kinds = tensors["embeddings.token_type_embeddings.weight"]
        self._places = tensors["embeddings.position_embeddings.weight"] + kinds[0]
        self._scale = _pair(tensors, "embeddings.LayerNorm")
        self._layers = [_Layer.of(tensors, f"encoder.layer.{number}.") for number in range(shape.layers)]

    def vector(self, numbers: Sequence[int]) -> Array:
        """The vector of a text: the mean over its pieces, or that of the first, of length 1."""
        x = _normed(self._words[list(numbers)] + self._places[: len(numbers)], self._scale, self._shape.epsilon)
        for layer in self._layers:
            x = layer.applied(x, self._shape)
        found: Array = x[0] if self._by_first else x.mean(axis=0)
        return found / max(float(np.sqrt(found @ found)), 1e-12)


class _Layer(NamedTuple):
    """A layer; each field holds weights and offset."""

    mixed: tuple[Array, Array]
    out: tuple[Array, Array]
    out_scale: tuple[Array, Array]
    wide: tuple[Array, Array]
    narrow: tuple[Array, Array]
    scale: tuple[Array, Array]

    @classmethod
    def of(cls, tensors: Mapping[str, Array], name: str) -> _Layer:
        parts = [_linear(tensors, f"{name}attention.self.{part}") for part in ("query", "key", "value")]
        mixed = np.hstack([weight for weight, _ in parts]), np.hstack([offset for _, offset in parts])
        return cls(
            mixed,
            _linear(tensors, f"{name}attention.output.dense"),
            _pair(tensors, f"{name}attention.output.LayerNorm"),
            _linear(tensors, f"{name}intermediate.dense"),
            _linear(tensors, f"{name}output.dense"),
            _pair(tensors, f"{name}output.LayerNorm"),
        )

    def applied(self, x: Array, shape: Shape) -> Array:
        x = _normed(x + _times(self._attended(x, shape.heads), self.out), self.out_scale, shape.epsilon)
        return _normed(x + _times(_gelu(_times(x, self.wide)), self.narrow), self.scale, shape.epsilon)

    def _attended(self, x: Array, heads: int) -> Array:
        """Each piece as a mixture of all, by heads."""
        count, size = x.shape
        asked, offered, held = _times(x, self.mixed).reshape(count, 3, heads, size // heads).transpose(1, 2, 0, 3)
        scores = asked @ offered.transpose(0, 2, 1) * np.float32((size // heads) ** -0.5)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixture = shares / shares.sum(axis=-1, keepdims=True) @ held
        found: Array = mixture.transpose(1, 0, 2).reshape(count, size)
        return found


def _linear(tensors: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    weight, offset = _pair(tensors, name)
    return np.ascontiguousarray(weight.T), offset


def _pair(tensors: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _times(x: Array, by: tuple[Array, Array]) -> Array:
    found: Array = x @ by[0] + by[1]
    return found


def _normed(x: Array, scale: tuple[Array, Array], epsilon: float) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    found: Array = x / spread * scale[0] + scale[1]
    return found


def _gelu(x: Array) -> Array:
    z = np.abs(x) * np.float32(0.5**0.5)
    slope, factors = _ERF
    t = 1 / (1 + np.float32(slope) * z)
    series: Any = np.float32(0)
    for factor in factors:
        series = (series + np.float32(factor)) * t
    erf = np.copysign(1 - series * np.exp(-z * z), x)
    found: Array = x * np.float32(0.5) * (1 + erf)
    return found
