"""Kept word lists: what says nothing, what denies, what weakens, what counts, and what means the same.

English, and small on purpose: a longer list finds more and errs more. Words of other languages are matched by their
letters alone, except for the negations and hedges listed here.
"""

from __future__ import annotations

from rag_eval.text import STOP_WORDS

SELF = frozenset("i me my mine myself we us our ours you your yours m".split())
"""A text that speaks of itself or to its reader says something that a source seldom holds: these words count."""

_FRAGMENTS = "s n ll ve re d don doesn didn isn wasn aren weren won wouldn couldn shouldn haven hasn hadn ca wo"
_OTHERS = (
    # German, French, Spanish, Italian, Portuguese, Dutch, Russian: articles, prepositions, forms of to be
    "der die das den dem des ein eine einen einem einer und oder ist sind war waren wird werden wurde wurden hat haben "
    "von mit zu zum zur im am für auf bei aus als auch es sich le la les un une et ou est sont été était du aux ce "
    "cette qui que il elle ils elles dans sur pour par avec el los las una y o es son fue fueron del al por con para "
    "su sus lo gli uno ed è sono di da nel nella che os um uma e são foi ao na em het een van zijn werd "
    "и в во на с со к по из за от до для что это как он она они был была было были а но же у о об"
)
SAID = "×"
"""The key of a magnitude whose value is in the number before it: it says nothing more."""
FUNCTION = (STOP_WORDS | frozenset(_FRAGMENTS.split()) | frozenset(_OTHERS.split()) | {SAID}) - SELF
"""Words that say little about content: they count for a third, and only beside the words that they go with."""

NEGATIONS = frozenset(
    "not no never none nor neither without nobody nothing nowhere fails failed unable "
    "nicht kein keine keinen keiner nie niemals ohne ne pas jamais sans aucun aucune nunca sin ningún ninguna "
    "non mai senza niet geen nooit não sem не нет ни никогда без لا لم لن ليس غير ولا ولم ولن وليس".split()
)
IMPLIED = (
    "excluded excluding except exempt prohibited forbidden banned disallowed disabled refused denied rejected lacks "
    "absent unavailable"
)
"""Words that deny as ``not`` does: "dental care is excluded" bears out that it is not covered."""
HEDGES = frozenset(
    "may might could can possibly perhaps maybe likely probably potentially seemingly apparently allegedly reportedly "
    "presumably supposedly suggests suggest suggested appears appear appeared seems seem seemed believed thought "
    "estimated expected alleged rumored rumoured claimed claims considered would should "
    "vielleicht möglicherweise wahrscheinlich könnte könnten vermutlich peut-être probablement pourrait "
    "quizás probablemente podría forse probabilmente возможно вероятно может".split()
)
DOUBT = HEDGES - frozenset("can would should expected considered".split())
"""Hedges that are about whether something is so: "can" is as often about being able to."""
TENTATIVE = HEDGES - frozenset("can would should could considered expected thought claims claimed".split())
"""Hedges that make a sentence of an answer an inference; the others are too common to mean that alone."""

GENERAL = frozenset("generally typically usually commonly normally often ordinarily traditionally".split())

QUANTIFIERS = {
    word: kind
    for kind, words in {
        "all": "all every each always everyone everything entirely completely whole wholly fully both",
        "most": "most mostly majority mainly largely primarily predominantly",
        "some": "some several many sometimes often various numerous partly partially occasionally certain frequently",
        "few": "few rarely seldom hardly scarcely little minority barely",
        "none": "no none never neither nobody nothing",
        "only": "only solely exclusively merely alone",
    }.items()
    for word in words.split()
}

POWERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Magnitudes: the tens that a number before them is multiplied by."""
AS_WRITTEN = FUNCTION | NEGATIONS | HEDGES | GENERAL | QUANTIFIERS.keys() | POWERS.keys() | {f"{m}s" for m in POWERS}
"""Words that are never folded: "likely" is not "like", and "on May 4, thousands" are not four thousand."""

ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
FIRST = "first second third fourth fifth sixth seventh eighth ninth".split()
NUMBER_WORDS = {
    **{word: str(number) for number, word in enumerate([*ONES, *_TEENS])},
    **{word: str(10 * number) for number, word in enumerate(TENS, 2)},
    **{f"{ten}_{word}": str(10 * n + one) for n, ten in enumerate(TENS, 2) for one, word in enumerate(ONES[1:], 1)},
}
ORDINAL_WORDS = {
    **{word: str(number) for number, word in enumerate([*FIRST, "tenth", "eleventh", "twelfth"], 1)},
    "twentieth": "20",
    **{f"{ten}_{word}": str(10 * n + one) for n, ten in enumerate(TENS, 2) for one, word in enumerate(FIRST, 1)},
}
NUMBERS_ELSEWHERE = {
    "2": "twice zwei deux dos dois duas twee dwa dwie два две двух اثنان اثنين",
    "3": "drei trois tres tre três drie trzy три трех трёх ثلاث ثلاثة",
    "4": "vier quatre cuatro quattro quatro cztery четыре четырех четырёх أربع أربعة",
    "5": "fünf cinq cinco cinque vijf pięć пять пяти خمس خمسة",
    "6": "sechs seis zes sześć шесть шести ست ستة",
    "7": "sieben siete sette zeven siedem семь семи سبع سبعة",
    "8": "acht huit ocho otto oito osiem восемь восьми ثماني ثمانية",
    "9": "neun nueve nove negen dziewięć девять девяти تسع تسعة",
    "10": "zehn dix diez dieci dez tien dziesięć десять десяти عشر عشرة",
    "12": "zwölf douze dodici twaalf двенадцать двенадцати",
    "14": "vierzehn quatorze catorce четырнадцать четырнадцати",
    "15": "fünfzehn quinze quince quindici пятнадцать пятнадцати",
    "20": "zwanzig vingt veinte venti vinte twintig двадцать двадцати",
    "30": "dreißig treinta trenta trinta dertig тридцать тридцати",
}
"""Number words of other languages, without those that English has too: they are looked for where a number lacks."""
MONTHS = "january february march april may june july august september october november december".split()
UNITS = (
    "dozen percent point century decade year month week day hour minute seconds millisecond mile kilometer meter foot "
    "inch mph knot kilogram gram milligram pound ton ounce acre hectare liter milliliter gallon celsius fahrenheit "
    "hertz megahertz gigahertz kilobyte megabyte gigabyte terabyte watt kilowatt megawatt dollar euro yen rupee"
)
"""What numbers are counted in; ``second`` alone is an ordinal."""

CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
"""Words for signs that stand before a number or behind it."""

SHORT_FORMS = {
    "jan": "january", "feb": "february", "apr": "april", "jun": "june", "jul": "july", "aug": "august",
    "sep": "september", "sept": "september", "oct": "october", "nov": "november", "dec": "december",
    "km": "kilometer", "kms": "kilometer", "kilometre": "kilometer", "kilometres": "kilometer", "cm": "centimeter",
    "centimetre": "centimeter", "centimetres": "centimeter", "mm": "millimeter", "metre": "meter", "metres": "meter",
    "kg": "kilogram", "kgs": "kilogram", "kilo": "kilogram", "lb": "pound", "lbs": "pound", "ft": "foot",
    "feet": "foot", "g": "gram", "mg": "milligram", "tonne": "ton", "tonnes": "ton", "oz": "ounce",
    "litre": "liter", "litres": "liter", "ml": "milliliter", "millilitre": "milliliter", "millilitres": "milliliter",
    "ms": "millisecond", "h": "hour", "yr": "year", "yrs": "year", "tb": "terabyte", "kb": "kilobyte",
    "hz": "hertz", "mhz": "megahertz", "ghz": "gigahertz", "kw": "kilowatt", "mw": "megawatt",
    "eur": "euro", "gbp": "pound", "jpy": "yen", "inr": "rupee", "tn": "trillion",
    "mi": "mile", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "secs": "second",
    "pct": "percent", "percentage": "percent", "usd": "dollar", "mn": "million", "bn": "billion", "gb": "gigabyte",
    "mb": "megabyte", "dr": "doctor", "prof": "professor", "st": "saint", "mt": "mount", "govt": "government",
    "dept": "department", "univ": "university", "approx": "approximately", "vs": "versus", "inc": "incorporated",
    "corp": "corporation", "ltd": "limited", "co": "company", "gov": "governor", "sen": "senator", "gen": "general",
    "jr": "junior", "sr": "senior", "etc": "etcetera", "tv": "television", "info": "information", "max": "maximum",
    "ave": "avenue", "rd": "road", "us": "us", "uk": "uk", "est": "established", "pop": "pop", "photo": "photograph",
}  # fmt: skip

IRREGULAR = {
    form: verb
    for verb, forms in {
        "win": "won", "begin": "began begun", "write": "wrote written", "make": "made", "take": "took taken",
        "give": "gave given", "go": "went gone goes", "come": "came", "become": "became", "grow": "grew grown",
        "know": "knew known", "build": "built", "sell": "sold", "tell": "told", "hold": "held", "lead": "led",
        "leave": "left", "lose": "lost", "meet": "met", "pay": "paid", "say": "said", "send": "sent", "spend": "spent",
        "stand": "stood", "teach": "taught", "think": "thought", "buy": "bought", "bring": "brought", "run": "ran",
        "rise": "rose risen", "fall": "fell fallen", "draw": "drew drawn", "drive": "drove driven", "eat": "ate eaten",
        "fly": "flew flown", "break": "broke broken", "choose": "chose chosen", "speak": "spoke spoken",
        "sing": "sang sung", "swim": "swam swum", "wear": "wore worn", "throw": "threw thrown",
        "show": "shown", "keep": "kept", "feel": "felt", "find": "found", "fight": "fought", "catch": "caught",
        "get": "got gotten", "hear": "heard", "lie": "lay lain", "mean": "meant", "sit": "sat", "sleep": "slept",
        "understand": "understood", "bear": "bore born borne", "strike": "struck", "child": "children",
        "man": "men", "woman": "women", "person": "people persons", "tooth": "teeth", "mouse": "mice",
        "life": "lives", "use": "used using", "see": "saw seen",  "wife": "wives",
        "leaf": "leaves", "half": "halves", "die": "died dying dies death deaths",
    }.items()
    for form in forms.split()
}  # fmt: skip

SYNONYMS = {
    other: words.split()[0]
    for words in (
        "start begin commence", "buy purchase acquire", "film movie picture", "car automobile", "help assist aid",
        "end finish conclude", "use utilize utilise", "big large huge", "small little tiny", "fast quick rapid speedy",
        "doctor physician", "author writer", "job occupation profession", "country nation", "illness disease sickness",
        "create produce", "build construct erect", "show display exhibit", "main primary principal chief",
        "important significant", "require need", "allow permit enable", "hard difficult", "easy simple",
        "near close", "famous renowned celebrated", "approximately roughly nearly circa", "kill murder",
        "reduce decrease lower", "increase raise", "method technique", "answer reply respond", "live reside dwell",
        "contain include comprise", "obtain receive", "stop cease halt", "choose select pick", "wealthy rich",
        "ship vessel", "street road", "attorney lawyer", "student pupil", "soccer football", "previous prior former",
        "complete entire whole", "several numerous", "often frequently", "center centre", "color colour",
        "theater theatre", "annual yearly", "locate situate", "consist compose",
    )
    for other in words.split()[1:]
}  # fmt: skip
