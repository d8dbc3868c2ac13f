"""Phrases: the turns of phrase in which people say how things are to be done, in English.

Owns the patterns, a row for each turn. All are read against a sentence in lower case with straight quotes, from where
it or one of its clauses begins. Each row is bounded, so that no text takes long. How a message is taken apart is
``memfs.pipeline.corrections``' business.
"""

from __future__ import annotations

import re


def _rows(*rows: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row})" for row in rows))


# Verbs after "don't", "never" and "always" that make it talk: "don't worry", "never mind", "always nice to see".
_NO_ORDER = (
    r"(?!worr|know|think|mind|see\b|seen|saw|forget|underst|care\b|bother|believe|have\b|had\b|has\b|remember|panic|"
    r"need\b|like\b|liked|want|get\b|gets|got\b|hesitate|heard|hear\b|been|knew|tried|worked|works|happen|fail|again\b|"
    r"even\b|be (?:sorry|afraid|shy)|you (?:think|know|see|want|have|remember|mind|like|agree)|a\b|an\b|the\b|in my\b|"
    r"at\b|nice|good|great|fun|something|someone|used to|and\b|or\b|really\b|quite\b|sure\b)"
)
# What somebody does, or did: that is told, not asked for.
_NOT_TOLD = r"(?!\w+(?<![su])s\b|\w+(?<!e)ed\b)"
_DEEDS = (
    r"(?:use|do|commit|write|push|want|allow|put|add|merge|import|mock|deploy|rely|support|accept|edit|touch|test|log|"
    r"ship|publish|store|call|name|rebase|squash|catch|raise|throw|export|check in|hardcode|hard-code)"
)
_INSTEAD = (
    r"(?:use|do|make|write|put|keep|call|name|return|pass|add|run|create|just|only|always|never|don't|do not|it should|"
    r"it must|we|it's supposed|leave|ask|show|give|follow|import|commit|push|test|log|set|answer|explain|not)\b"
)
# Things of the work that a rule may be about.
_NOUN = (
    r"(?:code|variables?|names?|functions?|methods?|class(?:es)?|commits?|messages?|tests?|comments?|branch(?:es)?|"
    r"files?|filenames?|imports?|lines?|docs?|docstrings?|strings?|constants?|modules?|packages?|prs?|pull requests?|"
    r"migrations?|types?|endpoints?|scripts?|changes?|features?|bug ?fix(?:es)?|fix(?:es)?|logs?|dates?|errors?|"
    r"exceptions?|dependencies|answers?|snippets?|queries|configs?|secrets?|keys?)"
)
_NOT_A_STATE = (
    r"(?!have\b (?:been|\w+ed)|pass\b|work\b|be (?:green|fine|fixed|ok|there|here|done|ready|gone)|show|see\b|now\b)"
)

OPENING = re.compile(
    r"(?:(?:ok(?:ay)?|so|and|but|also|well|again|actually|please|pls|hey|hi|hello|look|listen|sorry|hm+|wait|oh|right|"
    r"alright|then|just|really|seriously|generally|in general|by the way|btw|fyi|note|important|reminder|thanks|"
    r"one more thing|thank you|great|good|nice|perfect|claude|assistant|copilot|everyone|team|"
    r"as i (?:already |just )?(?:said|told you|mentioned)(?: before| already| earlier)?)\b[\s,:;.!-]*){1,6}"
)
"""What may come before it: ``ok, but please``."""

CIRCUMSTANCE = _rows(
    r"(?:for|in|on|with|inside|within)\b[^,]{1,80}, ",
    r"(?:when|whenever|if|before|after|while) (?:(?:you|we|i|in doubt|unsure)\b|\w+ing\b)[^,]{0,80}, ",
    r"(?:in|for|on) (?:this|our|my) (?:repo|repository|project|codebase|code base|team|company|workspace) ",
)
"""When it holds: ``in this project``."""

REFUSAL = re.compile(
    r"(?:no+|nope|nah|wrong|incorrect|not like (?:that|this)|(?:that's|that is|this is) (?:wrong|incorrect|not right|"
    r"not what i (?:want|wanted|meant|asked for)))\s*(?:[,.:;!-]+\s*|(?=not |don't |do not |use ))"
)
"""``no,`` and ``that's wrong:``; what follows is what is wanted, where it begins as ``INSTEAD``."""
INSTEAD = re.compile(_INSTEAD)

ORDER = _rows(
    rf"(?:let's )?(?:don't|do not|never),? (?:you )?(?:ever )?(?P<deed>{_NO_ORDER}{_NOT_TOLD}\w.*)",
    rf"(?:let's )?always {_NO_ORDER}{_NOT_TOLD}\w+",
    r"(?:stop|quit) (?P<doing>\w+ing\b.*)",
    r"no more \w+",
    r"(?:try to )?(?:avoid|prefer) (?!is\b|was\b|the\b|this\b|that\b|to\b|not to (?:say|tell|answer))\S+",
    r"try to (?:always|never|keep)\b",
    r"stick (?:to|with) \w+",
    r"(?:ask|check with|tell|warn) (?:me |us )?(?:first|before|instead)\b|(?:ask|check with) me[.!]*$",
    r"keep (?:the |your |all )?\w+(?: \w+){0,2} (?:under|below|short|small|minimal|concise|simple|brief|stable|sorted|"
    r"separate|out of|free of|in sync)\b",
    rf"only (?:ever )?{_DEEDS}\b",
)
"""An order for good: ``never push to main``."""

RULE = _rows(
    r"(?:you (?:should|must|need to|have to|can) )?use \S.{0,200}?(?:, | )(?:instead\b|rather than |not |never )",
    r"use \S+(?: \S+){0,2} over \S+",
    r"use \S.{0,120}? (?:(?:in|for|on) (?:all|every|each|any|new)|everywhere|throughout)\b",
    rf"instead of [^,]{{1,120}}(?:, \w+| {_INSTEAD})",
    rf"not [^,]{{1,60}}, (?:but )?{_INSTEAD}",
    r"remember(?: to (?!me\b)|,?(?: that)? (?=we\b|i\b|you\b|this project|the project|all\b|our\b)|: )\S+",
    r"keep in mind(?: that|:|,)? \S+",
    r"make sure (?:to|that you|you|that we|we)? ?(?:always|never)\b",
    r"(?:whenever|every time|each time) (?:you|we)\b",
    rf"(?:(?!the\b|this\b|that\b|if\b|when\b|which\b|whether\b|an?\b|some\b|calling\b)\w+ ){{0,3}}{_NOUN} "
    rf"(?:must|should|has to|have to|needs? to) {_NOT_A_STATE}\w+",
    rf"(?:all|every|each) (?:\w+ ){{0,3}}{_NOUN} needs? \w+",
    r"(?:our|my|the) (?:\w+ )?(?:convention|rule|style|standard|policy|naming scheme|preference)s? "
    r"(?:is|are|would be)\b",
    r"it(?:'s| is) important (?:to me )?that you\b",
    r"(?!it |this |that |they |he |she )[\w' /-]{1,60} (?:should|must) (?:always|never)\b(?! have)",
    r"(?:it|that|this) should (?:be )?[^,]{1,60}, not \S+",
    r"[^,]{3,120}, always[.!]*$",
)
"""A rule: ``commits should always be signed``."""

PERSONAL = _rows(
    rf"we (?:always|never|only) {_NO_ORDER}{_NOT_TOLD}(?!saw|found|thought|met\b|\w+ into\b)\w+",
    rf"we (?:prefer\b|(?:don't|do not|no longer) {_DEEDS}\b)",
    r"i(?:'d| would) (?:really |much |strongly )?(?:rather|prefer)\b",
    r"i(?:'d| would) (?:really )?(?:like|want|appreciate) (?:you to (?:always|never|stop)|it (?:if|when) you)\b",
    r"i (?:really |strongly |generally |usually |always |much ){0,2}prefer\b(?! not to (?:say|tell))",
    r"i (?:really |do )?(?:don't|do not|never) (?:ever )?(?:want|like|need) (?:you|it (?:when|if) you|when you|any)\b",
    r"i (?:really )?hate (?:it )?when you\b",
    r"i(?: have|'ve)? (?:already |just )?told you (?:not to|to|never|always|no|that we)\b",
    r"i(?: have|'ve)? (?:already |just )?asked you (?:not to|to (?:always|never|stop|avoid))\b",
    r"i (?:already |just )?said (?:no|not|never|always|use|don't|stop)\b",
    r"i (?:always|usually|generally) (?:want|like|need|expect)\b",
    r"i (?:like (?:my|it when you)|(?:always|only) use|want you to (?:always|never|stop))\b",
    r"you (?:should|must|need to|have to|may|are to) (?:always|never|not)\b",
    r"you (?:shouldn't|mustn't|can't just|cannot just)(?: ever)? \w+",
    r"you must (?!have|be\b|know|see)\w+",
    r"you(?:'re| are) (?:not|never) (?:allowed|supposed|permitted|meant) to\b",
    r"you always (?:forget|use|add|write|put|leave|miss|ignore|skip|change|delete|rename|assume|guess)\b",
    r"you keep (?!getting|failing|hitting|going|trying|running into)(?:on )?\w+ing\b",
)
"""What somebody wants of somebody: ``I'd rather you asked``."""

ASKED = _rows(
    r"(?:can|could|would|will) you (?:please |pls )?(?:always|never|stop \w+ing|not \w+|avoid|quit \w+ing)\b.+",
    r"how many times (?:do|must|did) i\b",
)
"""A question that asks for it: ``could you please stop apologizing?``"""

FROM_NOW_ON = re.compile(
    r"\b(?:from (?:now|here|today) on(?:wards?| out)?|going forward|in (?:the )?future(?=,)|"
    r"(?:please|you|your|don't|do not|never|always|me)\b.{1,200} in (?:the )?future(?=[.!]*$)|"
    r"next time(?:,| (?=you|please|do|don't|use|run|ask|check|tell|show)))"
)
"""Wherever it stands, the sentence is meant for good."""

CALL_ME = re.compile(r"(?:[Pp]lease )?[Cc]all me [A-Z]\w+")
"""As written, since a name has a capital."""
