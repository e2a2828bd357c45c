"""What the patterns of English are made of."""

WORDS = {
    "sources": (
        "(?:(?:the|this|these|those|any|your|my|our|that|given|provided|available|retrieved|current|"
        "supplied|above|following|accompanying|attached|relevant|present|existing|of|reference|source|"
        "search|context|knowledge) )*(?:contexts?|documents?|passages?|texts?|articles?|sources?|"
        "materials?|excerpts?|snippets?|paragraphs?|results?|knowledge base|database|documentation|"
        "contents?|information|chunks?|transcript|files?|references?|conversation|corpus|data|extracts?|"
        "pages?|records?)(?: (?:provided|given|available|supplied|retrieved|shared|above|below|here|"
        "you (?:have )?(?:provided|shared|gave)(?: me)?|i (?:have|was given|was provided)(?: with|"
        " access to)?|at my disposal))*"
    ),
    "strict": (
        "(?:(?:the|this|these|those|your|given|provided|available|retrieved|current|supplied|above|of|both|"
        "all|none|any) )*(?:(?:given|provided|available|retrieved|supplied) (?:information|data|content|"
        "text|results?|details|files?|pages?)|(?:context|search results?|source|source documents?|"
        "knowledge base|documents?|passages?|articles?|sources|excerpts?|snippets?|paragraphs?|texts?|"
        "materials?|documentation|information|transcript|chunks?)(?: (?:provided|given|available|supplied|"
        "retrieved|above|here|you (?:have )?(?:provided|shared|gave)|i have access to|at my disposal|"
        "i was given))*)"
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
        "(?:can(?:no|'|)t|can not|could(?:n't| not)|(?:am|'m|was|are|'re|were) (?:not able|unable|"
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
    "know": (
        "(?:find|locate|determine|verify|confirm|tell|say|see|infer|identify|ascertain|establish|answer|"
        "conclude|retrieve|figure out|extract|respond to|give an answer|provide an answer)"
    ),
}
