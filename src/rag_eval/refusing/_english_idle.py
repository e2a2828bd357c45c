"""What English says without answering."""

from __future__ import annotations

IDLE = (
    (
        r"(?:hmm+|well|oh|ah|um+|uh|(?:(?:that's|that is|what) )?(?:an? )?(?:\w+ly )?(?:great|good|interesting|"
        "excellent|important)(?: question)?)$"
    ),
    "(?:question|q|query):",
    r"(?:i'm |i am |we're |we are )?(?:really |very |so |truly )?(?:sorry|afraid)\b",
    "(?:i |we |my )?(?:sincerely )?apolog",
    "unfortunately|regrettably",
    r"please\b",
    "(?:thank you|thanks) for",
    r"(?:sure|certainly|of course|hello|hi|dear|absolutely|okay|ok|hey)\b.{0,60}$",
    "(?:i'm |i am |i'd be )?happy to (?:help|assist)",
    "i (?:understand|appreciate|see) (?:that|your|you|the|why)",
    (
        "if you(?:'re|'d|'ve| are| have| need| would| can| could| want| let| provide| share| give| tell|"
        r" like| meant| mean| think)?\b"
    ),
    (
        "(?:feel free|let me know|is there (?:anything|something)|would you like|do you (?:have|want)|"
        "could you|can you|may i|what (?:else|would)|how (?:else )?(?:can|may) i)"
    ),
    (
        "i(?:'d| would|'ll| will|'m| am)? (?:also |still )?(?:be )?(?:can |could |may )?(?:recommend|"
        "suggest|advise|encourage|urge|happy to|glad to|here to|always here|strongly|"
        "like to (?:emphasi[sz]e|encourage|suggest)|only (?:answer|help|provide|based)|designed to)"
    ),
    (
        "(?:you|one) (?:may|might|could|can|should|would|will) (?:also |still |instead |"
        "perhaps )?(?:want to|wish to|need to|try|consult|check|contact|consider|find|look|search|refer|"
        "ask|visit|have to|be able to|reach)"
    ),
    (
        "(?:try|consult|contact|check|refer to|ask|see|consider|seek|reach out|visit|talk to|speak (?:to|"
        r"with)|call|rephrase|provide|upload|share|search|look)\b"
    ),
    (
        "(?:i|we) (?:can|could|may|might|'ll|will|would|'d) (?:only |try to |still |certainly |gladly |"
        "offer |provide |help |give |tell you |assist |discuss |share |suggest |instead |be able to |"
        "do my best|explain )*(?:(?:about |with |on |you )*(?:some |any |the |a few |more |other |general |"
        "something |anything )*(?:else|information|topics?|questions?|general|overview|tips|resources|help|"
        r"assist|offer|else in general|answer|guidance|alternatives|details)|you with)\b(?!.{0,80}:\s*$)"
    ),
    "(?:additional|more|further) (?:information|context|details|research)",
    (
        "(?:it|they|<strict>) (?:only |mainly |mostly |primarily |just |instead |does |do |"
        "simply )*(?:discuss|cover|focus|is about|are about|deals? with|talks? about|concerns?|relates?|"
        "is focused|are focused|contains? (?:information|details|only)|provides? (?:information|details|"
        "only|an overview)|only|appears? to|seems? to|describes?|mainly|pertains?|revolves?|centers?|"
        "consists?)"
    ),
    "<strict> (?:provided |given )?(?:is|are) (?:about|focused|related|mainly|primarily|only)",
    (
        r"(?:therefore|thus|hence|so|as such|consequently),? (?:i|it|the|this|we)\b.{0,80}(?:not|n't|unable|"
        "cannot|unanswerable|impossible)"
    ),
    (
        "(?:based on|according to|after (?:reviewing|reading|checking|searching)|having (?:reviewed|read|"
        "searched)|from) (?:<sources>|through|for|"
        r"the)\b.{0,40}$"
    ),
    (r"(?:i|we)(?: have|'ve)? (?:\w+ly )?<searched>\b.{0,80}$"),
    (
        "(?:as an|i am an|i'm an|i am just an|i'm just an|as a) (?:ai|artificial|language|large|assistant|"
        "virtual|honest|responsible)"
    ),
    (
        "(?:this|that|it) (?:is|would be|may be|might be) (?:outside|beyond|a question|best|better|"
        "personal|private|not (?:within|in|something|possible|appropriate))|(?:this|that|it) (?:depends|"
        "requires|would require)"
    ),
    r"for (?:more|further|additional|detailed|accurate|specific|up-to-date)\b",
    (
        "(?:a|your|the) (?:qualified |licensed |healthcare |medical |legal |mental |trusted |"
        "certified )+(?:professional|doctor|lawyer|attorney|advisor|provider|expert|person)"
    ),
    (
        "(?:my|your) (?:knowledge|training|purpose|goal|role|abilities|capabilities|request|question|"
        r"safety|privacy)\b"
    ),
    (
        "i (?:hope|wish|trust|must|need|have to|was|am designed|have searched|cannot|can't|don't|do not|"
        r"respect|prioriti|strive|aim)\b"
    ),
    "answer:?$",
)

MORAL = (
    ("that (?:would be|is) (?:unethical|illegal|harmful|wrong|dangerous)|i(?:'m| am) (?:programmed|designed|trained)"),
    (
        "it(?:'s| is) (?:also |always |never |really |crucial|essential|important|illegal|unethical|vital|"
        "necessary|critical|both|against|wrong|not (?:appropriate|ethical|acceptable|only|right|safe|okay|"
        "legal|possible|your))"
    ),
    r"instead\b|remember\b|additionally, it|alternatively",
    (
        "(?:such|these|those) (?:actions?|activities|behaviou?r|acts?|information|things)|doing so|"
        "this (?:could|can|may|includes?)|this is (?:a|not|because)"
    ),
    (
        r"(?:is|are|be|and|or|but|both|only|being|considered|not) (?:\w+ )?(?:illegal|unethical|immoral|"
        "inhumane|harmful|dangerous|reprehensible|private|confidential|unacceptable|inappropriate|"
        "a (?:serious )?crime|a violation|morally|fictional|personal)"
    ),
    (
        r"please|encourage|suggest|recommend|urge|in fact|regardless of|(?:the )?rights?\b|justif|inclusion|"
        "diversity|deserv|prioriti|victims"
    ),
    "never (?:acceptable|justified|okay|appropriate)|not acceptable|unacceptable",
    (
        "legal consequences|severe consequences|serious (?:harm|injury|legal|crime|consequences|and)|"
        "human rights|inherent dignity|dignity|respect|consent|privacy|discriminat|stereotyp|prejudice|"
        r"inclusiv|hatred|compassion|empathy|well-being|ethical|harm(?:s|ing|ed)?\b|violen|illegal|crime|"
        "emergency|hotline|helpline|crisis|law enforcement|authorities|professional|equal|safety|support|"
        "feelings|peaceful|lawful|legal|responsib|fictional|sensitive|moral"
    ),
    (
        "(?:everyone|all (?:people|individuals|human|humans|living)|every (?:human|individual|"
        "person)) (?:deserve|has|have|is|are|should|being)"
    ),
    "we should|let's|let us|people should|you should|be sure to|make sure",
)
