"""How Dutch refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

DUTCH = Language(
    code="nl",
    hints="niet|geen|noch|niets|weiger|onmogelijk|onvoldoende|ontbreekt|nergens",
    declines=(
        (
            "(?:ik|we|wij) (?:<little> )*(?:kan|kunnen|mag|mogen|zal|wil) (?:<little> |je |u |jou |jullie |"
            r"dat |hier |daar |daarbij |hierbij |\w+ ){0,5}?(?:niet|geen)(?: .{0,80}?)? <help>"
        ),
        (
            r"(?:kan|kunnen|mag|zal|wil) (?:ik|we) (?:<little> |je |u |jou |\w+ ){0,3}?(?:niet|"
            "geen)(?: .{0,80}?)? <help>"
        ),
        (
            "(?:daar|hier|daarbij|hierbij|daarmee|hiermee|dat) (?:kan|mag) ik (?:je |u |jou |"
            r"\w+ ){0,3}?(?:niet|geen)"
        ),
        "ik ben (?:<little> )*niet (?:in staat|bevoegd|gemachtigd|gekwalificeerd)",
        r"ik (?:moet|weiger) (?:\w+ ){0,3}?(?:weigeren|afwijzen|om)",
        r"het is niet (?:gepast|ethisch|verantwoord|toegestaan)(?: of \w+)? om",
    ),
    lacks=(
        r"(?:dat )?(?:ik weet|weet ik|we weten) (?:het |dat |helaas |echt |\w+ ){0,3}?niet",
        (
            "(?:ik|we|wij) (?:<little> )*(?:heb|hebben|beschik|vind|vinden|vond|zie) (?:<little> |over |hier |"
            "hierover |daarover )*(?:geen|niet genoeg|niet voldoende|onvoldoende|"
            r"niets)\w* ?(?:\w+ ){0,2}?(?:<info>|gevonden|idee|toegang|over|in <sources>)"
        ),
        (
            "(?:heb|hebben) (?:ik|we) (?:<little> |hierover |daarover )*(?:geen|niet genoeg|"
            r"onvoldoende) (?:\w+ ){0,2}?(?:<info>|toegang)"
        ),
        (
            "(?:(?:ik|we|wij) (?:<little> )*(?:kan|kon|kunnen|konden)|(?:kan|kon|kunnen|konden) (?:ik|we|wij)) "
            r"(?:<little> |\w+ ){0,8}?(?:niet|geen|"
            "niets) (?:.{0,80}? )?(?:vinden|beantwoorden|bepalen|zeggen|vaststellen|opmaken|achterhalen|"
            "terugvinden|afleiden|bevestigen)"
        ),
        "<sources> (?:<little> )*<say>(?: .{0,80}?)? ?(?:niet|geen|niets|noch)",
        # With the verb first, where something else opens the sentence; a verb that opens it makes a case of it.
        r"(?<=[\w,:] )<say> (?:\w+ ){0,2}?<sources> (?:.{0,60}? )?(?:niet|geen|niets|noch)",
        (
            "(?:(?:ik|we|wij) (?:<little> )*(?:heb|hebben)|(?:heb|hebben) (?:ik|we|wij)) (?:.{0,60}? )?(?:niet|geen|"
            r"niets)(?: \w+){0,3}? kunnen (?:vinden|achterhalen|terugvinden|bepalen|beantwoorden|vaststellen)"
        ),
        "(?:uit|in) <sources> (?:blijkt|volgt|staat|valt) (?:<little> )*(?:niet|niets|geen)",
        (
            "(?:in|uit|volgens|op basis van|binnen) (?:<little> )*<sources>(?: .{0,90}?)? (?:niet|geen|"
            "niets)(?: .{0,60}?)? ?(?:<info>|vermeld|genoemd|gevonden|te vinden|beschreven|opgenomen|staat|"
            "bekend|duidelijk|"
            r"beantwoord\w*|bepalen|af te leiden|gegeven)"
        ),
        (
            "(?:wordt|worden|is|zijn|staat|staan) (?:.{0,50}? )?(?:niet|geen|nergens|"
            "niets) (?:.{0,40}? )?(?:in|uit|op basis van) <sources>"
        ),
        (
            "(?:wordt|worden|is|zijn|staat|staan) (?:.{0,50}? )?(?:in|uit|"
            "op basis van) <sources> (?:.{0,40}? )?(?:niet|geen|niets)"
        ),
        (
            "(?:de|deze|uw|je) vraag (?:.{0,30}? )?(?:kan|is) (?:.{0,60}? )?(?:niet|"
            "onmogelijk) (?:.{0,40}? )?(?:beantwoord|te beantwoorden|worden beantwoord)"
        ),
        "(?:die|deze|dat) (?:<info>|informatie) (?:heb|hebben) (?:ik|we) (?:<little> )*niet",
        r"geen (?:van|enkel\w*) (?:van )?<sources>",
        (
            "er (?:is|zijn|staat|staan|wordt|worden) (?:<little> )*(?:geen|niet genoeg|niet voldoende|"
            r"onvoldoende) (?:\w+ ){0,2}?<info>"
        ),
        r"geen (?:\w+ ){0,2}?(?:<info>|resultaten|documenten)(?: .{0,60}?)? (?:gevonden|beschikbaar|aanwezig)",
        "het antwoord (?:.{0,60}? )?(?:staat niet|is niet|ontbreekt|kan niet|wordt niet)",
    ),
    turns="maar|echter|toch|desondanks|niettemin|hoewel|wel",
    lead="(?:en|dus|daarom|misschien|dan|in dat geval|daarvoor) ",
    idle=(
        "(?:het )?spijt (?:me|mij)|helaas|sorry|excuses|mijn excuses|het spijt",
        "alsjeblieft|alstublieft|gelieve|bedankt|dank",
        "(?:als|indien|mocht) (?:je|u|jullie)",
        (
            "(?:ik (?:help|raad|adviseer|stel|kan (?:je|u) (?:wel|graag|alleen|iets|meer)|kan (?:wel|alleen|"
            "graag)|zou|hoop)|graag)"
        ),
        r"(?:neem|vraag|raadpleeg|probeer|controleer|zoek|laat|geef|stel|deel|kijk|bekijk|praat|bel)\b",
        "(?:je|u) (?:kunt|kan|zou|moet)",
        r"(?:kunt|kan|wilt|wil|heb|heeft|is er) (?:je|u|ik|er|nog)\b",
        (
            r"<sources> (?:\w+ )?(?:gaat|gaan|behandelt|behandelen|beschrijft|beschrijven|bespreekt|bespreken|"
            "richt|richten|betreft|bevat alleen|bevatten alleen|heeft betrekking|hebben betrekking)"
        ),
        "(?:het|ze|deze|die|daarin) (?:gaat|gaan|behandelt|beschrijft|bespreekt|bevat alleen)",
        r"(?:daarom|dus|daardoor)\b.*(?:niet|geen|onmogelijk)",
        "(?:op basis van|volgens|gebaseerd op) .{0,60}$",
        "als (?:ai|taalmodel|assistent)",
        "(?:meer|verdere|aanvullende) (?:informatie|details)|voor meer|ik begrijp|natuurlijk|hallo|uiteraard",
    ),
    moral=(
        (
            r"illegaal|strafbaar|gevaarlijk|onethisch|schade|geweld|wet\b|belangrijk|veilig|respect|discrimin|"
            "hulp|arts|verboden|in plaats daarvan|verantwoord|misdrijf"
        ),
    ),
    before=(
        "(?:indien|wanneer|zodra|zolang|als (?:er|de|het|een|dit|dat|deze|die|je|u|jullie|we|ze|hij|zij|men|iemand|"
        "in|uit|op))(?: [^,;]{0,40})?|als|of|zegt|zei|luidt|antwoordt"
    ),
    case=(
        "^(?:wordt|worden|werd|werden|kan|kunnen|kon|konden|is|zijn|staat|staan|vindt|vinden|ontbreekt|<say>)"
        r"\b[^,;]{1,90}, (?!(?:het|sorry|helaas|maar|want|omdat|neem|vraag|ik|we|wij|dat|de|dus|daarom|wie|"
        r"wat|wanneer|waar|hoe|of)\b)"
    ),
    concedes="hoewel|ofschoon",
    whole=(
        "ik weet het niet|weet ik niet|dat weet ik niet|geen idee|geen antwoord|geen informatie|"
        "geen informatie gevonden|geen informatie beschikbaar|niet vermeld|niet gevonden|niet in de context|"
        "niet beschikbaar|niet te beantwoorden|onvoldoende informatie|niet genoeg informatie|geen resultaten|"
        "geen resultaten gevonden|niet bekend in de context|n.v.t"
    ),
    words={
        "little": (
            "(?:helaas|hier|hierover|daarover|ook|momenteel|op dit moment|echter|dus|daarom|echt|gewoon|er|"
            "expliciet|direct|specifiek|je|u)"
        ),
        "sources": (
            "(?:(?:de|het|deze|dit|die|dat|mijn|uw|je|onze|verstrekte|gegeven|beschikbare|aangeleverde|"
            "opgehaalde|meegeleverde|aangeboden|bovenstaande|geleverde|voorliggende|huidige|gevonden|"
            "bijgevoegde) )*(?:context|documenten|document|tekst|teksten|passages?|fragment|fragmenten|bronnen|"
            "bron|artikel|artikelen|materiaal|informatie|gegevens|kennisbank|zoekresultaten|documentatie|"
            "bestanden|stukken)"
        ),
        "say": (
            "(?:bevat|bevatten|geeft|geven|vermeldt|vermelden|noemt|noemen|zegt|zeggen|biedt|bieden|beschrijft|"
            "beschrijven|beantwoordt|beantwoorden|gaat|gaan|verschaft|verschaffen|specificeert|behandelt|"
            "behandelen)"
        ),
        "info": "(?:informatie|gegevens|details|antwoord|vermelding|kennis|context|uitleg|aanwijzingen|toelichting)",
        "help": (
            "(?:helpen|beantwoorden|antwoorden|geven|verstrekken|bieden|assisteren|ondersteunen|delen|maken|"
            "schrijven|adviseren|voldoen|meewerken|zeggen|leveren|doen|bespreken|ingaan|uitvoeren|aanbevelen)"
        ),
    },
)
