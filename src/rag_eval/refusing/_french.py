"""How French refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

FRENCH = Language(
    code="fr",
    hints=(
        "pas|aucun|aucune|incapable|refuse|refuser|impossible|ignore|décliner|manque|manquons|rien|insuffisant|"
        "inapproprié|contraire|impossibilité|incapacité"
    ),
    declines=(
        (
            "(?:je|nous) (?:<little> )*(?:ne |n')(?:<little> )*(?:peux|puis|pouvons|pourrai|pourrais|saurais|"
            "vais|veux|suis|suis pas) ?(?:<little> )*(?:pas |point |malheureusement )?(?:en mesure de |"
            "autorisee? a |habilitee? a |qualifiee? pour |capable de )?(?:<little> )*(?:vous |t'|te |y |en |l'|"
            "le |la |les |m'|me )*<help>"
        ),
        r"je (?:dois|prefere|refuse|me vois oblige\w*)(?: \w+){0,3}? (?:refuser|decliner|de|d')",
        (
            "il (?:n'est pas|ne serait pas|est) (?:contraire|approprie|ethique|acceptable|convenable|"
            r"inapproprie)(?:,? (?:ni|ou|et) \w+)? (?:de |a mes )(?:fournir|donner|proposer|aider|principes|"
            "directives)"
        ),
        "je (?:suis|me trouve) (?:<little> )*(?:incapable|dans l'impossibilite|dans l'incapacite) de",
    ),
    lacks=(
        (
            "je (?:n'en |ne |n')(?:le |la |les |l'|en )?(?:sais|connais|dispose|possede|trouve|vois|ai|"
            r"suis)(?: \w+)? ?(?:<little> )*(?:pas|rien|aucun\w*)(?! (?:d'inquietude|de doute))(?: (?:trouve|pu|"
            "d'|de|assez|suffisamment|la reponse|acces|connaissance|sur? d|certain|comment|si|ce|qui|quand|ou|"
            r"quel\w*|pourquoi|en|a|repondre|\w+)|$)"
        ),
        (
            "(?:je|nous) (?:ne |n')(?:<little> )*(?:peux|puis|pouvons|ai|avons|suis|sommes|parviens|arrive|"
            "saurais|dispose|disposons|trouve|trouvons|disposais) (?:<little> )*(?:pas |rien |"
            r"aucun\w* )?(?:malheureusement )?(?:\w+ ){0,6}?(?:trouver|trouve|repondre|determiner|dire|etablir|"
            "savoir|confirmer|identifier|deduire|<info>)"
        ),
        "je (?:ne |n')(?:<little> )*(?:dispose|possede|ai|trouve|connais) (?:d')?aucune?",
        "(?:je|nous) (?:manque|manquons) d'?e? ?<info>|j'ignore",
        (
            r"<sources>,? (?:<little> )*(?:ne |n')(?:<little> )*(?:contien\w+|mentionn\w+|fourni\w+|precis\w+|"
            r"indiqu\w+|dit|disent|donn\w+|permet\w*|repond\w*|abord\w+|comport\w+|offr\w+|specifi\w+|evoqu\w+|"
            r"trait\w+|decri\w+|parl\w+|inclu\w+|expliqu\w+|cit\w+|comprenn\w+|revel\w+|apport\w+|propos\w+|"
            r"suffi\w+|fait|font|detaill\w+|renseign\w+|couvr\w+)"
        ),
        (
            r"(?:dans|d'apres|selon|sur la base d\w*|"
            r"a partir d\w*) (?:<little> )*<sources>(?: .{0,90}?)? (?:ne |n'|aucun\w* |"
            r"pas )(?:.{0,60}? )?(?:<info>|mentionn\w+|indiqu\w+|precis\w+|trouv\w+|est|permet\w*|repondre|"
            "figure|dit|existe|a pas)"
        ),
        (
            "(?:il n'y a|il n'existe|il n'est fait|on ne trouve|on n'y trouve) (?:<little> )*(?:pas|aucune?|"
            r"rien)(?: \w+)?? (?:d'|de |assez d'|suffisamment d'|\w+ )?<info>"
        ),
        (
            "(?:n'est|ne sont|n'a|n'ont|n'apparait|ne figure|"
            r"n'etait)(?: pas)?(?: ete)?(?: pas)? (?:.{0,50}? )?(?:dans|par|a partir d\w*) <sources>"
        ),
        (
            r"aucune? (?:\w+ )?(?:<info>|resultat|document|element)(?: .{0,60}?)? (?:n'a|n'est|n'a ete|"
            r"trouve\w*|disponible|ne )"
        ),
        "(?:cette|la|votre|ta) question (?:.{0,30}? )?(?:ne (?:peut|trouve)|n'a|reste sans|n'est pas)",
        ("(?:la|une) reponse (?:a .{0,50}? )?(?:ne (?:se trouve|figure|peut|apparait)|n'est pas|n'apparait|n'a pas)"),
        (
            "(?:il (?:est|m'est)|c'est) impossible (?:<little> )*(?:de|d') ?(?:repondre|determiner|dire|savoir|"
            "trouver|etablir)"
        ),
        r"(?:les )?informations? (?:.{0,40}? )?(?:insuffisant\w*|n'est pas|ne sont pas|manque\w*)",
        (
            "(?:il (?:n'est pas|est im)) ?possible (?:<little> )*(?:de|d') ?(?:repondre|determiner|dire|savoir|"
            "trouver|etablir)"
        ),
    ),
    turns="mais|cependant|toutefois|neanmoins|pourtant|en revanche|par contre|bien que|quoique",
    lead="(?:et|donc|alors|peut-etre|dans ce cas|pour cela),? ",
    idle=(
        (
            "(?:je (?:suis|vous prie) )?(?:vraiment |sincerement )?(?:desole|navre)|excus|pardon|"
            "malheureusement|(?:je )?regrett|merci"
        ),
        "(?:veuillez|s'il (?:vous|te) plait|n'hesitez|n'hesite)",
        "si (?:vous|tu|besoin)",
        (
            "je (?:peux|pourrais|vous|te|serai|recommande|conseille|suggere|suis la|reste|serais ravi|"
            "comprends|peux seulement) (?:vous |t'|te |seulement |plutot |uniquement |recommande|conseille|"
            "suggere|invite|encourage|toutefois |en revanche |aider|a votre|la pour|disponible|d)*"
        ),
        (
            "(?:consult|contact|essay|verifi|adress|pos|precis|fourn|reformul|demand|cherch|parl|appel)(?:ez|e|"
            r"es)\b"
        ),
        "(?:vous|tu) (?:pouvez|peux|pourriez|pourrais|devriez|devrais|devez)",
        (
            "(?:pouvez-vous|puis-je|avez-vous|souhaitez-vous|voulez-vous|y a-t-il|est-ce que|pourriez-vous|"
            "as-tu|veux-tu)"
        ),
        "(?:il (?:est|serait) (?:preferable|conseille|recommande|important))",
        (
            r"<sources> (?:\w+ )?(?:traite\w*|porte\w*|decri\w+|concern\w+|parl\w+|abord\w+|se concentr\w+|"
            r"contien\w+ (?:uniquement|seulement)|ne (?:traite\w*|parl\w+|contien\w+|port\w+) que|se limit\w+|"
            r"evoqu\w+ (?:uniquement|seulement))"
        ),
        (
            "(?:il|ils|elle|celui-ci|ceux-ci|celle-ci) (?:traite|traitent|porte|portent|decrit|decrivent|"
            r"concerne|concernent|parle|parlent|aborde)\b"
        ),
        r"(?:par consequent|donc|ainsi|c'est pourquoi)\b.*(?:pas|aucun|impossible)",
        "(?:d'apres|selon|sur la base|a partir) .{0,60}$",
        "en tant qu|(?:plus|davantage|complement) d'informations|pour plus|bonjour|bien sur",
    ),
    moral=(
        (
            r"illegal|dangereu|contraire|nuis|violen|\bloi\b|important|securite|respect|discrimin|aide|medecin|"
            "interdit|plutot|responsab|crime|delit|professionnel|ethique"
        ),
    ),
    before="si|quand|lorsqu[e']|des qu[e']|dit|repond|affirme|s'il",
    concedes="bien que|même si|quoique",
    whole=(
        "je ne sais pas|je sais pas|j'ignore|je l'ignore|aucune idée|pas de réponse|sans réponse|"
        "aucune réponse|aucune information|aucune information trouvée|aucune information disponible|"
        "non précisé|non mentionné|non spécifié|non indiqué|pas dans le contexte|information non disponible|"
        "non disponible|informations insuffisantes|information insuffisante|aucun résultat|"
        "aucun résultat trouvé|non trouvé|sans objet dans le contexte|pas d'information|impossible de répondre|"
        "introuvable"
    ),
    words={
        "little": (
            "(?:malheureusement|pas|actuellement|aussi|donc|simplement|helas|encore|vraiment|explicitement|"
            "directement|clairement|pour le moment|egalement|toujours|y|plus|moi|vous|te|nous)"
        ),
        "sources": (
            "(?:(?:le|la|les|l'|un|ce|cet|cette|ces|mes|mon|ma|nos|vos|votre|des|du|aucun des|"
            r"ces) ?)*(?:(?:informations|elements|contenus?|donnees) (?:fourni\w*|disponible\w*|donne\w*)|"
            "contexte|documents?|textes?|passages?|sources?|articles?|extraits?|materiel|"
            "base de connaissances?|resultats?(?: de (?:la )?recherche)?|documentation|fichiers?|informations|"
            r"references)(?: (?:fourni\w*|donne\w*|disponible\w*|ci-dessus|que vous avez \w+|consulte\w*|"
            r"presente\w*|transmis\w*|recupere\w*|en ma possession|a ma disposition))*"
        ),
        "info": (
            "(?:informations?|donnees|reponse|mention|details?|elements?|connaissances?|precisions?|"
            "indications?|renseignements?|acces)"
        ),
        "help": (
            r"(?:aid\w+|repondre|fournir|donner|assister|partager|proposer|conseiller|satisfaire|acceder|"
            "discuter|ecrire|creer|generer|recommander|expliquer|dire|commenter|effectuer|faire (?:cela|ca)|"
            "soutenir|traiter|diagnostiquer|offrir|encourager|participer|parler|poursuivre|executer)"
        ),
    },
)
