"""How English refuses."""

from __future__ import annotations

from rag_eval.refusing._english_idle import IDLE, MORAL
from rag_eval.refusing._english_words import WORDS
from rag_eval.refusing._language import Language

ENGLISH = Language(
    code="en",
    hints=(
        "only|nothing|missing|absent|need|prevent|prohibit|forbid|violates|rather|prefer|t|not|cant|dont|no|"
        "unable|cannot|unanswerable|insufficient|decline|"
        "beyond|outside|lack|lacks|none|neither|inappropriate|unethical|refuse|against|fail|fails|omits|omit|"
        "silent|irrelevant|unclear|unrelated|impossible|empty|nowhere"
    ),
    declines=(
        "i (?:don't|do not) feel comfortable",
        "i(?:'d| would) (?:rather|prefer) not",
        "i(?:'m| am) going to have to (?:respectfully )?decline",
        (
            "(?:that|this|it)(?:'s| is) (?:not something|something) (?:that )?i(?:'m| am) (?:not )?(?:able|"
            "willing|allowed)"
        ),
        r"i \w+ .{0,60}? and (?:cannot|can't|can not|am unable to|won't) <help>",
        (
            "it (?:would not be |wouldn't be |would be in)appropriate (?:for me )?to (?:provide|share|"
            "discuss|give|offer|comment|"
            "speculate|answer)"
        ),
        (
            "my (?:guidelines|programming|policies|policy|training|instructions) (?:prevents?|(?:does|do)(?:n't|"
            " not) (?:allow|"
            "permit)|prohibits?|forbids?)"
        ),
        (
            "(?:this|your|that|the) request (?:violates|goes against|is against|cannot be (?:completed|fulfilled|"
            "processed))"
        ),
        "i(?:'m| am) only (?:able|allowed|designed|trained) to (?:answer|help|assist|provide|discuss|respond)",
        (
            "^(?:(?:nope|no|sorry|hmm),? )?(?:can't|cannot|can not) (?:help|assist|answer|do)(?= (?:you|with|"
            "that|this|it)|$)"
        ),
        (
            "i (?:don't|do not) (?:think|believe) (?:that )?i (?:can|am able to|should) (?:answer|help|assist|"
            "provide|discuss)"
        ),
        # In one, since each such beginning is tried at every word.
        (
            "(?:i|we)(?:(?: <adverb>(?:(?:<unable>|<will_not>),? (?:and|or|nor) )?<unable>|"
            "(?:'m|'re|'ve been| am| are) <adverb>(?:not able|unable) to) <adverb>"
            r"<help>(?!.{0,60} enough\b)|"
            "(?: <adverb>(?:(?:<unable>|<will_not>),? (?:and|or|nor) <will_not>|will not|won't|would not|"
            "wouldn't|would rather not)|'ll not|'d (?:rather )?not) <adverb><help>)"
        ),
        (
            "(?:i|we)(?:(?:'ll|'d) have to|(?:'m|'re) going to)? <adverb>(?:(?:must|have to|need to|will|"
            "(?:will|would) have to|"
            r"(?:am|are) going to) )?(?:respectfully |politely )?(?:decline|refuse)\b(?! in| of)"
        ),
        "i (?:can|am able to|am only able to|could) only (?:answer|help|assist|provide|respond|discuss)",
        (
            r"i(?:'m| am) (?:just |only )?an? (?:ai|language|virtual|large)\b.{0,60}? (?:can't|cannot|can not|"
            "am not able to|unable to) <adverb><help>"
        ),
        (
            "i(?:'m| am) <adverb>not (?:allowed|permitted|authori[sz]ed|comfortable|programmed|designed|"
            "qualified|equipped|going to <help>|willing)"
        ),
        (
            "(?:that|this|it)(?:'s| is) (?:something|not something|a topic) (?:that )?i <adverb>(?:can't|"
            "cannot|can|won't|am unable to)(?= <help>| help)"
        ),
        (
            "it(?:'s| is| would be| is also) (?:not|never|neither) (?:appropriate|ethical|acceptable|"
            r"responsible)(?:,? (?:or|and|nor) \w+)* (?:for me )?to (?:provide|share|offer|suggest ways|"
            "encourage|promote|discuss|assist|try to|create|generate|speculate|engage)"
        ),
        (
            r"(?<!\w )it(?:'s| is) (?:not|never|neither) (?:appropriate|ethical|acceptable|respectful|accurate|"
            "fair|safe|productive)(?:,? (?:or|and|nor) (?:ethical|appropriate|acceptable|respectful|"
            "responsible|safe|fair|legal|accurate|productive|humane))+ to"
        ),
        "it(?:'s| is) (?:not appropriate|inappropriate|unethical) (?:for me to|to (?:suggest|say) that)",
        (
            "i (?:do not|don't) (?:think|believe|feel) (?:that )?it(?:'s| is| would be) (?:appropriate|ethical|"
            "respectful|right|acceptable)"
        ),
        "i(?:'m| am) not sure (?:that )?it(?:'s| is) (?:appropriate|ethical)",
        (
            "it(?:'s| is) (?:against|not within|outside) my (?:programming|guidelines|policy|policies|ethical|"
            "capabilities|purpose)"
        ),
        (
            "(?:that|this|it|which|your request|your question) (?:goes|is|would be|would go|falls) (?:against|"
            r"outside(?: of)?) my (?:programming|guidelines|polic|ethical|capabilit|purpose|scope|expertise)\w*"
        ),
        "(?:i'm|i am|we're|we are) (?:really |very |so )?(?:sorry|afraid),? (?:but )?i <unable>(?: do)?",
        "sorry,? (?:but )?(?:i|we) (?:can't|cannot|can not)",
    ),
    lacks=(
        (
            "(?:i(?:'m| am) .{0,40}? and (?:i )?|i )(?:do not|don't) have (?:the (?:ability|capability|capacity|"
            "means) to|an opinion)"
        ),
        "i have no (?:access|ability|way of|way to|means)",
        (
            "(?:it (?:does not|doesn't)|it (?:appears|seems|looks like)(?: that)?) (?:(?:appear|"
            "seem) that )?<strict> (?:does not|"
            "do not|doesn't|don't|covers?|includes?|contains?|mentions?|provides?)"
        ),
        (
            r"(?:none|neither) of (?:them|these|those|it) (?:\w+ )?(?:mention|contain|provide|discuss|address|"
            "answer|specif|"
            r"cover|state|include)\w*"
        ),
        "no mention of .{0,60}? (?:is|was) made",
        "i (?:don't|do not) see (?:it|this|that|any|anything)",
        (
            r"as an ai\b.{0,60}? i (?:do not|don't|can't|cannot) (?:hold|have|possess) (?:any )?(?:personal|"
            "political|the ability|feelings|opinions|beliefs|access)"
        ),
        ("i (?:really |honestly |simply |just |still )?(?:do not|don't|dont) (?:currently |actually |really )?know"),
        "we (?:do not|don't) know(?: the answer| how to answer|$|[.!])",
        (
            "i(?: would|'d| will|'ll)? need (?:some |much |a bit )?(?:more|additional|further|other|"
            "different) (?:information|context|details|documents|sources)"
        ),
        (
            "(?:i|we) (?:currently |unfortunately |also |simply |just )*(?:do not|don't|didn't|"
            "did not) (?:currently |actually )?(?:have|possess|see|find) (?:access to )?(?:<info>|information|"
            "that|an answer|the answer|access|any record|any idea|any data|enough|sufficient|anything)"
        ),
        (
            r"(?:i|we) (?:currently )?have (?:no|insufficient) (?:\w+ )?(?:information|idea|knowledge|answer|"
            "record|details|data|context|clue)"
        ),
        (
            "(?:i|we) lack (?:the |any |enough |sufficient |specific |necessary )*(?:information|context|"
            "knowledge|details|data|access)"
        ),
        (
            "i(?:'m| am) (?:really |honestly )?not (?:sure|certain) (?:about that|how to answer|what you|"
            "i (?:can|have|know)|of the answer|based on|from <sources>)"
        ),
        "i(?:'m| am) not (?:familiar with|aware of (?:any|that|this) (?:information|details|such))",
        "i <adverb><unable> <adverb><know>",
        "(?:i'm|i am|i've been|we're|we are|we've been) <adverb>(?:not able|unable) to <adverb><know>",
        (
            "we <adverb><unable> <adverb>(?:find|locate|determine|answer) (?:<info>|any(?:thing)?|this|that|"
            "the answer|your|what|results)"
        ),
        (
            r"(?:i|we|but|and|yet)(?: have|'ve)? (?:found|see|saw) (?:no|nothing)(?: \w+)? ?(?:information|mention|"
            "results|relevant|answer|documents?|about|on|regarding|in <sources>)"
        ),
        (
            r"(?:(?:i|we|but|and|yet) (?:\w+ )?|(?<![^,;:] ))(?:could not|couldn't|cannot|can't|unable to|not able to|"
            "did not|didn't) (?:find|locate) (?:<info>|an answer|anything|that|this|it in)"
        ),
        (
            r"(?:i|we)(?: have|'ve)? (?:\w+ly )?<searched>\b.{0,80}?,? (?:but|and|yet) (?:<unable>|did not|didn't) "
            "(?:find|locate|see)"
        ),
        (
            "you (?:have not|haven't|did not|didn't) (?:provided?|shared?|upload(?:ed)?|give|given|send|sent|"
            "attach(?:ed)?) (?:me )?(?:with )?(?:any |the |enough )*(?:<info>|<sources>)"
        ),
        "(?<![^,;:] )unable to (?:answer|determine|provide)",  # of others it would say who is
        (
            "(?:i|we) (?:do not|don't) (?:think|believe|feel|see (?:that|how|where)) (?:that )?(?:<strict> "
            "(?:actually |"
            "really |directly )?<says>|(?:that|this|it)(?:'s| is| was) (?:covered|mentioned|addressed|discussed|"
            "answered|included|stated|specified|described|in <sources>)|there(?:'s| is) (?:any|enough|"
            "sufficient) <info>)"
        ),
        r"no (?:part|section|page|passage|portion|chapter) (?:of|in) <sources> (?:\w+ly )?<says>",
        "nowhere in <sources> (?:is|are|was|were|does|do|did|can|could)",
        (
            "(?:i|we)(?: (?:was|were|have|had|am|are)|'ve|'m|'re)(?: not|n't)(?: been)? (?:provided|given|supplied|"
            "shown)(?: with)? (?:any |the )*(?:<info>|<sources>)"
        ),
        (
            r"there(?:'s| is| are)(?: no|n't an?y?) (?:sections?|entry|entries|chapters?|pages?|"
            r"articles?) (?:\w+ ){0,3}?(?:on|about|that|which|regarding|covering|dealing|for)"
        ),
        r"(?:isn't|is not|wasn't|was not) anything (?:\w+ ){0,4}?(?:in|from) <sources>",
        (
            "<strict>,? <adverb>(?:does|do|did) ?(?:not|n't) <adverb>(?:seem to |appear to )?(?:mention|"
            "specify|say|state|address|discuss|answer|cover|indicate|explain|describe|list|tell|reveal|"
            "disclose|clarify|name|talk about|touch on|shed|refer to|give|provide|contain|include|have|offer|supply|"
            "present|elaborate|go into|detail|identify|speak|support an|allow)"
        ),
        (
            "<sources>,? <adverb>(?:does|do|did) ?(?:not|n't) <adverb>(?:seem to |appear to )?(?:contain|"
            "provide|include|have|offer|give|supply|hold) <info>"
        ),
        (
            r"(?:none|neither) of <sources> (?:\w+ )?(?:mention|contain|provide|discuss|address|answer|specif|"
            r"cover|state|include|say|give|has|have|describe)\w*"
        ),
        (
            "<strict> (?:(?:is|are) (?:silent|insufficient|unclear|irrelevant|empty|unrelated)|(?:is|are)(?: not|n't) "
            "(?:sufficient|clear|relevant|related)|(?:says?|mentions?|states?|contains?|provides?|gives?) nothing|"
            "(?:contains?|provides?|has|have|includes?|offers?|gives?|makes?) (?:no|insufficient|"
            r"not enough) (?:\w+ )?(?:information|mention|details|answer|reference|data|indication|explanation|"
            "description)|(?:has|have|contains?) no (?:entry|entries|record|section)|"
            "lacks?|fails? to (?:mention|specify|provide|answer|address|state)|omits?|nowhere <says>|"
            "(?:does|do)(?: not|n't) (?:seem|appear) to be (?:relevant|related|about|connected)|"
            r"(?:seems?|appears?) to be (?:\w+ly )?(?:unrelated|irrelevant|off-topic|about something else)|"
            "<topic> .{1,120}?,? (?:but|and|yet|though) (?:it |they )?(?:does|do)(?: not|n't) <adverb><says>)"
        ),
        (
            "(?:while|although|though) <strict> .{0,120}?,? (?:it|they) (?:does|do)(?: not|"
            r"n't) <adverb>(?:\w+ )?(?:mention|specify|provide|contain|give|say|state|address|include|discuss|"
            "explain|describe|cover)"
        ),
        r"nothing (?:\w+ ){0,3}?(?:in|from) <sources>",
        "nothing (?:about|on|regarding) .{0,60}?(?:in <sources>|mentioned|stated|said)",
        "(?:missing|absent|omitted) from <strict>",
        (
            r"there (?:is|are|was|were)(?: not|n't) (?:any|enough|sufficient) (?:\w+ )?(?:information|details|"
            "context|data|mention|evidence to)"
        ),
        "it(?:'s| is) (?:unclear|unknown|uncertain) (?:from|based on|in|given) <sources>",
        (
            "(?:based on|according to|from|given) <sources>,? (?:it|this|that)(?:'s| is) (?:unclear|not clear|"
            "unknown|uncertain)"
        ),
        "(?:it(?:'s| is) not|it isn't|it is im) ?possible to (?:answer (?:the|this|your|that)|determine|say|tell|know)",
        (
            r"(?:cannot|can't|could not|couldn't|unable to) (?:be )?answer(?:ed)? (?:\w+ ){0,3}?(?:based on|"
            "from|using|with|given)"
        ),
        ("(?:i|we) (?:did not|didn't) find (?:any|this|that|it|the answer|an answer|relevant|information|anything)"),
        (
            "(?:that|this|it)(?:'s| is) (?:outside|beyond)(?: of)? (?:the |my )?(?:scope|knowledge|area|"
            r"expertise|capabilit|context)\w*"
        ),
        (
            "(?:there(?:'s| is| are| was| were)|there (?:does not|doesn't) (?:seem|"
            "appear) to be) (?:currently |also |simply )?(?:no|not|not any|not enough|insufficient|n't|n't any|"
            r"n't enough|any) (?:\w+ ){0,2}?(?:information|details|answer) (?:is |was |were )?(?:available|"
            "provided|given|about|on|regarding|in|concerning|to|that|related|relating|for|here|as to|found|"
            r"specif\w+|mention\w*|contained|present\w*|within|from)"
        ),
        (
            "there(?:'s| is| are| was| were|'re) (?:no|not any|no specific|no explicit|no direct|isn't any|"
            r"not a) (?:\w+ )?(?:mention|reference|discussion|indication|details?|information|description|"
            "explanation|data|answer|evidence|statement|basis|record)s?(?: .{0,120}?)? (?:in|within|from|"
            "based on|by) <sources>"
        ),
        (
            "(?:based on|according to|from|in|within|given|per) <sources>,? (?:.{0,40}? )?there(?:'s| is|"
            " are) (?:no|not|n't)"
        ),
        (
            r"(?:no|not enough|insufficient|inadequate) (?:\w+ )?(?:information|context|details|"
            "data)(?: .{0,80}?)? (?:(?:is|was|are|were) (?:available|provided|given|found|included|present)|"
            "to (?:answer|determine|provide|say|tell|respond|know|conclude|address)|in <sources>)"
        ),
        (
            "no (?:relevant |matching |specific |such |suitable )*(?:information|results?|answers?|documents?|"
            "mention|passages?|sources?|content|matches|details|data|context)(?: .{0,80}?)? (?:(?:was|were|is|"
            "are|could be|has been|have been|can be) )?(?:found|available|provided|retrieved|located|given)"
        ),
        # Not in a source that is pointed at: a degree may well be not in information technology.
        (
            "(?:is|are|was|were)(?: not|n't| nowhere) <adverb>(?:(?:mentioned|specified|stated|provided|given|included|"
            "discussed|addressed|covered|available|found|contained|described|indicated|present|listed|detailed|"
            "clear|disclosed|explained|named|answered|identified)(?: .{0,60}?)? (?:in|within|by|from|"
            "on) <strict>|in (?=(?:the|this|these|those|your|any|provided|given) )<strict>)"
        ),
        "(?:is|are|was|were)(?: not|n't) (?:mentioned|specified|stated|provided|discussed) (?:anywhere|here)",
        (
            "(?:it|that|this)(?:'s| is) not (?:possible|clear) (?:.{0,60}? )?(?:from|based on|given|using|with|"
            "in) <sources>"
        ),
        (
            "(?:it is|it's) (?:impossible|not possible) to (?:answer|determine|say|tell|know|provide|"
            "give)(?: .{0,90}? (?:from|based on|given|using|with|without|in|as) )?"
        ),
        (
            "(?:can(?:no|')t|can not|could not|couldn't) be (?:definitively |accurately |reliably |directly |"
            "fully )?(?:determined|answered|found|inferred|established|verified|derived|concluded|ascertained|"
            "identified)(?: .{0,60}?)? (?:from|in|based on|using|with|given|by|within|"
            "on the basis of) <sources>"
        ),
        (
            "(?:this|the|your|that) (?:question|query|request)(?: .{0,30}?)? (?:cannot|can't|can not|"
            "could not) be (?:answered|addressed|determined)"
        ),
        (
            "(?:this|the|your|that) (?:question|query)(?: .{0,40}?)? (?:(?:is|remains) (?:unanswerable|"
            "outside|beyond)|(?:is|remains)(?: not|n't) (?:answerable|answered|covered|addressed|related))"
        ),
        (
            "the answer(?: to (?:this|that|the|your) question)?(?: .{0,60}?)? (?:is not|isn't|cannot be|"
            "can't be|could not be|couldn't be|was not|wasn't|is nowhere) (?:found|in|provided|available|given|"
            "contained|known|determined|present|mentioned|stated|included|to be found|within|specified|located|"
            "explicitly)"
        ),
        (
            "(?:is|are|falls|lies) (?:beyond|outside)(?: of)? (?:the scope of <sources>|my (?:knowledge|scope|"
            "expertise|training))"
        ),
        (
            "(?:that|this|which) (?:information )?(?:is|was) not (?:something i|in my|available to me|"
            "part of <sources>|within)"
        ),
        (
            "not (?:mentioned|specified|stated|found|provided|available|given|addressed|covered|"
            "discussed) (?:in|by|within) <strict>"
        ),
        (
            "(?:it|they|but|and|while|although|however,?) (?:it |they )?(?:does|do)(?: not|"
            "n't) <adverb>(?:(?:seem|appear) to (?:describe|cover|discuss|explain)|(?:(?:seem|appear) to "
            ")?(?:mention|specify|address|(?:provide|contain|include|give|offer|have) <info>))"
        ),
        "(?:is|as|remains) unanswerable",
    ),
    turns=(
        "but|however|nevertheless|nonetheless|that said|having said that|although|though|still,|yet|what i can|"
        "on the other hand|even so|that being said|so i(?:'ve| have)(?! to | no | not | been )"
    ),
    lead=(
        "(?:(?:and|so|also|instead|therefore|thus|in (?:that|this|such) cases?|perhaps|maybe|of course|then|"
        "as such|alternatively|for that),? )+"
    ),
    idle=IDLE,
    moral=MORAL,
    before=(
        "if|when|whenever|whether|unless|once|until|where|in case|even if|that says|message|he says|she says|"
        "they say|who say|who says|say|said|saying|reply|replied|replies"
    ),
    concedes="while|although|though|even though|whilst",
    whole=(
        "it's not mentioned|it is not mentioned|it is not stated|nothing was found|nothing found|dont know|"
        "not in the documents|"
        "i don't know|i do not know|i dont know|idk|don't know|do not know|i'm not sure|i am not sure|not sure|"
        "no idea|i have no idea|no answer|no answer found|no answer available|unanswerable|not answerable|n/a|"
        "not available|not found|not mentioned|not specified|not stated|not provided|not given|not in context|"
        "not in the context|insufficient information|not enough information|no information|"
        "no information available|no information found|no relevant information|no relevant information found|"
        "no results|no results found|cannot answer|can't answer|cannot be determined|cannot determine|"
        "unable to answer|unknown from context|i can't say|i cannot say|i can't|i cannot|no comment|"
        "insufficient context|not enough context|information not found|information not available|"
        "answer not found|out of scope|i pass|i refuse|i decline"
    ),
    words=WORDS,
)
