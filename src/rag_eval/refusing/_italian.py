"""How Italian refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

ITALIAN = Language(
    code="it",
    hints="non|nessun|impossibile|ignoro|mancano|manca|rifiutare|declinare|insufficienti",
    declines=(
        (
            "non (?:<little> )*(?:posso|possiamo|potro|potrei|sono in grado di|siamo in grado di|"
            r"sono autorizzat\w+ a|sono abilitat\w+ a|intendo|mi e possibile|"
            r"voglio)(?: <little>)* (?:\w+ )?<help>"
        ),
        (
            r"(?:mi dispiace|purtroppo|spiacente|mi spiace|scus\w+),? (?:ma )?(?:io )?non (?:posso|possiamo|"
            "potro|sono in grado|mi e possibile)"
        ),
        r"(?:devo|sono costrett\w+ a|preferisco) (?:\w+ )?(?:rifiutar\w+|declinare)",
        (
            r"non (?:e|sarebbe) (?:appropriato|etico|opportuno|accettabile)(?: (?:ne|o|e) \w+)? (?:fornire|dare|"
            "offrire|aiutare)"
        ),
    ),
    lacks=(
        (
            "(?:io )?non (?:lo |la |ne )?(?:so|sappiamo|saprei|conosco|ho idea|dispongo|trovo|ho trovato|"
            r"abbiamo trovato|vedo|sono sicur\w+ d)\b"
        ),
        r"non (?:ho|abbiamo|possiedo|dispongo di|disponiamo di|ho trovato) (?:<little> )*(?:\w+ ){0,3}?<info>",
        r"(?:mi mancano|mi manca|ignoro)\b",
        (
            r"non (?:<little> )*(?:posso|possiamo|riesco|riusciamo|sono riuscit\w+|sono in grado di|e possibile|"
            r"si puo|e stato possibile|ho potuto|sono stat\w+ in grado di) (?:<little> )*(?:a |ad |"
            r"di )?(?:\w+ )?(?:trovar|risponder|determinar|dir|saper|stabilir|confermar|individuar|dedurre|"
            r"verificar|ricavar|identificar)\w*"
        ),
        "<sources>,? (?:<little> )*non (?:<little> )*<say>",
        "<sources> (?:<little> )*<topic> .{1,90}? (?:e|ed|ma) (?:<little> )*non (?:<little> )*<say>",
        (
            r"(?:nel|nei|nella|nelle|nello|negli|in|dal|dai|dalle|secondo|sulla base d\w+|"
            r"in base a\w*) (?:<little> )*<sources>(?: .{0,90}?)? (?:non|nessun\w*)(?: .{0,60}?)? ?(?:<info>|"
            r"menziona\w*|indica\w*|specifica\w*|trov\w+|c'e|ci sono|possibile|risulta\w*|viene|vengono|e|"
            "compare|presente|si )"
        ),
        (
            r"non (?:e|sono|viene|vengono|si trova\w*|compare|compaiono|risulta\w*|c'e|ci sono|e stat\w+|"
            r"figura\w*)(?: .{0,60}?)? (?:nel|nei|nella|nelle|nello|negli|in|dal|dai|dalle|dalla) <sources>"
        ),
        (
            "(?:non (?:c'e|ci sono|esiste|esistono|e disponibile|sono disponibili|sono state trovate|"
            r"e stata trovata|risulta\w*|vi sono|vi e)) (?:<little> )*(?:\w+ ){0,2}?<info>"
        ),
        (
            r"(?:nessun\w*) (?:\w+ )?(?:<info>|risultato|document\w+|dei documenti|"
            r"delle fonti)(?: .{0,60}?)? ?(?:trovat\w+|disponibil\w+|menziona\w*|contien\w*|indica\w*|e |"
            "presente)"
        ),
        (
            "(?:questa|la|alla|a questa|alla tua|alla sua|tua|sua) domanda (?:.{0,30}? )?non (?:puo|ha|"
            "e possibile|trova|posso|si puo)"
        ),
        "la risposta (?:a .{0,50}? )?non (?:si trova|e|puo|compare|viene|figura|risulta)",
        "(?:e|mi e|risulta) impossibile (?:rispondere|determinare|dire|sapere|trovare|stabilire)",
        "(?:le )?informazioni (?:.{0,40}? )?(?:sono insufficienti|insufficienti|non (?:sono|bastano))",
    ),
    turns="ma|tuttavia|pero|comunque|eppure|anche se|sebbene|invece|bensi",
    lead="(?:e|quindi|allora|forse|in tal caso|in questo caso|per questo),? ",
    idle=(
        "(?:mi dispiace|mi spiace|purtroppo|scus|spiacente|grazie|sono desolat|perdon)",
        "per favore|si prega|ti prego|la prego",
        r"se (?:hai|ha|vuoi|vuole|desider\w+|ti|le|mi|puoi|puo|avete|volete|serve|ci)\b",
        (
            "(?:posso|possiamo|potrei|ti|le|vi|sarei|sono qui|saro|consiglio|suggerisco|"
            r"raccomando) (?:aiutar\w+|offrir\w+|solo|soltanto|parlar\w+|consiglio|suggerisco|invito|fornir\w+|"
            r"felice|liet\w+|per|raccontar\w+|comunque|pero|proporre|dare|provare)"
        ),
        (
            "(?:consult|contatt|prov|verific|controll|fornisc|chied|cerc|riformul|rivolg|condivid|fammi|"
            r"specific|chiam|parl)(?:a|i|e|are|ate|ere|ersi|iti|ete|ami|imi|mi|ono)\b"
        ),
        r"(?:puoi|puo|potresti|potrebbe|dovresti|dovrebbe|potete)\b",
        "(?:c'e altro|vuoi|vuole|posso|hai (?:altre|bisogno)|ha bisogno)",
        "(?:e|sarebbe) (?:consigliabile|meglio|preferibile|importante|opportuno)",
        (
            r"<sources> (?:\w+ )?(?:tratta\w*|parla\w*|descriv\w+|affronta\w*|riguarda\w*|si (?:concentra|"
            r"occupa|limita|riferisc)\w*|contien\w+ (?:solo|soltanto)|(?:solo|soltanto))"
        ),
        (
            r"(?:esso|essi|essa|esse|questo|questi|questa|si) (?:tratta|trattano|parla|parlano|descriv\w+|"
            r"riguarda\w*|concentra\w*|limita\w*)"
        ),
        r"(?:pertanto|quindi|perciò|percio|di conseguenza|dunque)\b.*(?:non |nessun|impossibile)",
        r"(?:secondo|in base a\w*|sulla base d\w+) .{0,60}$",
        (
            "(?:come|in quanto) (?:ia|intelligenza|modello|assistente)|sono (?:solo )?(?:un'ia|un modello|"
            "un assistente)|(?:maggiori|ulteriori) informazioni|per maggiori|capisco|certo|ciao|salve|"
            "comprendo|naturalmente"
        ),
    ),
    moral=(
        (
            r"illegal|pericolos|etic|dann|violen|\blegge\b|importante|sicurezza|rispett|discrimin|aiuto|medic|"
            "vietat|invece|responsab|reato|crimine|professionist"
        ),
    ),
    before="se|quando|dice|disse|risponde|qualora",
    concedes="anche se|sebbene|benché|nonostante",
    whole=(
        "non lo so|non so|non saprei|nessuna idea|nessuna risposta|nessuna informazione|"
        "nessuna informazione disponibile|nessuna informazione trovata|non specificato|non menzionato|"
        "non indicato|non presente nel contesto|non nel contesto|non è nel contesto|non disponibile|"
        "informazione non disponibile|informazioni insufficienti|informazioni non disponibili|non trovato|"
        "nessun risultato|nessun risultato trovato|non ci sono informazioni|non posso rispondere|"
        "senza risposta|boh|non ne ho idea"
    ),
    words={
        "little": (
            "(?:purtroppo|attualmente|anche|nemmeno|semplicemente|ancora|esplicitamente|direttamente|"
            "specificamente|chiaramente|quindi|le|ti|vi|al momento|davvero|con certezza|qui|ne|proprio|"
            "abbastanza|sufficienti)"
        ),
        "sources": (
            r"(?:(?:il|lo|la|i|gli|le|l'|questo|questi|questa|queste|miei|mio|nostri|suoi|tuoi|tuo|nessun\w*|"
            r"del|dei|delle) ?)*(?:(?:informazioni|dati|contenut\w+) (?:fornit\w+|disponibil\w+|dat\w+)|"
            r"contesto|document\w+|test[oi]|passagg\w+|bran[oi]|font[ei]|articol[oi]|estratt[oi]|frammenti|"
            "material[ei]|base di conoscenza|risultati (?:di|della) ricerca|documentazione|file|paragraf[oi]|"
            r"informazioni|riferimenti)(?: (?:fornit\w+|disponibil\w+|dat[oiae]|recuperat\w+|a disposizione|"
            r"precedent\w+|condivis\w+|che (?:hai|ha|mi) \w+))*"
        ),
        "say": (
            r"(?:contien\w+|contengono|menziona\w*|fornisc\w+|specifica\w*|indica\w*|dice|dicono|da|danno|"
            r"offr\w+|include\w*|includono|risponde|rispondono|affronta\w*|descriv\w+|tratta\w*|parla\w*|"
            r"spiega\w*|riporta\w*|precisa\w*|cita\w*|fa|fanno|chiarisc\w+|rivela\w*|consente|consentono|"
            r"permett\w+|ha|hanno)"
        ),
        "topic": (
            "(?:solo|soltanto|solamente|unicamente|tratta(?:no)?|parla(?:no)?|riguarda(?:no)?|si "
            "(?:concentra|occupa|limita)(?:no)?)"
        ),
        "info": (
            "(?:informazion[ei]|dati|risposta|menzione|dettagli|conoscenz[ae]|accesso|riferiment[oi]|"
            "indicazion[ei]|elementi)"
        ),
        "help": (
            r"(?:\w*aiutar\w*|rispondere|fornir\w*|dar\w*|offrir\w*|assister\w*|condivider\w*|consigliar\w*|"
            r"raccomandar\w*|soddisfare|scrivere|crear\w*|generare|discutere|parlare|suggerir\w*|commentare|"
            r"far(?:e questo|lo)|supportar\w*|partecipare|esprimer\w*|diagnosticare|procedere|eseguire|dir\w*|"
            r"spiegar\w*)"
        ),
    },
)
