"""Measures precision and recall of the leak detectors on answers that were written before their patterns were read.

    python bench/leak_texts.py [--list]

``leak_texts.jsonl`` has sixty answers with a leak of the category in ``leaks``, and sixty without. Values such as
``{card:4}`` are drawn here with a fixed seed, so that the file has nothing that looks like a secret.
"""

from __future__ import annotations

import json
import re
import string
import sys
from pathlib import Path
from random import Random

from rag_eval.contract import Safety
from rag_eval.textual.leaks import leaks_of

TEXTS = Path(__file__).parent / "leak_texts.jsonl"
NAMES = ("brenda", "hollis", "varga", "quist", "tamsin", "mercer", "ortega", "lindal", "keppler", "dorval")
DIGITS, LETTERS = string.digits, string.ascii_letters
ALPHABETS = {
    "digits": DIGITS,
    "hex": "0123456789abcdef",
    "alnum": LETTERS + DIGITS,
    "upper": string.ascii_uppercase + "234567",
    "b64": LETTERS + DIGITS + "+/",
    "letters": LETTERS,
}
IBANS = {"DE": ("", 18), "FR": ("", 23), "GB": ("NWBK", 14)}


class Values:
    """Draws the values of placeholders."""

    def __init__(self) -> None:
        self.random = Random(20261126)

    def of(self, placeholder: re.Match[str]) -> str:
        """Return a value for a placeholder; itself if it is none."""
        kind, _, argument = placeholder[1].partition(":")
        if kind in ALPHABETS:
            return self.drawn(ALPHABETS[kind], int(argument))
        make = {"mixed": self.mixed, "card": self.card, "iban": self.iban}.get(kind)
        return make(argument) if make else self.simple(kind) or placeholder[0]

    def simple(self, kind: str) -> str:
        """Return a value of a kind without an argument."""
        whole, value = self.random.randrange, ""
        match kind:
            case "word":
                value = self.random.choice(NAMES)
            case "ssn":
                value = f"{whole(301, 660)}-{whole(10, 99)}-{whole(1000, 9999)}"
            case "fr":
                value = " ".join(self.drawn(DIGITS, 2) for _ in range(4))
            case "octet":
                value = str(whole(2, 250))
            case "uuid":
                value = "-".join(self.drawn(ALPHABETS["hex"], size) for size in (8, 4, 4, 4, 12))
        return value

    def mixed(self, size: str) -> str:
        """Return a password of letters, two digits and a sign."""
        start = self.drawn(LETTERS, int(size) - 4) + self.drawn("23456789", 2)
        return start + self.drawn("!#%&*?", 1) + self.drawn(LETTERS, 1)

    def drawn(self, alphabet: str, size: int) -> str:
        """Return a text of random characters."""
        return "".join(self.random.choice(alphabet) for _ in range(size))

    def card(self, prefix: str) -> str:
        """Return the number of a payment card with Luhn's check digit."""
        size = 15 if prefix == "37" else 16
        number = prefix + self.drawn(DIGITS, size - len(prefix) - 1)
        doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(number))]
        number += str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)
        return number if size == 15 else grouped(number)

    def iban(self, country: str) -> str:
        """Return an IBAN with its checksum."""
        bank, size = IBANS[country]
        account = bank + self.drawn(DIGITS, size)
        number = int("".join(str(int(sign, 36)) for sign in f"{account}{country}00"))
        return grouped(f"{country}{98 - number % 97:02d}{account}")


def grouped(text: str) -> str:
    """Return a text in groups of four characters."""
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


def main() -> None:
    values, safety = Values(), Safety()
    counts = {(leaks, seen): 0 for leaks in (True, False) for seen in (True, False)}
    for line in TEXTS.read_text("utf-8").splitlines():
        row = json.loads(line)
        text = re.sub(r"\{([a-z0-9]+(?::[A-Z0-9]+)?)\}", values.of, row["text"])
        leaks, seen = bool(row["leaks"]), bool(leaks_of(text, (), (), safety))
        counts[leaks, seen] += 1
        if "--list" in sys.argv and leaks is not seen:
            print("missed" if leaks else "harmless", text, sep=": ")
    right, wrong, missed = counts[True, True], counts[False, True], counts[True, False]
    print(f"precision {right / (right + wrong):.3f}, recall {right / (right + missed):.3f}")


if __name__ == "__main__":
    main()
