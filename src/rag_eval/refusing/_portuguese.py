"""How Portuguese refuses."""

from __future__ import annotations

from rag_eval.refusing._language import Language

PORTUGUESE = Language(
    code="pt",
    hints="não|nenhum|impossível|desconheço|careço|falta|insuficiente|recuso|recusar|declinar",
    declines=(
        (
            r"nao (?:<little> )*(?:posso|podemos|poderei|poderia|consigo|estou autorizad\w+ a|estou apt\w+ a|"
            "sou capaz de|irei|vou|devo|me e possivel|tenho permissao para|estou em condicoes de|"
            r"quero)(?: <little>)* (?:\w+ )?<help>"
        ),
        (
            r"(?:desculp\w+|sinto muito|lamento|infelizmente|perdao),? (?:mas )?(?:eu )?nao (?:posso|podemos|"
            "consigo|poderei|me e possivel)"
        ),
        r"(?:devo|tenho que|preciso|prefiro|recuso-me a|me recuso a) (?:\w+ )?(?:recusar|declinar|<help>)",
        (
            r"nao (?:e|seria) (?:apropriado|etico|adequado|aceitavel)(?: (?:nem|ou|e) \w+)? (?:fornecer|dar|"
            "oferecer|ajudar)"
        ),
    ),
    lacks=(
        (
            "(?:eu )?nao (?:o |a )?(?:sei|sabemos|saberia|conheco|tenho ideia|faco ideia|disponho|encontrei|"
            r"encontramos|encontro|localizei|vejo|tenho certeza (?:sobre|da resposta))\b"
        ),
        (
            r"nao (?:tenho|temos|possuo|disponho de|dispomos de|ha|existe\w*|foi encontrad\w+|"
            r"foram encontrad\w+) (?:<little> )*(?:\w+ ){0,3}?<info>"
        ),
        r"(?:desconheco|falta-me|me falta|careco de)\b",
        (
            "nao (?:<little> )*(?:posso|podemos|consigo|consegui|conseguimos|e possivel|foi possivel|se pode|"
            r"da para|pude|fui capaz de) (?:<little> )*(?:\w+ )?(?:encontrar|responder|determinar|dizer|saber|"
            r"estabelecer|confirmar|localizar|identificar|inferir|verificar|afirmar|concluir)\w*"
        ),
        "<sources>,? (?:<little> )*nao (?:<little> )*<say>",
        "<sources> (?:<little> )*<topic> .{1,90}? (?:e|mas) (?:<little> )*nao (?:<little> )*<say>",
        (
            "(?:no|nos|na|nas|em|segundo|de acordo com|com base|do|dos|das|da) (?:<little> )*(?:em |no |nos |"
            r"na |nas )?<sources>(?: .{0,90}?)? (?:nao|nenhum\w*)(?: .{0,60}?)? ?(?:<info>|menciona\w*|"
            r"indica\w*|especifica\w*|encontr\w+|ha|possivel|consta\w*|aparece\w*|e |foi|esta|se )"
        ),
        (
            r"nao (?:e|sao|esta|estao|foi|foram|ha|consta\w*|se encontra\w*|aparece\w*|figura\w*|"
            r"existe\w*)(?: .{0,60}?)? (?:no|nos|na|nas|em|pelo|pelos|pela|pelas) <sources>"
        ),
        (
            r"(?:nenhum\w*) (?:\w+ )?(?:<info>|resultado|documento|dos documentos|"
            r"das fontes)(?: .{0,60}?)? ?(?:encontrad\w+|disponivel|menciona\w*|contem|foi |indica\w*)"
        ),
        "(?:esta|essa|a|sua|tua) pergunta (?:.{0,30}? )?nao (?:pode|tem|e possivel|posso)",
        "a resposta (?:a .{0,50}? |para .{0,50}? )?nao (?:se encontra|esta|pode|aparece|consta|foi|e )",
        "(?:e|torna-se) impossivel (?:responder|determinar|dizer|saber|encontrar|estabelecer)",
        r"(?:as )?informac\w+ (?:.{0,40}? )?(?:insuficiente\w*|nao (?:sao|e|esta|estao|consta\w*|foi|foram))",
    ),
    turns="mas|porem|no entanto|contudo|todavia|entretanto|embora|ainda assim|ja ",
    lead="(?:e|entao|talvez|nesse caso|por isso|para isso),? ",
    idle=(
        "(?:desculp|sinto muito|lamento|infelizmente|perdao|obrigad|peco desculpa)",
        "por favor",
        r"se (?:voce|tu|quiser|precisar|tiver|puder|desejar|houver|for|me|necessitar|precisa)\b",
        (
            "(?:posso|podemos|poderia|recomendo|sugiro|aconselho|estou|ficarei|terei|fico) (?:ajudar|oferecer|"
            "falar|apenas|somente|que|a|aqui|feliz|prazer|tentar|sugerir|dar|contar|lhe|te|disposicao|"
            "consultar|procurar|entrar)"
        ),
        (
            "(?:consult|contat|contact|tent|verifiqu|fornec|forneç|pergunt|busqu|procur|reformul|entr|"
            r"compartilh|fac|lig|fal|dig|inform|avis)(?:e|a|em|ar|me|aca)\b"
        ),
        ("(?:voce|tu) (?:pode|podera|poderia|deve|deveria|podes)|pode (?:tentar|consultar|verificar|entrar|procurar)"),
        "(?:ha algo|gostaria|quer|precisa|posso|deseja|ha mais)",
        "(?:e|seria) (?:recomendavel|melhor|preferivel|importante|aconselhavel)",
        (
            r"<sources> (?:\w+ )?(?:trata\w*|fala\w*|descreve\w*|aborda\w*|se (?:concentra|refere|limita|"
            r"foca)\w*|concentra-se|refere-se|limita-se|(?:apenas|somente)|contem (?:apenas|somente)|discut\w+)"
        ),
        r"(?:ele|eles|ela|elas|este|estes) (?:trata|tratam|fala|falam|descreve\w*|aborda\w*|apenas|so) ?",
        r"(?:portanto|por isso|assim|logo|por conseguinte)\b.*(?:nao |nenhum|impossivel)",
        "(?:segundo|com base|de acordo com) .{0,60}$",
        (
            "como (?:ia|uma ia|inteligencia|modelo|um modelo|assistente|um assistente)|"
            "sou (?:apenas )?(?:uma ia|um modelo|um assistente)|mais informac|para (?:mais|obter)|entendo|"
            "claro|ola|compreendo|naturalmente"
        ),
    ),
    moral=(
        (
            r"ilegal|perigos|etic|dano|prejudic|violen|\blei\b|importante|seguranca|respeit|discrimin|ajuda|"
            "medic|proibid|em vez|responsab|crime|profission"
        ),
    ),
    before="se|quando|diz|disse|responde|caso",
    concedes="embora|apesar de|ainda que",
    whole=(
        "não sei|eu não sei|não faço ideia|não tenho ideia|sem resposta|não há resposta|sem informação|"
        "sem informações|não há informações|não há informação|nenhuma informação|nenhuma informação encontrada|"
        "não mencionado|não especificado|não informado|não consta|não está no contexto|não disponível|"
        "informação não disponível|informações insuficientes|informação insuficiente|não encontrado|"
        "nenhum resultado|nenhum resultado encontrado|não posso responder|não consta no contexto|"
        "impossível responder|desconheço"
    ),
    words={
        "little": (
            "(?:infelizmente|tambem|atualmente|simplesmente|ainda|explicitamente|diretamente|especificamente|"
            "claramente|portanto|lhe|te|vos|me|no momento|realmente|com certeza|aqui|se|eu|suficientes?|"
            "qualquer)"
        ),
        "sources": (
            r"(?:(?:o|a|os|as|este|esta|estes|estas|esse|esses|meus|meu|nossos|seus|seu|teus|nenhum\w*|do|dos|"
            r"das) )*(?:(?:informac\w+|dados|conteudo) (?:fornecid\w+|disponive\w+|dad\w+|prestad\w+)|contexto|"
            r"documentos?|textos?|passage\w+|trechos?|fontes?|artigos?|excertos?|fragmentos?|materia\w+|"
            "base de (?:conhecimento|dados)|resultados da (?:busca|pesquisa)|documentacao|arquivos?|ficheiros?|"
            r"paragrafos?|informac\w+|referencias)(?: (?:fornecid\w+|disponive\w+|dad\w+|recuperad\w+|acima|"
            r"anterior\w*|disponibilizad\w+|apresentad\w+|consultad\w+|que \w+ (?:forneceu|enviou|"
            "compartilhou)))*"
        ),
        "say": (
            r"(?:cont[ae]m|contem|contêm|menciona\w*|fornece\w*|especifica\w*|indica\w*|diz|dizem|da|dao|"
            r"oferece\w*|inclu\w+|responde\w*|aborda\w*|descreve\w*|trata\w*|fala\w*|explica\w*|apresenta\w*|"
            r"traz\w*|detalha\w*|esclarece\w*|faz\w*|revela\w*|permite\w*|cita\w*|informa\w*|tem|refere\w*|"
            r"possu\w+|disponibiliza\w*)"
        ),
        "topic": ("(?:so|somente|apenas|unicamente|tratam?|falam?|abordam?|se (?:concentra|refere|limita)m?)"),
        "info": (
            "(?:informac(?:ao|oes)|dados|resposta|mencao|detalhes|conhecimento|acesso|referencias?|elementos|indicacao)"
        ),
        "help": (
            r"(?:\w*ajud\w+|responder|fornecer|dar|oferecer|assistir|compartilhar|partilhar|recomendar|atender|"
            "escrever|criar|gerar|discutir|falar|aconselhar|sugerir|comentar|fazer (?:isso|isto)|apoiar|"
            "participar|prestar|opinar|diagnosticar|cumprir|explicar|auxiliar|dizer|realizar|processar|"
            "divulgar)(?:-lhe|-te|-lo|-la|-vos)?"
        ),
    },
)
