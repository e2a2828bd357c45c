"""A tiny encoder with weights by chance, and BERT's forward pass in plain Python: slow, and easy to check."""

import json
import math
import random
import struct

WORDS = "[PAD] [UNK] [CLS] [SEP] the par ##cel ##s weigh 20 25 kg . , ##kg rain".split()
SIZE, WIDE, HEADS, LAYERS, LONGEST, EPSILON = 8, 12, 2, 2, 16, 1e-12
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": EPSILON,
    "max_position_embeddings": LONGEST,
}


def tensors(seed=7):
    """Names of tensors, each with its rows (a list of numbers for an offset)."""
    chance = random.Random(seed)

    def numbers(count):
        return [struct.unpack("<f", struct.pack("<f", chance.gauss(0, 0.7)))[0] for _ in range(count)]

    def linear(name, into, out):
        return {f"{name}.weight": [numbers(into) for _ in range(out)], f"{name}.bias": numbers(out)}

    def norm(name):
        return {f"{name}.weight": numbers(SIZE), f"{name}.bias": numbers(SIZE)}

    counts = {"word": len(WORDS), "position": LONGEST, "token_type": 2}
    found = {f"embeddings.{n}_embeddings.weight": [numbers(SIZE) for _ in range(c)] for n, c in counts.items()}
    found |= norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            found |= linear(f"{at}attention.self.{part}", SIZE, SIZE)
        found |= linear(f"{at}attention.output.dense", SIZE, SIZE) | norm(f"{at}attention.output.LayerNorm")
        found |= linear(f"{at}intermediate.dense", SIZE, WIDE) | linear(f"{at}output.dense", WIDE, SIZE)
        found |= norm(f"{at}output.LayerNorm")
    return found


def safetensors(held):
    """The bytes of a safetensors file."""
    header, body = {}, b""
    for name, rows in held.items():
        flat = [number for row in rows for number in row] if isinstance(rows[0], list) else rows
        shape = [len(rows), len(rows[0])] if isinstance(rows[0], list) else [len(rows)]
        data = struct.pack(f"<{len(flat)}f", *flat)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + body


def write_model(folder, seed=7, **config):
    """The files of a tiny model in ``folder``, which is made."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}), "utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}', "utf-8")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(tensors(seed)))
    return folder


def plain_vector(held, pieces, *, by_first=False):
    """The vector of a text, given by the numbers of its pieces, as the paper has it."""
    kinds = held["embeddings.token_type_embeddings.weight"][0]
    words, places = (held[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
    x = [_sum(words[number], places[place], kinds) for place, number in enumerate(pieces)]
    x = [_normed(row, held, "embeddings.LayerNorm") for row in x]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        mixed = _attended(x, held, f"{at}attention.self.")
        out = [_times(row, held, f"{at}attention.output.dense") for row in mixed]
        x = [_normed(_sum(*rows), held, f"{at}attention.output.LayerNorm") for rows in zip(x, out, strict=True)]
        wide = [[_gelu(number) for number in _times(row, held, f"{at}intermediate.dense")] for row in x]
        out = [_times(row, held, f"{at}output.dense") for row in wide]
        x = [_normed(_sum(*rows), held, f"{at}output.LayerNorm") for rows in zip(x, out, strict=True)]
    found = x[0] if by_first else [sum(column) / len(x) for column in zip(*x, strict=True)]
    length = math.sqrt(sum(number * number for number in found))
    return [number / length for number in found]


def _attended(x, held, at):
    asked, offered, held_out = ([_times(row, held, f"{at}{part}") for row in x] for part in ("query", "key", "value"))
    size = SIZE // HEADS
    rows = [[] for _ in x]
    for first in range(0, SIZE, size):
        cut = slice(first, first + size)
        for row, query in zip(rows, asked, strict=True):
            scores = [_dot(query[cut], key[cut]) / math.sqrt(size) for key in offered]
            powers = [math.exp(score) for score in scores]
            shares = [power / sum(powers) for power in powers]
            row += [_dot(shares, column) for column in zip(*[value[cut] for value in held_out], strict=True)]
    return rows


def _sum(*rows):
    return [sum(column) for column in zip(*rows, strict=True)]


def _dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def _times(row, held, name):
    pairs = zip(held[f"{name}.weight"], held[f"{name}.bias"], strict=True)
    return [_dot(weights, row) + offset for weights, offset in pairs]


def _normed(row, held, name):
    mean = sum(row) / len(row)
    spread = math.sqrt(sum((number - mean) ** 2 for number in row) / len(row) + EPSILON)
    scales = zip(row, held[f"{name}.weight"], held[f"{name}.bias"], strict=True)
    return [(number - mean) / spread * scale + offset for number, scale, offset in scales]


def _gelu(number):
    return number * (1 + math.erf(number / math.sqrt(2))) / 2
