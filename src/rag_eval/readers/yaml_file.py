"""YAML read as strictly as JSON: no aliases, tags, repeated keys or odd numbers; every value has its position.

Numbers with a point stay :class:`~decimal.Decimal`, as written: a threshold of 0.80 is 4/5, not the nearest float.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml
from msgspec import Struct

from rag_eval.common.escaping import one_line
from rag_eval.readers.source import Reader
from rag_eval.readers.strict_json import JsonError, decode, escape_key

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)?\.[0-9]+|-?(0|[1-9][0-9]*)\.", re.ASCII)
_DEPTH = 32
_OPENING = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING = yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken
_CONSTANTS = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() in ("true", "yes", "on"),
}


class YamlError(JsonError):
    """An error in a YAML text, with its position."""


class YamlDocument(Struct, frozen=True):
    """The value of a YAML text and the position (line, column) of every value in it by its JSON pointer."""

    value: Any
    positions: dict[str, tuple[int, int]]

    def position(self, pointer: str) -> tuple[int, int]:
        """Return the position of a pointer, or of the closest value around it."""
        while pointer not in self.positions and pointer:
            pointer = pointer.rpartition("/")[0]
        return self.positions.get(pointer, (1, 1))


def parse(text: str) -> YamlDocument:
    """Return the one document of ``text``; an empty text is an empty mapping. Raise :class:`YamlError`."""
    # libyaml would report errors while it reads on, and give the position in bytes.
    if match := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
        raise YamlError(f"U+{ord(match[0]):04X} is not allowed in YAML", "Remove it.", column, line)
    positions: dict[str, tuple[int, int]] = {}
    try:
        _check_tokens(text)
        node = _LOADER(text).get_single_node()
    except yaml.composer.ComposerError as error:
        raise _refusal(error.problem_mark, "a second document begins here", "Keep one document per file.") from None
    except yaml.MarkedYAMLError as error:
        line, column = _position(error.problem_mark or error.context_mark)
        message = f"not valid YAML: {one_line(error.problem or error.context or 'cannot be read', 80)}"
        hint = "Check indentation, quotes and colons on this line."
        if "".join(text.splitlines()[line - 1 : line]).startswith("\t", column - 1):
            message, hint = "a tab where YAML requires spaces", "Replace it by spaces."
        raise YamlError(message, hint, column, line) from None
    value = None if node is None else _value(node, "", positions)
    return YamlDocument({} if value is None else value, positions)


def read_mapping(reader: Reader, path: str) -> dict[str, Any]:
    """Return the mapping in a file, with plain floats; an empty one, with a problem in the ledger, for another file."""
    data = reader.read(path)
    if data is None:
        return {}
    try:
        value = parse(decode(data)).value
    except JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return {}
    if not isinstance(value, dict):
        reader.ledger.problem(path, 0, "", "must be a mapping", "Write lines such as name: value")
        return {}
    plain: dict[str, Any] = _plain(value)
    return plain


def _plain(value: Any) -> Any:
    """Return a value with a float for each :class:`~decimal.Decimal`."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def _check_tokens(text: str) -> None:
    """Refuse anchors, aliases, tags and deep nesting before the parser resolves or descends into them."""
    depth = 0
    for token in yaml.scan(text, Loader=_LOADER):
        if isinstance(token, (yaml.AnchorToken, yaml.AliasToken)):
            raise _refusal(token.start_mark, "anchors and aliases are not allowed", "Write the value itself.")
        if isinstance(token, yaml.TagToken):
            raise _refusal(token.start_mark, "tags are not allowed", "Remove the tag that begins with '!'.")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > _DEPTH + 1:
            raise _refusal(token.start_mark, f"nested deeper than {_DEPTH} levels", "Flatten the value.")


def _value(node: Any, pointer: str, positions: dict[str, tuple[int, int]]) -> Any:
    """Return the value of a node, and add the positions in it."""
    positions[pointer] = _position(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, f"{pointer}/{index}", positions) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    value: dict[str, Any] = {}
    for key_node, item in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _refusal(key_node.start_mark, "a key that is not text", "Use a plain name as the key.")
        key = str(key_node.value)
        if key in value:
            raise _refusal(key_node.start_mark, f"the key '{one_line(key, 60)}' occurs twice", "Keep one of them.")
        below = f"{pointer}/{escape_key(key)}"
        value[key] = _value(item, below, positions)
        positions[below] = _position(key_node.start_mark)
    return value


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.tag not in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        return _CONSTANTS.get(node.tag, str)(text)
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    hint = "Write it like 5 or 0.80, or in quotes if it is text."
    raise _refusal(node.start_mark, f"'{one_line(text, 40)}' is not a plain number", hint)


def _position(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _refusal(mark: Any, message: str, hint: str) -> YamlError:
    line, column = _position(mark)
    return YamlError(message, hint, column, line)
