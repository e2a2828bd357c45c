"""How Spanish refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

SPANISH = Language(
    code="es",
    hints=(
        "no|ningún|ninguna|ninguno|imposible|incapaz|desconozco|carezco|niego|rechazar|declinar|insuficiente|"
        "falta|rehusar|negarme|nada"
    ),
    declines=(
        (
            "no (?:<little> )*(?:puedo|podemos|podre|podria|debo|voy a|me es posible|estoy en condiciones de|"
            r"estoy autorizad\w+ (?:a|para)|estoy capacitad\w+ para|soy capaz de|"
            r"quiero)(?: <little>)* (?:\w+ )?<help>"
        ),
        (
            r"(?:lo siento|lamentablemente|lo lamento|perdon|disculp\w+|"
            "desafortunadamente),? (?:pero )?(?:yo )?no (?:puedo|podemos|podre|me es posible)"
        ),
        r"(?:debo|tengo que|prefiero|me veo obligad\w+ a) (?:\w+ )?(?:rechazar|negarme|declinar|rehusar)",
        (
            r"no (?:es|seria) (?:apropiado|etico|adecuado|aceptable)(?: (?:ni|o|y) \w+)? (?:proporcionar|dar|"
            "ofrecer|ayudar|que)"
        ),
        r"lamento no poder \w+",
        r"(?:me niego a|soy incapaz de) (?:\w+ )?<help>",
    ),
    lacks=(
        (
            r"(?:yo )?no (?:lo |la |los )?(?:sabemos|sabria|sabria decir\w*|conozco|tengo idea|tengo ni idea|"
            r"dispongo|encuentro|encontre|encontramos|veo|estoy segur\w+ de (?:la|poder|eso))(?= |$|[,.])"
        ),
        # "No sé" without its accent is "no se aceptan": what stands behind it must be what one may not know.
        (
            r"(?:yo )?no (?:lo |la |los )?se(?=$|[,.;:!]| (?:la (?:respuesta|fecha|razon|causa|hora|cifra|cantidad)|el|"
            r"que|quien(?:es)?|cuando|donde|como|cual(?:es)?|cuant[oa]s?|por que|si|nada|mucho|bien|exactamente|"
            r"realmente|con (?:certeza|exactitud|seguridad)|a ciencia cierta|responder\w*|decir\w*|contestar\w*|"
            r"(?:a|de|en|por|para|con|desde|hasta) (?:que|quien(?:es)?|cual(?:es)?|cuando|donde|cuant[oa]s?))"
            "(?![^ ,.;:!?]))"
        ),
        (
            "no (?:tengo|tenemos|poseo|cuento con|contamos con|he encontrado|hemos encontrado|dispongo de|"
            r"disponemos de|se dispone de|se cuenta con) (?:<little> )*(?:\w+ ){0,3}?<info>"
        ),
        r"(?:desconozco|carezco de|me falta|no consta)\b",
        (
            "no (?:<little> )*(?:puedo|podemos|pude|pudimos|he podido|es posible|se puede|fue posible|logre|"
            r"consigo|se pudo|ha sido posible) (?:<little> )*(?:\w+ )?(?:encontrar|responder|determinar|decir|"
            "saber|establecer|confirmar|hallar|localizar|contestar|identificar|dar una respuesta|inferir|"
            r"deducir|verificar)\w*"
        ),
        "<sources>,? (?:<little> )*no (?:<little> )*<say>",
        "<sources> (?:<little> )*<topic> .{1,90}? (?:y|e|pero) (?:<little> )*no (?:<little> )*<say>",
        (
            "(?:en|segun|de|con|a partir de|basandome en|"
            r"basado en) (?:<little> )*<sources>(?: .{0,90}?)? (?:no|ningun\w*)(?: .{0,60}?)? ?(?:<info>|"
            r"menciona\w*|indica\w*|especifica\w*|encuentra\w*|aparece\w*|hay|puede|dice|consta|figura|se|"
            "es posible)"
        ),
        (
            r"no (?:se )?(?:hay|existe\w*|menciona\w*|indica\w*|especifica\w*|encuentra\w*|encontr\w+|"
            r"proporciona\w*|aparece\w*|esta|estan|es|fue|ha sido|figura\w*|ofrece\w*|describe\w*|"
            "hace)(?: .{0,60}?)? (?:en|por|de) <sources>"
        ),
        (
            r"no (?:hay|existe\w*|se (?:ha )?(?:encontr\w+|proporcion\w+|dispone de|"
            r"facilit\w+)) (?:<little> )*(?:\w+ ){0,2}?<info>(?: \w+)?? ?(?:sobre|acerca|en|disponible\w*|"
            r"suficiente\w*|para|relacionad\w*|relativ\w*|al respecto|relevante\w*|de|del|$)"
        ),
        (
            r"ningun\w* (?:de <sources>|<info>|resultado|documento)(?: .{0,60}?)? (?:menciona|contiene|encontr|"
            r"indica|responde|disponible|habla|se )\w*"
        ),
        "nada (?:en|de) <sources> (?:permite|responde|indica|menciona|dice|habla|aclara)",
        "(?:esta|la|su|tu) pregunta (?:.{0,30}? )?no (?:puede|tiene|se puede|es posible)",
        (
            "la respuesta (?:a .{0,50}? )?no (?:se encuentra|esta|aparece|figura|puede|se menciona|consta|"
            "se proporciona)"
        ),
        ("(?:es|resulta|me resulta) imposible (?:responder|determinar|saber|decir|encontrar|establecer|contestar)"),
        (
            "(?:la )?informacion (?:.{0,40}? )?(?:es insuficiente|no (?:es suficiente|esta disponible|"
            "se encuentra|aparece|se menciona|basta))"
        ),
    ),
    turns="pero|sin embargo|no obstante|aunque|en cambio|sino|ahora bien",
    lead="(?:y|asi que|entonces|quizas?|en ese caso|por eso|para eso),? ",
    idle=(
        (
            "(?:lo siento|lo lamento|lamento|lamentablemente|desafortunadamente|disculp|perdon|por desgracia|"
            "gracias|me temo)"
        ),
        "por favor",
        ("si (?:usted |tu )?(?:necesita|quiere|desea|tiene|puede|me |quieres|tienes|necesitas|deseas|puedes|hay|lo)"),
        (
            "(?:puedo|podemos|podria|le|te|estare|estoy|recomiendo|sugiero|aconsejo|con gusto) (?:ayudar|"
            "ofrecer|hablar|solo|solamente|unicamente|recomiendo|sugiero|aconsejo|contar|dar|encantad|aqui|"
            r"disponible|intentar|invito|contarte|contarle|animo)\w*"
        ),
        (
            "(?:consult|contact|intent|verifi|revis|proporcion|pregunt|busqu|busc|reformul|acud|comuni|llam|"
            r"habl|compart|dirij|pong)(?:e|a|ue|es|arse|ese|ate|an|en|que)\w{0,4}\b"
        ),
        r"(?:usted |tu )?(?:puede|puedes|podria|podrias|deberia|deberias|debe)\b",
        "(?:¿|hay algo|quiere|quieres|necesita|desea)",
        "(?:es|seria) (?:recomendable|mejor|preferible|importante|aconsejable)",
        (
            r"<sources> (?:\w+ )?(?:trata\w*|habla\w*|describe\w*|aborda\w*|se (?:centra|refiere|enfoca|limita|"
            r"ocupa)\w*|(?:solo|solamente|unicamente)|contien\w+ (?:solo|unicamente)|versa\w*)"
        ),
        (
            "(?:este|estos|estas|esta|ellos|alli|ahi|se) (?:trata|habla|describe|aborda|centra|refiere|enfoca|"
            r"solo)\w*"
        ),
        r"(?:por (?:lo )?tanto|por eso|asi que|por ello|por consiguiente)\b.*(?:no |ningun|imposible)",
        "(?:segun|basandome en|de acuerdo con|a partir de|con base en) .{0,60}$",
        (
            "como (?:ia|inteligencia|modelo|asistente)|soy (?:solo )?(?:una ia|un modelo|un asistente)|(?:mas|"
            "para obtener mas) informacion|para mas|entiendo|claro|hola|por supuesto|comprendo"
        ),
    ),
    moral=(
        (
            r"ilegal|peligros|etic|dan[oi]|violen|\bley\b|importante|seguridad|respet|discrimin|ayuda|medic|"
            "prohibid|en lugar|responsab|delito|crimen|profesional"
        ),
    ),
    before="si|cuando|dice|dijo|responde|que",
    concedes="aunque|si bien|a pesar de que",
    whole=(
        "no lo sé|no sé|no se sabe en el contexto|no tengo idea|ni idea|sin respuesta|no hay respuesta|"
        "sin información|no hay información|no hay información disponible|no se menciona|no mencionado|"
        "no especificado|no se especifica|no se indica|no está en el contexto|no en contexto|no disponible|"
        "información no disponible|información insuficiente|no encontrado|no hay datos|sin resultados|"
        "no se encontraron resultados|no se encontró información|no puedo responder|no consta|"
        "desconocido en el contexto|lo desconozco"
    ),
    words={
        "little": (
            "(?:lamentablemente|tampoco|actualmente|tambien|simplemente|aun|todavia|se|explicitamente|"
            "directamente|especificamente|claramente|por tanto|le|te|me|les|en este momento|realmente|"
            "con certeza|con seguridad|yo|aqui)"
        ),
        "sources": (
            r"(?:(?:el|la|los|las|este|esta|estos|estas|esos|mis|mi|nuestros|sus|su|tu|del|ningun\w*|dicho|"
            r"dichos) )*(?:(?:informacion|datos|contenido) (?:proporcionad\w+|disponible\w*|dad\w+|facilitad\w+|"
            r"suministrad\w+|recuperad\w+)|contexto|documentos?|textos?|pasajes?|fuentes?|articulos?|"
            r"fragmentos?|extractos?|material\w*|base de (?:conocimientos?|datos)|"
            "resultados de (?:la )?busqueda|documentacion|archivos?|parrafos?|informacion|"
            r"referencias)(?: (?:proporcionad\w+|disponible\w*|dad\w+|facilitad\w+|suministrad\w+|recuperad\w+|"
            r"anterior\w*|consultad\w+|(?:de |con )?(?:los |las )?que (?:dispongo|cuento|tengo)|que \w+ "
            "(?:proporcionado|dado|compartido)))*"
        ),
        "say": (
            r"(?:contien\w+|menciona\w*|proporciona\w*|especifica\w*|indica\w*|dice\w*|da|dan|ofrece\w*|"
            r"incluye\w*|responde\w*|aborda\w*|describe\w*|trata\w*|habla\w*|explica\w*|aporta\w*|detalla\w*|"
            r"aclara\w*|hace\w*|brinda\w*|recoge\w*|revela\w*|permite\w*|cita\w*|precisa\w*|tiene\w*|"
            r"senala\w*|informa\w*|facilita\w*)"
        ),
        "topic": (
            "(?:solo|solamente|unicamente|tratan?|hablan?|se (?:centran?|refieren?|enfocan?|limitan?|ocupan?)|versan?)"
        ),
        "info": (
            "(?:informacion|datos|respuesta|mencion|detalles|conocimientos?|acceso|referencias?|indicios|elementos)"
        ),
        "help": (
            r"(?:\w*ayud\w+|responder\w*|proporcionar\w*|dar\w*|ofrecer\w*|asistir\w*|compartir\w*|brindar\w*|"
            r"recomendar\w*|cumplir|escribir|crear|generar|discutir|hablar|aconsejar\w*|sugerir\w*|comentar|"
            r"hacer (?:eso|esto)|hacerlo|apoyar|participar|facilitar\w*|atender|opinar|diagnosticar|asesorar\w*|"
            r"contestar\w*|procesar|realizar|explicar\w*|decir\w*)"
        ),
    },
)
