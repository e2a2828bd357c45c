"""What the patterns of English are made of."""

_SHARED = (
    "(?:you(?: have|'ve)? (?:provided|shared|gave|given|uploaded|supplied|sent)(?: me)?(?: with)?|"
    "i(?: have|'ve| was)?(?: been)? (?:given|provided|shown)(?: with)?(?: access to)?|"
    "i(?: have|'ve got) access to|at (?:hand|my disposal))"
)
# Whatever was given for the answer is a source, whatever its name.
_NAMED = (
    r"(?:the|this|these|those|your) (?:(?:\w+ ){1,2}(?:provided|supplied|retrieved|"
    rf"{_SHARED})|(?:provided|supplied|retrieved|attached|uploaded) \w+)"
)

WORDS = {
    "sources": (
        "(?:(?:(?:the|this|these|those|any|your|my|our|that|given|provided|available|retrieved|current|"
        "supplied|above|following|accompanying|attached|relevant|present|existing|of|reference|source|"
        "search|context|knowledge) )*(?:contexts?|documents?|passages?|texts?|articles?|sources?|"
        "materials?|excerpts?|snippets?|paragraphs?|results?|knowledge base|database|documentation|"
        "contents?|information|chunks?|transcript|files?|references?|conversation|corpus|data|extracts?|"
        "pages?|records?)(?: (?:provided|given|available|supplied|retrieved|shared|above|below|here|"
        f"{_SHARED}|i (?:have|can see)))*|{_NAMED})"
    ),
    "strict": (
        "(?:(?:(?:the|this|these|those|your|given|provided|available|retrieved|current|supplied|above|of|both|"
        "all|none|any) )*(?:(?:given|provided|available|retrieved|supplied) (?:information|data|content|"
        "text|results?|details|files?|pages?)|(?:context|search results?|source|source documents?|"
        "knowledge base|documents?|passages?|articles?|sources|excerpts?|snippets?|paragraphs?|texts?|"
        "materials?|documentation|information|transcript|chunks?)(?: (?:provided|given|available|supplied|"
        f"retrieved|above|here|{_SHARED}))*)|{_NAMED})"
    ),
    "info": (
        "(?:(?:any|enough|sufficient|specific|the|a|an|relevant|further|more|additional|such|exact|"
        "explicit|clear|direct|detailed|adequate|necessary|much|to|be|required|reliable|accurate|complete|"
        "definitive|precise) )*(?:information|details?|answers?|mention|references?|context|knowledge|"
        "explanation|specifics|description|data to|data about|data on|discussion|indication)"
    ),
    "adverb": (
        "(?:(?:really|simply|just|currently|unfortunately|also|therefore|thus|still|regrettably|honestly|"
        "actually|personally|explicitly|directly|specifically|actually|clearly|even|confidently|"
        "definitively|accurately|reliably|ethically|in good conscience|at this time) )*"
    ),
    "unable": (
        "(?:can(?:no|'|)t|can not|could(?:n't| not)|(?:am|was|are|were|have been) (?:not able|unable|"
        "not in a position) to|"
        "won't be able to|will not be able to|wasn't able to|weren't able to|aren't able to|(?:was|were) not able to)"
    ),
    "help": (
        "(?:help|assist|provide|give|offer|share|discuss|comment|fulfill?|comply|support|suggest|encourage|"
        "endorse|promote|create|generate|write|engage|respond|advise|speculate|disclose|reveal|do (?:that|"
        "this|so)|satisfy|condone|participate|complete|process|continue|address|access|recommend|make|"
        "explain|list|facilitate|produce|answer|tell|say|teach|show|describe|diagnose|prescribe|interpret|"
        "predict|express|take part|be of|in good)"
    ),
    "will_not": "(?:will not|won't|would not|wouldn't|should not|shouldn't|must not|may not)",
    "says": (
        "(?:mention|specify|specifies|say|state|address|discuss|answer|cover|indicate|explain|describe|list|tell|"
        r"reveal|clarify|clarifies|give|provide|contain|include|offer|have|has|touch|shed)(?:e?s|ing)?\b"
    ),
    "searched": ("(?:searched|reviewed|checked|looked|read|went|gone|scanned|examined|consulted)"),
    "topic": (
        "(?:(?:only|mainly|mostly|primarily|just) )?(?:discuss(?:es)?|covers?|focus(?:es)?|describes?|talks?|deals?|"
        "relates?|concerns?|(?:is|are) (?:only |mainly |mostly |primarily |just )?(?:about|focused))"
    ),
    "know": (
        "(?:find|locate|determine|verify|confirm|tell|say|see|infer|identify|ascertain|establish|answer|"
        "conclude|retrieve|figure out|extract|respond to|give an answer|provide an answer)"
    ),
}
