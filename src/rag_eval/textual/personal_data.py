"""Personal data by its form: mail addresses, phone numbers, US social security numbers, cards, IBANs."""

from __future__ import annotations

import re
from collections.abc import Iterator

Spans = Iterator[tuple[int, int]]

# Compiled at first use, by re itself: most runs need few of them.
_MAIL = (
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}"
    r"@(?:[A-Za-z0-9-]{1,63}\.){1,8}([A-Za-z]{2,24})(?![A-Za-z0-9-])"
)
_FILES = frozenset("png jpg jpeg gif svg webp avif ico pdf js css json ts py md txt html zip".split())
"""Endings of files, which look like the end of an address: icon@2x.png."""

_CREDENTIALS = 130  # characters of a URL before the host

_GAPS = b" .-/()"
_FIGURES = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x41 if 0x41 <= byte <= 0x5A else byte for byte in range(256))
"""All figures as 0 and all capital letters as A, of a text's bytes."""
_GAP = r"[ .\-/()]{0,2}"
_BEFORE, _AFTER = r"(?<![\w.,:+/\-])", r"(?![\w\-]|[.,:/][0-9])"
_INTERNATIONAL = rf"(?<![\w+.,])\+[1-9](?:{_GAP}[0-9]){{7,14}}(?![0-9])"
_INTERNATIONAL_00 = rf"{_BEFORE}00[1-9][0-9]{{0,2}}(?=[ \-/(])(?:{_GAP}[0-9]){{6,13}}(?![0-9])"
_AMERICAN = (
    rf"{_BEFORE}(?:1[ .\-])?"
    rf"(?:\([2-9][0-9]{{2}}\) ?[2-9][0-9]{{2}}[\-. ]|[2-9][0-9]{{2}}([\-.])[2-9][0-9]{{2}}\1)[0-9]{{4}}{_AFTER}"
)
_PAIRS = rf"{_BEFORE}0[1-9](?:([ .\-])[0-9][0-9])(?:\1[0-9][0-9]){{3}}{_AFTER}"
_NATIONAL = rf"{_BEFORE}\(?0[1-9][0-9]{{1,4}}\)?(?: ?/ ?| )[0-9]{{2,9}}(?: [0-9]{{2,5}}){{0,3}}{_AFTER}"
_HYPHENED = rf"{_BEFORE}0[1-9][0-9]{{0,3}}-[0-9]{{1,4}}-[0-9]{{4}}{_AFTER}"
_ANNOUNCED = (
    r"(?i)(?<!\w)(?:tel(?:ephone|efon|[ée]fono|[ée]phone)?|phone|mobile|cell|fax|whatsapp|hotline|mobil|handy"
    r"|call(?: us| me| him| her| them)? (?:at|on|under))\.?(?: (?:no|nr|number|nummer|is|at|us|under)\b\.?){0,3}"
    r"[ .:#=]{0,3}(\(?[0-9](?:[ \-/()]{0,2}[0-9]){6,14})(?!\w|[.,:][0-9])"
)
_NO_PHONE = (
    r"(?i)(?:order|part|case|ticket|invoice|ref(?:erence)?|sku|serial|item|article|model|account|customer|tracking|product"
    r"|batch|patent|docket|claim|policy|bestell|auftrags?|rechnungs?|artikel|kunden|commande|facture|pedido|factura|isbn)"
    r"[\s-]?(?:no|nr|num(?:ber|mer|[ée]ro)?|id|code)?\.?\s{0,2}[:#=]?\s{0,2}(?:is\s)?\Z"
)
"""Words before the number of an order, a part or a case."""
_CONTEXT = 40  # characters before a number that are read
_DATE = (
    r"(?:19|20)[0-9][0-9][ \-/](?:0?[1-9]|1[0-2])[ \-/][0-9]{1,2}(?:\D.*)?|[0-9]{1,2}[ \-/][0-9]{1,2}[ \-/][0-9]{2,4}"
)

_SSN = r"(?<![\w\-.])(?!000|666|9[0-9][0-9])[0-9]{3}-(?!00)[0-9][0-9]-(?!0000)[0-9]{4}(?![\w\-]|\.[0-9])"

_STATED_SSN = r"(?i)(?:\bssn|social security (?:number|no))\W{0,3}(?:is )?\W{0,3}((?!000|666|9)[0-9]{9})(?![\w\-])"

_CARD = (
    r"(?<![\w.,+/\-])(?:[0-9]{13,19}|[0-9]{4}([ \-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?"
    r"|[0-9]{4}([ \-])[0-9]{6}\2[0-9]{4,5})(?![\w\-]|[.,][0-9])"
)
_ISSUERS = (
    ((13, 16, 19), ((4, 4),)),
    ((16,), ((51, 55), (2221, 2720))),
    ((15,), ((34, 34), (37, 37))),
    ((16, 19), ((6011, 6011), (644, 649), (65, 65), (3528, 3589), (62, 62))),
    ((14, 16, 19), ((300, 305), (36, 36), (38, 39))),
)
"""Lengths, and ranges of the first digits, of Visa; Mastercard; American Express; Discover, JCB, UnionPay; Diners."""

_IBAN = r"(?<![A-Za-z0-9])[A-Z]{2}[0-9][0-9](?: ?[A-Z0-9]){11,30}"
_IBAN_LENGTHS = {
    country: int(entry[2:])
    for entry in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 ES24 FI18 FO18 FR27 "
        "GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IS26 IT27 JO30 KW30 KZ20 LB28 LI21 LT20 LU20 LV21 MC27 MD24 "
        "ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TN24 TR26 UA29 "
        "VA22 VG24 XK20"
    ).split()
    for country in (entry[:2],)
}


def with_at_sign(text: str) -> bool:
    """Return whether a text may have an address."""
    return "@" in text


def with_long_number(text: str) -> bool:
    """Return whether a text has seven digits with only gaps between them, as every phone and card number has."""
    return b"0000000" in text.encode(errors="replace").translate(_FIGURES, _GAPS)


def with_account(text: str) -> bool:
    """Return whether a text may have an IBAN: two capital letters and two digits."""
    return b"AA00" in text.encode(errors="replace").translate(_FIGURES)


def mail_addresses(text: str) -> Spans:
    """Yield addresses with a domain that ends in letters, except ``git@`` and files such as icon@2x.png."""
    for match in re.finditer(_MAIL, text):
        before = text[max(0, match.start() - _CREDENTIALS) : match.start()].rpartition("://")
        in_url = before[1] and not any(sign in before[2] for sign in " /\n\t")  # user:password@host
        if match[1].lower() not in _FILES and not match[0].startswith("git@") and not in_url:
            yield match.span()


def phone_numbers(text: str) -> Spans:
    """Yield numbers in the form of a phone number, or after a word such as ``tel.``.

    International with ``+`` or ``00`` and a gap; North American in 3-3-4; French in pairs; with a leading zero, a gap
    and nine to twelve digits; Japanese with two hyphens.
    """
    reached = 0
    for start, end in sorted(_phone_spans(text)):
        if start >= reached:
            yield start, end
            reached = end


def social_security_numbers(text: str) -> Spans:
    """Yield numbers such as ``123-45-6789`` in the assigned ranges; nine digits in a row may be any number."""
    yield from (match.span() for match in re.finditer(_SSN, text))
    yield from (match.span(1) for match in re.finditer(_STATED_SSN, text))


def card_numbers(text: str) -> Spans:
    """Yield 13 to 19 digits, in groups or in a row, in an issuer's range and with Luhn's check digit."""
    for match in re.finditer(_CARD, text):
        digits = _digits(match[0])
        if _issued(digits) and luhn(digits):
            yield match.span()


def ibans(text: str) -> Spans:
    """Yield a country code, the country's number of characters, and a right checksum (ISO 13616)."""
    for match in re.finditer(_IBAN, text):
        span = _account(match[0])
        if span:
            yield match.start(), match.start() + span


def luhn(digits: str) -> bool:
    """Return whether the last digit is Luhn's check digit of the others (ISO/IEC 7812-1)."""
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _phone_spans(text: str) -> Spans:
    by_form = [match for match in re.finditer(_INTERNATIONAL, text) if _is_international(match[0])]
    by_form += [*re.finditer(_INTERNATIONAL_00, text), *re.finditer(_AMERICAN, text), *re.finditer(_PAIRS, text)]
    by_form += [match for match in re.finditer(_NATIONAL, text) if 9 <= len(_digits(match[0])) <= 12]
    by_form += [match for match in re.finditer(_HYPHENED, text) if 10 <= len(_digits(match[0])) <= 11]
    for match in by_form:
        if not re.search(_NO_PHONE, text[max(0, match.start() - _CONTEXT) : match.start()]):
            yield match.span()
    yield from (match.span(1) for match in re.finditer(_ANNOUNCED, text) if not re.fullmatch(_DATE, match[1]))


def _is_international(number: str) -> bool:
    """Return whether a number is no amount such as ``+12 000 000``, and is assigned by the North American plan."""
    digits, groups = _digits(number), re.findall(r"[0-9]+", number)
    if digits[0] == "1":
        return len(digits) == 11 and digits[1] in "23456789" and digits[4] in "23456789"
    amount = len(digits) < 10 and all(len(group) == 3 for group in groups[1:])
    return not amount and bool(digits[1:].strip("0"))


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _issued(digits: str) -> bool:
    return any(
        len(digits) in lengths and any(low <= int(digits[: len(str(low))]) <= high for low, high in ranges)
        for lengths, ranges in _ISSUERS
    )


def _account(text: str) -> int:
    """Return the length of an account number at the start of ``text``, with spaces; 0 without one."""
    length, positions = _IBAN_LENGTHS.get(text[:2], 0), [place for place, sign in enumerate(text) if sign != " "]
    if not length or len(positions) < length or text[positions[length - 1] + 1 : positions[length - 1] + 2].isalnum():
        return 0
    number = "".join(text[place] for place in positions[:length])
    turned = "".join(str(int(sign, 36)) for sign in number[4:] + number[:4])
    return positions[length - 1] + 1 if int(turned) % 97 == 1 else 0
