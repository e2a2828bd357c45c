"""The engine of groundedness: what supports a sentence, in several languages, and the laws that hold for any text."""

import json
from itertools import chain, permutations
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cases import ROOT
from depth import examples
from rag_eval.textual.grounding import evidence, ground, groundedness, supported
from rag_eval.textual.words import keys, words
from seams import Grounding
from table import each_row

SOURCE = (
    "Marie Curie was born in Warsaw in 1867. She shared the 1903 Nobel Prize in Physics with Pierre Curie, and won the "
    "1911 Nobel Prize in Chemistry alone. Some of her notebooks may still be radioactive. She did not patent the "
    "isolation process. The institute employed 1,500 people and spent 15% of its budget on three laboratories."
)
OTHER = "Pierre Curie taught physics in Paris. The street outside was 2.5 km long and was not paved until May 1920."


def score(claim, *chunks):
    return groundedness(ground(claim, chunks or (SOURCE, OTHER)))


def one(claim, *chunks):
    chunks = chunks or (SOURCE, OTHER)
    [checked] = ground(claim, chunks)
    found = evidence(checked, claim, chunks, supported(checked))
    missing, numbers = (tuple([claim[slice(*span)] for span in spans]) for spans in (found.missing, found.made_up))
    return SimpleNamespace(**{**found._asdict(), "missing": missing, "numbers": numbers})


WRONG = {
    "name": ("Marie Curie was born in Warsaw in 1867.", "Marie Curie was born in Vienna in 1867."),
    "name of the chunk": ("Marie Curie was born in Warsaw in 1867.", "Marie Curie was born in Physics in 1867."),
    "number": ("She won the 1911 Nobel Prize in Chemistry.", "She won the 1921 Nobel Prize in Chemistry."),
    "number of the chunk": ("She won the 1911 Nobel Prize in Chemistry.", "She won the 1867 Nobel Prize in Chemistry."),
    "unit": ("The street was 2.5 km long.", "The street was 2.5 miles long."),
    "date": ("It was not paved until May 1920.", "It was not paved until June 1920."),
    "negation": ("She did not patent the isolation process.", "She did patent the isolation process."),
    "new negation": ("Pierre Curie taught physics in Paris.", "Pierre Curie never taught physics in Paris."),
    "quantifier": ("Some of her notebooks may be radioactive.", "All of her notebooks may be radioactive."),
    "role": (
        "Marie Curie shared the prize with Pierre Curie, and won in Chemistry alone.",
        "Chemistry shared the prize with Pierre Curie, and won in Marie Curie alone.",
    ),
    "merged": ("The street outside was 2.5 km long.", "The street outside shared the Nobel Prize."),
    "addition": ("She won the 1911 Nobel Prize.", "She won the 1911 Nobel Prize despite strong opposition."),
    "hedge": ("Her notebooks may still be radioactive.", "Her notebooks are still radioactive."),
}
KEPT = {
    "inflection": "Marie Curie wins the 1911 Nobel Prizes in Chemistry alone.",
    "number word": "The institute spent 15 percent of its budget on 3 laboratories.",
    "thousands": "The institute employed 1500 people.",
    "passive": "The 1911 Nobel Prize in Chemistry was won by her alone.",
    "order": "In 1867, Marie Curie was born in Warsaw.",
    "abbreviation": "She didn't patent the isolation process.",
    "unit in full": "The street outside was 2.5 kilometers long.",
    "synonym": "The institute used 15% of its budget on three laboratories.",
}
AMOUNTS = [
    ("The dose is 2000mg.", "The dose is 2,000 mg.", "The dose is 2000 milligrams."),
    ("It weighs 25kg.", "It weighs 25 kilos.", "It weighs twenty-five kilograms."),
    ("It has 16GB and runs at 5GHz.", "It has 16 gigabytes and runs at 5 GHz."),
    ("It lasts 36h or 90min.", "It lasts 36 hours or 90 minutes."),
    ("It opens at 9am.", "It opens at 9 am."),
    ("It is 10x as large.", "It is 10 x as large."),
    (
        "The fund spent $4.3bn.",
        "The fund spent $4.3 billion.",
        "The fund spent $4.3B.",
        "The fund spent $4,300,000,000.",
    ),
    ("The fund spent $900m.", "The fund spent 900 million dollars.", "The fund spent $900 million."),
    (
        "The fund spent €250k.",
        "The fund spent 250,000 euros.",
        "The fund spent EUR 250,000.",
        "The fund spent 250k €.",
    ),
    ("The fund spent £1.2m.", "The fund spent 1,200,000 pounds.", "The fund spent GBP 1.2 million."),
    ("The fund spent ¥500.", "The fund spent 500 yen."),
    ("It sold 2.5bn cups.", "It sold 2.5 billion cups.", "It sold 2,500,000,000 cups."),
    ("It has 250k users.", "It has 250,000 users.", "It has 250 thousand users."),
    ("It reached 1.4 million homes.", "It reached 1,400,000 homes.", "It reached 1.40 million homes."),
    ("It took twelve thousand steps.", "It took 12,000 steps.", "It took 12 thousand steps."),
    ("It took five hundred thousand steps.", "It took 500,000 steps.", "It took 500k steps."),
    ("It has a hundred rooms.", "It has 100 rooms.", "It has one hundred rooms."),
    ("It took twenty-five days.", "It took 25 days."),
    ("It is the thirty-first house.", "It is the 31st house."),
    ("It holds 1.250,50 liters.", "It holds 1250,5 liters.", "It holds 1,250.50 liters."),
    ("It has 1.000.000 rows.", "It has 1,000,000 rows.", "It has 1 million rows."),
    ("The rate is 3,75 %.", "The rate is 3.75 percent.", "The rate is 3.75 per cent."),
    ("The share is .05 of all.", "The share is 0.05 of all."),
    ("Fire it at 980 °C.", "Fire it at 980 degrees Celsius.", "Fire it at 980℃."),
    ("Add 1½ spoons.", "Add 1.5 spoons."),
    ("Add ½ a spoon.", "Add half a spoon."),
    ("Leave a 30-second pause.", "Leave a pause of 30 seconds."),
    ("It moves 3 liters per second.", "It moves 3 liters in one second."),
    ("The hall seats 35000 people.", "The hall seats 35 000 people.", "The hall seats 35,000 people."),
    ("They sold 1 200 000 cups.", "They sold 1200000 cups.", "They sold 1.2 million cups."),
    ("The part is 2.50 inches wide.", "The part is 2.5 inches wide."),
    ("The shop shuts at 5:30 pm.", "The shop shuts at 5:30 p.m."),
    ("Das Ticket gilt 3 Monate.", "Das Ticket gilt drei Monate."),
    ("Клапан меняют каждые 6 недель.", "Клапан меняют каждые шесть недель."),
    ("يستمر العرض 4 ساعات.", "يستمر العرض أربع ساعات."),
]


@each_row("ways", AMOUNTS)
def test_a_number_is_the_same_however_it_is_written(ways):
    for claim, chunk in permutations(ways, 2):
        if set(keys(claim)) & {"drei", "шесть", "أربع"}:
            continue  # a word is no number that could be made up
        for chunks in ((chunk,), (OTHER, chunk)):
            found = one(claim, *chunks)
            assert (found.supported, found.numbers, found.mismatches) == (True, (), ()), (claim, chunk)
            assert chunks[found.chunk][slice(*found.span)]


@each_row(
    ("claim", "chunk"),
    [
        ("He was twenty-five.", "He was twenty. Five years later, he left."),
        ("The fund spent $4.3bn.", "The fund spent $4.3m."),
        ("It reached 1.4 million homes.", "It reached 1.4 billion homes."),
        ("It took twenty-five days.", "It took twenty days, and five nights."),
        ("It took five thousand steps.", "It took five steps."),
        ("The hall seats 53000 people.", "The hall seats 35 000 people."),
        ("The hall seats 35000 people.", "The hall has 35 doors. It seats 12 000 people."),
        ("The shop shuts at 5:30 pm.", "The shop shuts at 6:30 pm."),
        ("Das Ticket gilt 3 Monate.", "Das Ticket gilt vier Monate."),
    ],
)
def test_another_number_is_made_up_however_it_is_written(claim, chunk):
    assert one(claim, chunk).numbers != ()


@pytest.mark.parametrize("wrong", ["0.7", "0.04", "4"])
def test_a_number_below_one_is_a_number(wrong):
    assert one(f"The error was {wrong} percent.", "The error was 0.4 percent.").numbers == (wrong,)


TYPOGRAPHY = [
    "Par\u200bcels may wei\u200dgh at most 1\u2009240 kg.",
    "\ufeffPar\u00adcels may weigh at \u200emost\u200e 1\u202f240\u00a0kg.",
    "\u2068Parcels\u2069 may weigh at mo\u2060st 1240 kg.",
    "Parcels may weigh __at most__ _1,240 kg_.",
    "Parcels may weigh at most ١٢٤٠ kg.",
    "Ｐａｒｃｅｌｓ may weigh at most １２４０ kg.",
]


@pytest.mark.parametrize("claim", TYPOGRAPHY)
def test_typography_says_nothing(claim):
    assert keys(claim) == keys("Parcels may weigh at most 1240 kg.")


@pytest.mark.parametrize(
    ("date", "read"),
    [
        ("21.05.2016", "21 5 2016"),
        ("1/2", "1 2"),
        ("10.20.30", "10 20 30"),
        ("1.250.000", "1250000"),
        ("May 4,2020", "may 4 2020"),
        ("10,20,30", "10 20 30"),
        ("ports 80,8080", "port 80 8080"),
    ],
)
def test_dates_and_lists_are_several_numbers(date, read):
    assert keys(f"It ran on {date}.") == ["it", "run", "on", *read.split()]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("三年", "3"),
        ("二十五天", "25"),
        ("三千二百元", "3200"),
        ("两万五千人", "25000"),
        ("十二小时", "12"),
    ],
)
def test_a_number_in_chinese_signs_is_a_number(text, number):
    assert keys(f"期限为{text}。")[2] == number


@pytest.mark.parametrize("text", ["十分重要", "5千瓦", "星期三天气", "三分之一", "不锈钢"])
def test_other_words_with_such_signs_are_none(text):
    assert [key for key in keys(text) if key.isdigit() or key == "not"] == [*filter(str.isdigit, text[:1])]


def test_a_year_or_a_day_before_a_magnitude_is_no_factor():
    chunk = "In 2019, million-dollar homes were sold. On July 4, thousands gathered. In the 1990s nobody came."
    assert [one.made_up for one in ground("In 2019, thousands gathered on July 4.", [chunk])] == [()]
    assert one("Nobody came in the 1990s.", chunk).supported is True


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_twin_scores_lower(kind):
    right, wrong = WRONG[kind]
    assert score(wrong) < score(right)


@pytest.mark.parametrize("kind", KEPT)
def test_the_same_in_other_words_is_supported(kind):
    assert one(KEPT[kind]).supported is True


LANGUAGES = {
    "German": (
        "Die Brücke wurde 1892 gebaut. Sie ist 640 Meter lang.",
        "Die Brücke ist 640 Meter lang.",
        "Der Turm ist rot.",
    ),
    "French": (
        "Le musée a été fondé en 1793. L'entrée est gratuite.",
        "Le musée fut fondé en 1793.",
        "Le parc ferme tard.",
    ),
    "Russian": ("Москва является столицей России. Река длинная.", "Столица России — Москва.", "Озеро замёрзло зимой."),
    "Chinese": ("长城建于明朝。它的长度超过两万公里。", "长城建于明朝。", "故宫位于北京。"),
    "Japanese": ("東京は日本の首都です。人口は1400万人です。", "東京は日本の首都です。", "大阪城は有名だ。"),
    "Arabic": ("القاهرة عاصمة مصر. يقع المتحف في وسط المدينة.", "المتحف في وسط المدينة.", "الطقس بارد جدا اليوم."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_languages_are_read(language):
    source, right, wrong = LANGUAGES[language]
    assert one(right, source).supported is True
    assert one(wrong, source).supported is False


def test_evidence_names_the_chunk_the_span_and_what_is_missing():
    found = one("Pierre Curie taught 12 students physics in Berlin.")
    assert (found.chunk, OTHER[slice(*found.span)]) == (1, "Pierre Curie taught physics")
    assert (found.numbers, found.missing) == (("12",), ("12", "students", "Berlin"))
    assert found.supported is False


@each_row(
    ("text", "key", "written"),
    [
        ("Sales rose by 50% within a year. The percentage is high.", "percent", "%"),
        ("It cost $20 then. Thirty dollars are usual now.", "dollar", "$"),
        ("Up to $3,000, or 3000 in all.", "3000", "3,000"),
        ("It cost $900m, some say a million more.", "900000000", "$900m"),
        ("It cost 900 million dollars.", "900000000", "900"),
        ("It cost €20 then, 30 euros now.", "euro", "€"),
        ("It took twenty-five days.", "25", "twenty-five"),
        ("It weighs 25kg, of 30 kg.", "kilogram", "kg"),
        ("Fire it at 980 °C for a day.", "celsius", "°C"),
        ("東京は日本の首都です。", "日本", "日本"),
    ],
)
def test_a_word_knows_its_characters(text, key, written):
    found = next(word for word in words(text) if word.key == key)
    assert text[found.start : found.end] == written


FILLER = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
MISMATCHES = [
    ("The pump waits 30 minutes for each reply.", "The pump waits 30 seconds for each reply.", "unit minutes"),
    ("The pump waits 30 seconds for each reply.", "The pump waits 30 minutes for each reply.", "unit seconds"),
    ("The lower basin is 90 feet deep.", "The lower basin is 90 m deep.", "unit feet"),
    ("Fire the clay at 980 °F for a day.", "Fire the clay at 980 °C (1796 °F) for a day.", "unit °F"),
    ("Fire the clay at 980 degrees for a day.", "Fire the clay at 980 °C for a day.", ""),
    ("The usual dose on a day is 2000mg.", "The usual dose on a day is 2000 g.", "unit mg"),
    ("Loans above £250,000 require an opinion.", "Loans above €250,000 require an opinion.", "unit £"),
    ("The street outside was 2.5 miles long.", OTHER, "unit miles"),
    ("The empty ship weighs 180 t in harbour.", "The empty ship weighs 180 tonnes in harbour.", ""),
    (
        "Students of Curie won the 1867 Nobel Prize.",
        f"Students of Curie won the 1911 Nobel Prize. {FILLER} {FILLER} She was born in 1867.",
        "number 1867",
    ),
    ("She did patent the isolation process.", SOURCE, "negation patent"),
    (
        "Rugby league is not considered the most similar sport to American football.",
        "Rugby league is the most similar sport to American football.",
        "negation similar",
    ),
    (
        "Connect the device to the mains before use.",
        "Do not connect the device to the mains before use.",
        "negation Connect",
    ),
    ("Wash wool above 30 degrees.", "On care: never wash wool above 30 degrees.", "negation Wash"),
    ("You can take the tablets if you have a fever.", "Do not take the tablets if you have a fever.", "negation take"),
    ("The council rejected the extension.", "The council approved the extension.", ""),  # too short to compare
    (
        "The council rejected the tram extension by 31 votes.",
        "The council approved the tram extension by 31 votes.",
        "opposite rejected",
    ),
    ("The museum in Leith opens late in winter.", "The museum in Leith opens late in summer.", "opposite winter"),
    ("Ada left the firm in Leith before the sale.", "Ada left the firm in Leith after the sale.", "opposite before"),
    ("Ada fell ill in Leith before the trip began.", "The trip began after Ada fell ill in Leith.", ""),
    ("この図書館は火曜日が休館です。", "この図書館は月曜日が休館です。", "opposite 火曜"),
    ("合同有效期为五年，自2020年5月1日起。", "合同有效期为三年，自2020年5月1日起。", "unit 年"),
    (
        "All employees receive a yearly bonus.",
        "By the way, not all employees receive a yearly bonus.",
        "negation employees",
    ),
    ("Cats are allowed in the garden.", "Neither dogs nor cats are allowed in the garden.", "negation Cats"),
    ("توجد مواقف للسيارات قرب المدخل.", "المبنى قديم. لا توجد مواقف للسيارات قرب المدخل.", "negation توجد"),
    ("يسمح بالتدخين في الحديقة.", "ولا يسمح بالتدخين في الحديقة.", "negation يسمح"),
    ("Можно мыть прибор водой.", "Никогда не можно мыть прибор водой.", "negation Можно"),
    (
        "The insurance covers scratches from keys.",
        "The battery is covered for 12 months. The insurance does not cover scratches from keys.",
        "negation covers",
    ),
    (
        "The battery is covered for 12 months.",
        "The battery is covered for 12 months. The insurance does not cover scratches from keys.",
        "",
    ),
    (
        "Deleted records are kept for 30 days.",
        "Support can not restore them. For thirty days, deleted records are kept.",
        "",
    ),
    ("Grills are not permitted on the roof.", "Grills are permitted in the yard all year, but not on the roof.", ""),
    (
        "Lamps are disabled at noon.",
        "If none is given, lamps are switched on. Lamps are disabled at noon by default.",
        "",
    ),
    (
        "The difference was not significant.",
        "The difference was significant. No adverse events were recorded.",
        "negation significant",
    ),
    (
        "Compensation is due for delays caused by strikes.",
        "It depends on the distance. No compensation is due for delays caused by strikes.",
        "negation Compensation",
    ),
    ("Die Bearbeitung dauert etwa vier Monate.", "Die Bearbeitung dauert etwa vier Wochen.", "unit Monate"),
    ("La grenouille de Madagascar mesure 11 cm.", "La grenouille de Madagascar mesure 11 mm.", "unit cm"),
    ("The warranty of the pump lasts two years.", "The warranty of the pump lasts 24 months.", ""),
    ("The bridge is 1,200 metres long.", "The bridge is 1.2 km long.", ""),
    ("Revenue rose to $1,420 million.", "Revenue rose to $1.42 billion.", ""),
    ("Carried-over days expire on 31 May.", "Carried-over days expire on 31 March.", "unit May"),
    ("Carried-over days expire on May 31.", "On 31 May, carried-over days expire.", ""),
    ("The film won several awards.", "The film was released in 1968 and won no awards.", "negation awards"),
    ("The harbour never burned.", "The harbour burned twice, in 1702 and in 1755.", "negation burned"),
    (
        "The fee is not waived for students if they apply late.",
        "The fee is waived for students if they apply late.",
        "negation waived",
    ),
    ("If the fee is not waived, students apply late.", "If the fee is waived, students apply late.", ""),
    ("电池在保修范围内。", "设备保修期为两年,电池不在保修范围内。", "negation 在保"),
    ("外壳是不锈钢的。", "设备的外壳是不锈钢的。", ""),
    ("Гарантия не распространяется на стекло и лак.", "Стекло и лак гарантия не покрывает.", ""),
]


@each_row(("claim", "chunk", "mismatch"), MISMATCHES)
def test_a_sentence_that_its_source_denies_or_has_with_another_number_or_unit_is_unsupported(claim, chunk, mismatch):
    found = one(claim, chunk)
    assert (found.supported, " ".join(chain(*found.mismatches))) == (not mismatch, mismatch)


MUSEUM = "The museum was founded in 1921 by Clara Weiss in Vienna."
RULED = "Главный офис компании находится в Казани с 1998 года."


@each_row(
    ("claim", "chunk", "names"),
    [
        ("The museum was founded by Clara Weiss in Salzburg.", MUSEUM, "Salzburg"),
        ("The museum was founded in 1921 by Otto Brandt.", MUSEUM, "Otto Brandt"),
        ("The museum was founded in Graz, Vienna.", MUSEUM, "Graz"),
        ("The museum was founded on 5 March 1921 in Vienna.", MUSEUM.replace("in 1921", "on 1921-03-05"), ""),
        ("The museum was founded in March, in Vienna.", MUSEUM.replace("in 1921", "in May"), "March"),
        ("Le siège est à Marseille depuis 1998.", "Le siège est à Lyon depuis 1998.", "Marseille"),
        ("Главный офис компании находится в Самаре.", RULED, "Самаре"),
        ("Офис компании находится в городе Казань.", RULED, ""),  # another form
        ("In 1921, the old Viennese museum was founded.", MUSEUM, ""),
        ("The museum was founded in 1921 by Clara Maria Weiss.", MUSEUM, ""),  # more of a known name
        ("The museum was founded by Dr. Weiss for the BBC.", MUSEUM, ""),
        ("Berlin has a museum that was founded in 1921.", MUSEUM, ""),  # the first word of a sentence
        ("The Museum Was Founded In Salzburg In 1921.", MUSEUM, ""),  # a title
        ("Теперь музей открыт для Вас.", "Музей открыт.", ""),  # a polite pronoun
        ("Das Museum ist in Salzburg.", "Das Museum ist in Wien.", ""),  # in German all nouns have capitals
    ],
)
def test_a_name_that_neither_chunks_nor_question_have_is_unsupported(claim, chunk, names):
    found = one(claim, chunk)
    assert [word for reason, word in found.mismatches if reason == "name"] == names.split()
    assert not names or found.supported is False


@pytest.mark.parametrize("question", ["Was the museum founded in Salzburg?", "Who founded the Salzburgian museum?"])
def test_a_name_of_the_question_is_not_made_up(question):
    checked = ground("The museum was founded in Salzburg.", [MUSEUM], question)
    assert not checked[0].mismatches


@pytest.mark.parametrize("written", ["don't", "Don't", "don’t", "do n't", "can't", "won't", "isn't", "ain't", "cannot"])
def test_a_contraction_denies_however_it_is_cut(written):
    for text in (written, f"we {written} go", f"it is so, {written}.", f'"{written}"'):
        assert "not" in keys(text)


@pytest.mark.parametrize("written", ["180 t", "T cells", "a T-shirt", "Mr T.", "on t'aime", "y a-t-il", "then t"])
def test_another_t_denies_nothing(written):
    assert "not" not in keys(written)
    assert "t" in keys(written)


def test_the_answer_no_before_a_copy_denies_nothing():
    assert one("Parking costs 5 dollars a day.", "Is it free? No. Parking costs 5 dollars a day.").support == 1
    assert one("Stop.", "Do not stop.").support == 1


def test_a_number_that_is_made_up_is_said_once():
    found = one("She shared the 1909 Nobel Prize in Physics with Pierre Curie.")
    assert (found.numbers, found.mismatches) == (("1909",), ())


STEPS = ("Back up the database", "Stop all workers", "Run the migration")
ITEMS = {
    "point": "{n}. {step}\n",
    "bracket": "({n}) {step}\n",
    "bold": "**{n}. {step}**\n",
    "bold number": "**{n}.** {step}\n",
    "heading": "### {n}. {step}\n",
    "indented": "   {n}. {step}\n",
    "quoted": "> {n}. {step}\n",
    "two levels": "1.{n}. {step}\n",
    "one line": "{n}. {step}. ",
    "key": "{n}\ufe0f\u20e3 {step}\n",
    "step": "Step {n}: {step}.\n",
    "bold step": "**Step {n}:** {step}.\n",
}


@pytest.mark.parametrize("style", [*ITEMS, "said"])
def test_the_numbers_of_a_list_are_no_numbers_of_an_answer(style):
    claim = (
        "".join(ITEMS[style].format(n=n, step=step) for n, step in enumerate(STEPS, 1))
        if style != "said"
        else ("First, back up the database. Second, stop all workers. Thirdly, run the migration.")
    )
    found = ground(claim, [". ".join(STEPS)])
    assert [claim[one.sentence.start : one.sentence.end].strip(".*").lower() for one in found] == [
        *map(str.lower, STEPS)
    ]
    assert [one.made_up for one in found] == [()] * 3


def test_a_number_that_ends_a_sentence_is_no_item():
    assert len(ground("The answer is 12. It is large.", [])) == 2


@given(
    text=st.text(max_size=200)
    | st.sampled_from(["a\0b", "È𠀀è", "ｶﾞ発売中", "1,\0000", "U.S.\0", "caf\u00e9 \u2013 25%", "1½", "$3.5m"])
)
def test_words_are_the_keys_with_their_characters(text):
    assert [word.key for word in words(text)] == keys(text)
    assert all(0 <= word.start < word.end <= len(text) for word in words(text))


def test_a_number_that_stands_elsewhere_in_a_small_form_is_no_evidence():
    filler = " ".join(f"word{letter}" for letter in "abcdefghijkl")
    chunk = f"The team has players. {filler} 7 {filler}"
    assert one("The team has 7 players.", chunk).numbers == ("7",)
    assert one("The team has 7 players.", "The team has 7 players.").numbers == ()


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("Generally, cats sleep.", "general"),
        ("It may rain tomorrow.", "inference"),
        ("It rains.", "assertion"),
        ("A long sentence that only later says usually.", "assertion"),
        ("Here are the steps:", "heading"),
        ("**Key terms:**", "heading"),
        ("步骤如下：", "heading"),
        ("## 3. Weight", "heading"),
        ("Weight: 3 kg", "assertion"),
        ("#1 in the charts", "assertion"),
    ],
)
def test_kinds_of_sentences(claim, kind):
    assert [checked.sentence.kind for checked in ground(claim, [])] == [kind]


def test_the_head_of_a_table_is_a_heading():
    claim = "| Service | Time |\n|---|---|\n| Standard | 3 days |\n"
    assert [one.sentence.kind for one in ground(claim, [])] == ["heading", "assertion"]


def test_numbers_of_headings_are_made_up_all_the_same():
    [checked] = ground("The street was paved 77 days later:", [SOURCE, OTHER])
    assert (supported(checked), len(checked.made_up)) == (None, 1)


def test_general_sentences_count_in_the_value_only():
    assert score("Typically, cats sleep.") == 0
    [checked] = ground("Typically, cats sleep.", [SOURCE])
    assert supported(checked) is None


def test_an_inference_needs_less_than_an_assertion():
    claim = "Her notebooks {} be kept in Paris."
    [sure], [unsure] = ground(claim.format("will"), [SOURCE, OTHER]), ground(claim.format("might"), [SOURCE, OTHER])
    between = Grounding(sure.support + 0.01, unsure.support - 0.01)
    assert (supported(sure, between), supported(unsure, between)) == (False, True)


@pytest.mark.parametrize("claim", ["", "   ", "...", "?!", "\n\n"])
def test_nothing_said_is_nothing_checked(claim):
    assert ground(claim, [SOURCE]) == []
    assert score(claim) is None


@pytest.mark.parametrize("chunks", [(), ("",), ("", "...")])
def test_without_a_source_nothing_is_supported(chunks):
    [checked] = ground("Marie Curie won.", chunks)
    assert (checked.support, supported(checked)) == (0.0, False)


WORDS = st.sampled_from(
    "Anna Bruno river bridge built crossed red 1867 1,500 2.5 12 three not never all some may only the of in and 5% "
    "größe café 東京 Москва المدينة isn't U.S. Jan".split()
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(lambda words: " ".join(words) + ".")
TEXTS = st.lists(SENTENCES, max_size=5).map(" ".join)


@given(claim=TEXTS, chunks=st.lists(TEXTS, max_size=4))
def test_scores_lie_between_0_and_1_and_are_the_same_each_time(claim, chunks):
    numbers = [checked.support for checked in ground(claim, chunks)]
    assert all(0 <= number <= 1 for number in numbers)
    assert numbers == [checked.support for checked in ground(claim, chunks)]


@given(claim=TEXTS, chunks=st.lists(TEXTS, max_size=3), more=TEXTS)
def test_another_chunk_never_lowers_the_support(claim, chunks, more):
    before, after = ground(claim, chunks), ground(claim, [*chunks, more])
    for old, new in zip(before, after, strict=True):
        assert new.support >= old.support - 1e-12


@given(sentences=st.lists(SENTENCES, min_size=1, max_size=6), chunks=st.lists(TEXTS, max_size=2), data=st.data())
def test_a_sentence_copied_from_a_chunk_is_fully_supported(sentences, chunks, data):
    """But where the sentence before it ends in a denial, which reads as its own."""
    copied = data.draw(st.sampled_from(sentences))
    assume({"not", "never"}.isdisjoint([key for text in sentences for key in keys(text)[-1:]]))
    for checked in ground(copied, [*chunks, " ".join(sentences)]):
        assert checked.support == pytest.approx(1)


@given(claim=st.text(max_size=200), chunks=st.lists(st.text(max_size=300), max_size=3))
@examples(300)
def test_any_text_is_read_and_its_evidence_lies_inside_it(claim, chunks):
    for checked in ground(claim, chunks):
        found = evidence(checked, claim, chunks, supported(checked))
        assert claim[found.start : found.end].strip()
        if found.span is not None:
            assert 0 <= found.span[0] <= found.span[1] <= len(chunks[found.chunk])


def test_of_a_claim_so_many_characters_are_read_that_it_costs_no_more():
    text = "大坝建成于" * 10_000
    assert [one.sentence.end for one in ground(text, ["大坝"])] == [40_000]


EXEMPT = ("1970s", "Python 3.12", "v2.4.7", "Wallace, 2017")
"""A decade, versions and a cited year are never made up, though the chunks have others."""
MISSED = ("10-Q", "[3]", "03/04/2024")
"""A letter differs; a bare citation; a month in words and hours in another form."""


def test_made_up_numbers_of_texts_that_nobody_tuned_for():
    """Prices, list numbers, plans, decades, versions, citations, counts, dates: written before they were tested.

    At first 22 of the 30 were right; ordinals from 13th to 19th were missing.
    """
    rows = [json.loads(line) for line in (ROOT / "tests" / "textual" / "numbers.jsonl").read_text().splitlines()]
    wrong = []
    for row in rows:
        claim, chunks = row["claim"], (row["chunk"],)
        evidences = [evidence(item, claim, chunks, supported(item)) for item in ground(claim, chunks)]
        made_up = [claim[slice(*span)] for one in evidences for span in one.made_up]
        if made_up != row["fabricated"]:
            wrong.append(claim)
    assert [claim for claim in wrong if not any(text in claim for text in (*EXEMPT, *MISSED))] == []
    assert len(wrong) == len(EXEMPT) + len(MISSED)
