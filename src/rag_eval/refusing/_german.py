"""How German refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

GERMAN = Language(
    code="de",
    hints=(
        "nicht|kein|keine|keiner|keinen|keinem|keines|keinerlei|weder|außerhalb|weigere|lehne|ablehnen|fehlen|"
        "fehlt|nichts|unmöglich|außerstande|wenig|nirgends"
    ),
    declines=(
        (
            "(?:kann|konnte|darf|mochte|werde|will) (?:ich|wir) (?:<little> )*(?:nicht|"
            "keine?[nrms]?)(?: .{0,80}?)? <help>"
        ),
        (
            "(?:ich|wir) (?:<little> )*(?:kann|konnen|darf|durfen|mochte|mochten|werde|will) (?:<little> |"
            r"ihnen |dir |euch |dabei |damit |das |dazu |diese[nrsm]? |hier |\w+ ){0,5}?(?:nicht|"
            "keine?[nrms]?)(?: .{0,80}?)? <help>"
        ),
        (
            "(?:dabei|damit|hierbei|da|das|dazu|darauf|daruber|diese frage) (?:kann|konnen|darf|mochte) (?:ich|"
            "wir) (?:<little> |ihnen |dir |euch )*(?:nicht|keine)"
        ),
        (
            "ich (?:bin|sehe mich) (?:<little> )*(?:nicht in der lage|ausserstande|nicht (?:befugt|berechtigt|"
            "qualifiziert|autorisiert))"
        ),
        r"(?:ich|wir) (?:muss|mussen|mochte|weigere|lehne) (?:\w+ ){0,4}?(?:ablehnen|ab|mich)\b",
        (
            "es (?:ist|ware) (?:nicht|weder) (?:angemessen|ethisch|vertretbar|"
            "erlaubt)(?: .{0,30}?)?,? .{0,60}?zu (?:geben|machen|helfen|unterstutzen|liefern)"
        ),
        r"ich bin (?:nur )?ein (?:ki|sprachmodell)\b.{0,60}? (?:nicht|keine)",
    ),
    lacks=(
        r"(?:das )?(?:weiss ich|ich weiss)(?: \w+){0,3}? nicht",
        (
            "(?:mir|uns|dazu|hierzu|daruber|hieruber)? ?(?:liegen|liegt|stehen|gibt es|sind|habe ich|"
            "haben wir) (?:<little> |mir |uns |ich |dazu |hierzu |daruber |in <sources> )*(?:keine|keinerlei|"
            r"nicht genug|nicht genugend|nicht ausreichend|zu wenig|kein)\w* (?:\w+ ){0,2}?<info>"
        ),
        (
            "(?:ich|wir) (?:<little> )*(?:habe|haben|besitze|verfuge|finde|finden|fand|fanden|konnte|konnten|"
            "kann|sehe) (?:<little> |uber |dazu |hierzu |daruber |in <sources> )*(?:keine|keinerlei|"
            r"nicht genug|nicht genugend|nichts)\w* ?(?:\w+ ){0,2}?(?:<info>|gefunden|finden|ahnung|zugriff|"
            "dazu|daruber|in <sources>)"
        ),
        (
            "(?:(?:konnte|konnten|kann|konnen) (?:ich|wir|man)|(?:ich|wir|man) (?:konnte|konnten|kann|"
            r"konnen)) (?:<little> |\w+ ){0,8}?(?:nicht|keine?\w*|"
            "nichts) (?:.{0,80}? )?(?:finden|beantworten|beantwortet|bestimmen|feststellen|entnehmen|entnommen|"
            "ermitteln|ermittelt|sagen|beurteilen|gefunden|bestatigen|angeben)"
        ),
        (
            "^(?:konnte|kann|konnten|konnen) (?:<little> |das |auch )*(?:nicht|nichts|keine?) (?:<info> "
            ")?(?:<little> )*"
            "(?:finden|sagen|beantworten|bestatigen|ermitteln)"
        ),
        (
            r"(?:lasst|lassen) sich (?:.{0,60}? )?(?:nicht|keine?\w*) (?:.{0,40}? )?(?:beantworten|entnehmen|"
            "bestimmen|finden|ermitteln|feststellen|ableiten|sagen)"
        ),
        r"<sources> (?:<little> )*<say>(?: .{0,80}?)? ?(?:nicht|kein\w*|nichts|weder|keinerlei)",
        # With the verb first, where something else opens the sentence; a verb that opens it makes a case of it.
        (
            r"(?<=[\w,:] )<say> (?:\w+ ){0,2}?<sources> (?:.{0,60}? )?(?:nicht|kein\w*|nichts|weder|"
            "keinerlei)"
        ),
        (
            r"(?:in|aus|laut|im|nach|auf basis|anhand) (?:<little> )*<sources>(?: .{0,90}?)? (?:nicht|kein\w*|"
            "nichts|weder|keinerlei)(?: .{0,60}?)? ?(?:<info>|erwahnt|enthalten|genannt|angegeben|finden|"
            "gefunden|beschrieben|vorhanden|hervor|beantworten|entnehmen|die rede|steht|zu)"
        ),
        (
            "(?:wird|werden|ist|sind|geht|steht|findet sich|finden sich|gibt es) (?:.{0,60}? )?(?:in|im|"
            r"aus) <sources> (?:.{0,60}? )?(?:nicht|keine?\w*|nichts)"
        ),
        (
            r"(?:wird|werden|ist|sind|geht|steht|findet sich|finden sich) (?:nicht|keine?\w*|nichts|"
            "nirgends) (?:.{0,40}? )?(?:in|im|aus) <sources>"
        ),
        (
            "(?:die|diese|ihre|deine) (?:frage|anfrage) (?:.{0,30}? )?(?:kann|ist|"
            r"lasst sich) (?:.{0,60}? )?(?:nicht|unmoglich) (?:.{0,40}? )?(?:beantwort\w+|zu beantworten)"
        ),
        (
            "(?:es gibt|es liegen|es wurden|es finden sich|es sind) (?:<little> )*(?:keine|keinerlei|"
            r"nicht genug|nicht genugend|nicht ausreichend)\w* (?:\w+ ){0,2}?<info>"
        ),
        (
            r"keine (?:\w+ ){0,2}?(?:<info>|ergebnisse|treffer|dokumente)(?: .{0,60}?)? (?:gefunden|verfugbar|"
            r"vorhanden|enthalten|vor\b)"
        ),
        (
            "(?:steht|stehen|findet sich|finden sich) (?:dort|da|dazu|daruber|darin|hierzu) (?:<little> "
            r")*(?:nichts|keine?\w*)"
        ),
        r"(?:steht|stehen|findet sich|finden sich) (?:in|im) <sources> (?:.{0,30}? )?(?:nicht|nichts|keine?\w*)",
        r"(?:zu|uber) .{1,60}? (?:steht|findet sich|finden sich) (?:dort|da|darin) (?:nichts|keine?\w*)",
        "habe ich (?:<little> )*keinen (?:zugriff|zugang)",
        r"(?:in|im) <sources> (?:steht|stehen|findet sich|finden sich) (?:<little> )*(?:nichts|keine?\w*)",
        (
            "(?:<info>|die antwort|antwort) (?:.{0,40}? )?(?:fehlen|fehlt|reich(?:t|en) nicht(?! bis| weit)|ist nicht|"
            "sind nicht|liegen nicht|geht nicht)"
        ),
        (
            r"reich(?:t|en) (?:<little> )*(?:(?:die|der|diese|meine) )?(?:\w+ )?(?:informationen|angaben|kontext|text|"
            r"dokumente|unterlagen|auszuge|quellen) (?:<little> |dafur |hierfur )*(?:fur (?:\w+ ){1,3}?)?"
            r"(?:<little> )*nicht (?:<little> |dafur )*aus\b"
        ),
        (
            "(?:informationen|angaben|kontext|text|dokumente|unterlagen|auszuge|quellen) (?:.{0,40}? )?reich(?:t|en) "
            r"(?:<little> |dafur |hierfur )*(?:fur (?:\w+ ){1,3}?)?(?:<little> )*nicht (?:<little> |dafur )*aus\b"
        ),
        r"(?:es|mir) fehl(?:t|en) (?:mir )?(?:die |an )?(?:\w+ )?<info>",
    ),
    turns="aber|jedoch|allerdings|dennoch|trotzdem|doch|hingegen|sondern|obwohl|wohl aber",
    lead="(?:und|also|daher|deshalb|stattdessen|vielleicht|dann|somit|in diesem fall|dafur) ",
    idle=(
        "(?:es )?tut mir (?:sehr |wirklich )?leid|leider|entschuldig|sorry|bedaure|verzeih|ich bedauere",
        r"bitte\b|(?:vielen )?dank",
        "(?:wenn|falls|sofern) (?:sie|du|ihr)",
        (
            "(?:gerne?|ich helfe|ich empfehle|ich rate|ich wurde|ich kann ihnen (?:gerne|nur|etwas)|"
            "ich kann dir (?:gerne|nur|etwas)|ich kann (?:gerne|nur))"
        ),
        (
            "(?:wenden|wende|fragen|frage|prufen|prufe|konsultieren|suchen|versuchen|kontaktieren|lassen|lass|"
            "sprechen|sprich|teilen|teile|geben|stellen) (?:sie|dich|du|mich|bitte)"
        ),
        "(?:sie|du) (?:konnen|kannst|konnten|konntest|sollten|solltest|mussten)",
        r"(?:haben|hast|mochten|mochtest|kann|konnen|konnten|gibt|brauchen) (?:sie|du|ich|es)\b.*",
        (
            r"<sources> (?:\w+ )?(?:behandelt|behandeln|beschreibt|beschreiben|handelt|handeln|befasst|befassen|"
            "bezieht|beziehen|geht|enthalt nur|enthalten nur|beschaftigt|betrifft|konzentriert|informiert|"
            "informieren|thematisiert)"
        ),
        "(?:er|sie|es|darin|dort) (?:behandelt|beschreibt|handelt|befasst|bezieht|geht es|enthalt nur)",
        r"(?:daher|deshalb|somit|also|folglich|deswegen)\b.*(?:nicht|kein|unmoglich)",
        "(?:basierend auf|laut|gemass|nach|auf grundlage|auf basis) .{0,60}$",
        "als (?:ki|kunstliche|sprachmodell|assistent)",
        (
            "weitere (?:informationen|angaben|details)|fur (?:weitere|genauere)|ich verstehe|naturlich|"
            "selbstverstandlich|hallo|guten tag"
        ),
        "(?:ich|wir) (?:hoffe|stehe|bin fur)",
    ),
    moral=(
        (
            "illegal|strafbar|gefahrlich|unethisch|schad|gewalt|gesetz|wichtig|sicherheit|respekt|diskriminier|"
            "verletz|hilfe|arzt|notruf|beratung|stattdessen|verboten|menschenwurd|straftat|verantwort"
        ),
    ),
    before="(?:wenn|falls|sofern|sobald|solange|ob)(?: [^,;]{0,40})?|sagt|sagte|meldet|lautet|antwortet",
    case=(
        "^(?:wird|werden|wurde|wurden|kann|konnen|konnte|konnten|ist|sind|gibt es|liegen|liegt|steht|stehen|"
        r"finde[tn]|lasst|lassen|fehl(?:t|en)|<say>)\b[^,;]{1,90}, (?!(?:tut|da|weil|leider|sorry|aber|bitte|"
        r"sondern|wenden|fragen|ich|wir|das|es|die|der|denn|daher|darum|deshalb|wer|was|wann|wo|wie|warum|ob|dass|"
        r"welche[rsnm]?)\b)"
    ),
    concedes="obwohl|auch wenn|zwar",
    whole=(
        "ich weiß es nicht|ich weiß nicht|weiß ich nicht|das weiß ich nicht|keine ahnung|keine antwort|"
        "keine angabe|keine angaben|keine information|keine informationen|keine informationen gefunden|"
        "keine informationen verfügbar|nicht angegeben|nicht bekannt im kontext|nicht im kontext|"
        "nicht im kontext enthalten|nicht enthalten|nicht gefunden|nicht vorhanden|nicht verfügbar|"
        "nicht beantwortbar|unbeantwortbar|k. a|k.a|nicht genügend informationen|unzureichende informationen|"
        "keine ergebnisse|keine ergebnisse gefunden"
    ),
    words={
        "little": (
            "(?:leider|hier|dazu|hierzu|daruber|aber|auch|momentan|derzeit|aktuell|jedoch|also|daher|es|"
            "bedauerlicherweise|wirklich|einfach|gerade|im moment|ausdrucklich|explizit|direkt|genau|ihnen|dir)"
        ),
        "sources": (
            "(?:(?:der|die|das|den|dem|des|diese[rnms]?|dies|meine[nrm]?|unsere[nrm]?|ihre[nrm]?|zur|verfugung|"
            "gestellten?|stehenden|bereitgestellte[nrms]?|vorliegende[nrms]?|gegebene[nrms]?|angegebene[nrms]?|"
            "verfugbare[nrms]?|vorhandene[nrms]?|abgerufene[nrms]?|gelieferte[nrms]?|mir|uns|bereitgestellt|"
            "genannte[nrms]?|obige[nrms]?|hier) )*(?:kontexts?|dokument(?:en?|s|es)?|text(?:en?|s|es|ausz[uge]+n?|"
            r"abschnitt\w*)?|textes|abschnitt(?:en?)?|passagen?|quellen?|unterlagen|artikels?|auszug(?:en?)?|"
            "auszuge|materialien|material|informationen|angaben|daten|wissensdatenbank|suchergebnisse[n]?|"
            "dokumentation|dateien?|wissensbasis)"
        ),
        "say": (
            "(?:enthalt|enthalten|liefert|liefern|gibt|geben|bietet|bieten|erwahnt|erwahnen|nennt|nennen|"
            "beantwortet|beantworten|sagt|sagen|macht|machen|umfasst|umfassen|beinhaltet|beinhalten|beschreibt|"
            "beschreiben|geht|gehen|behandelt|behandeln|spezifiziert|erlautert|erlautern|verrat)"
        ),
        "info": (
            "(?:informationen|information|angaben?|details|hinweise?|daten|antwort|auskunft|erkenntnisse|"
            "einzelheiten|erwahnung|kontext|wissen|kenntnisse?|anhaltspunkte)"
        ),
        "help": (
            "(?:helfen|weiterhelfen|behilflich|beantworten|antworten|geben|erteilen|machen|bereitstellen|"
            "unterstutzen|anbieten|liefern|nachkommen|teilen|erstellen|schreiben|erfullen|empfehlen|sagen|"
            "stellen|nennen|weitergeben|eingehen|aussern|bieten|beraten|dienen)"
        ),
    },
)
