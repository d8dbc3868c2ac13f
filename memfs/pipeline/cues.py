"""Cues: what in a text gives away that it is a decision, a cause, an instruction, a passing remark.

Owns the words of each cue, and counting names, figures and words. What a cue is worth is the reviewers' business.
English only; of other languages names, figures and length still count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from memfs.index.analyzer import STOP_WORDS, tokens
from memfs.index.question import COMMON_WORDS

_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS
_LOOKED_AT = 5_000
"""Characters of a text that are looked at: a longer one has said by then what it is."""

_CUES: Mapping[str, str] = {
    "decision": r"decid(?:e|es|ed|ing)|decisions?|cho(?:se|sen|ice|ose|oses|osing)|agreed (?:to|on|that|with)|"
    r"agreement|settled (?:on|for)|adopt(?:s|ed|ing)?|select(?:s|ed)|opted|(?:go|going|went) with|switch(?:ed|ing)? "
    r"(?:to|from|over)|migrat(?:e|es|ed|ing)|mov(?:ed|ing) (?:away )?(?:to|from)|replac(?:e|es|ed|ing)|drop(?:ped)? "
    r"support|reject(?:ed|s)?|deprecat(?:e|ed|es)|standardi[sz]e[ds]?|instead of|rather than|picked|approved|"
    r"ruled out|no longer|abandon(?:ed)?|postponed|consolidated|committed to|evaluat(?:ed|ing)",
    "outcome": r"implement(?:s|ed)?|added|built|fix(?:ed|es)?|solved|resolved|refactored|rewrote|rewritten|shipped|"
    r"releas(?:ed|es)|deployed|complet(?:ed|es)|finished|merged|upgraded|removed|created|configured|introduced|wrote|"
    r"optimi[sz]ed|reduced|improved|increased|fail(?:ed|s|ure|ures)|broke|broken|crash(?:ed|es)?|timed out|lost|won|"
    r"passed|succeeded|succeeds|learn(?:ed|t)|discovered|found(?: out)?|noticed|reproduced|investigated|debugged|"
    r"tested|verified|documented|renamed|split|enabled|disabled|published|cancelled|canceled|hired|joined|started|"
    r"bought|sold|visited|returned|raised|leaked|deleted|received|went|got|met|saw|set up|installed|caught|reverted|"
    r"rolled back|graduated|earned|signed|opened|closed|launched|restored|recovered|paid|turned (?:on|off|\d+)",
    "cause": r"because|due to|root cause|caused|causes?:?|turned out|turns out|the reason|so that|in order to|as a "
    r"result|therefore|hence|leads? to|led to|which means|thanks to|since (?!\d|yesterday|last|this|the)|to (?:avoid|"
    r"prevent|ensure|keep|allow|reduce)|otherwise|that is why|that's why|owing to|prevents?|results? in",
    "rule": r"always|never|must(?:n't)?|should(?:n't)?|don't|do not|doesn't|avoid|ensure|make sure|requires?|required|"
    r"needs?|has to|have to|by default|default(?:s|ed)?|when(?:ever)?|unless|until|before|after|only|every|each|"
    r"policy|convention|standard|guideline|rule|limit(?:ed)?|at (?:most|least)|no more than|is not allowed|are not "
    r"allowed|forbidden|allowed|mandatory|optional|recommended|prefer(?:s|red)?(?: to)?|keep|expects?|use|uses|using|"
    r"run|set|depends? on|supports?|works? (?:with|by|only)|means?|returns?|handles?|stores?|owns?|follows?",
    "preference": r"prefer(?:s|red|ence|ences)?|likes?|liked|loves?|loved|hates?|dislikes?|favou?rites?|enjoys?|"
    r"enjoyed|would rather|rather than|wants?|wanted|hopes?|dreams? of|passionate|interested in|fan of|afraid of|"
    r"allergic|vegetarian|vegan|habit|usually|every (?:day|morning|week|night|weekend|year)|feels?|felt|proud",
    "person": r"my (?:name|wife|husband|partner|mother|mom|father|dad|sister|brother|son|daughter|dog|cat|boss|manager|"
    r"team|job|birthday|phone|address|home|company|family|kids?|grandma|grandpa)|lives? in|lived in|works? (?:at|as|"
    r"for|on)|worked (?:at|as|for)|born|birthday|married|engaged|(?:speaks?|studied|studies|teaches|manages?|leads?|"
    r"reports? to|in charge of|responsible for|owner|maintainer|manager|engineer|developer|designer|customer|client|"
    r"colleague|contact|expert in|knows?|friend)",
    "plan": r"to-?dos?|remember to|remind(?:er)?|need(?:s|ed)? to|plan(?:s|ned|ning)? (?:to|on|for)|later|follow[- ]up|"
    r"deadline|due|schedul(?:e|ed)|going to|gonna|will|want(?:s|ed)? to|have to|must|next (?:week|month|sprint|step|"
    r"release|year|quarter)|tomorrow|tonight|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|by end of|before (?:the )?"
    r"(?:release|launch|merge|deploy)|milestone|backlog|pending|eventually|upcoming|goal",
    "steps": r"steps?|first(?:ly)?,?|then|next,|finally|after that|how to|in order to|workflow|procedure|checklist|"
    r"recipe|playbook|runbook",
    "state": r"is|are|was|were|has|have|had|contains?|lists?|consists? of|lies|lives|sits|listens?|expires?|costs?|"
    r"takes?|includes?|provides?|runs?|serves?|holds?|belongs?|called|named|located|equals?|maps? to|points? to|"
    r"inherits?|implements|exposes?|accepts?|rejects|shares?|connects?|starts?|ends?|happens?|lasts?|opens|closes",
    "passing": r"right now|at the moment|for a (?:moment|second|minute)|brb|hold on|hang on|let me|let's see|one sec|"
    r"one moment|i'?ll (?:take|have|check|look|do|try|get|start|go|begin|now|be)|i(?:'m| am) (?:now |just |currently |"
    r"still )*(?:looking|checking|reading|opening|running|typing|working on|thinking|going to|trying|about|here|back)|"
    r"(?:now|just) (?:looking|checking|reading|opening|running|trying)|looking into|taking a look|still (?:running|"
    r"waiting|thinking|looking|working)|here (?:is|are|'s) the|as you can see|see (?:above|below)|hope (?:this|that) "
    r"helps|as mentioned|feel free|sounds good|no problem|of course|i see|got it|good luck|catch you|talk (?:to you )?"
    r"(?:soon|later)|take your time|up to you|whenever you",
    "vague": r"something|somehow|somewhere|someone|stuff|things?|thingy|whatever|some kind|maybe|perhaps|not sure|"
    r"i guess|i think so|kind of|sort of|probably|etc|and so on|a bit|a lot|various|and all that|you know|"
    r"pretty much|like that|like this|this one|that one|the usual|no idea",
}
_PATTERNS = {name: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.I) for name, words in _CUES.items()}
_TASK = re.compile(
    r"(?:please |can you |could you |we need to |i need to |you should |let's )?"
    r"(?:(?:don['\u2019]t|do not|never|always) )?"
    r"(?:add|fix|update|refactor|implement|write|create|remove|delete|rename|check|review|test|migrate|document|investigate|deploy|upgrade|replace|move|make|"
    r"build|optimi[sz]e|configure|set up|design|research|call|email|ask|send|order|buy|book|prepare|finish|clean up|"
    r"use|prefer|run|keep|avoid|split|merge|rotate|bump|pin|enable|disable|convert|port|extract|sign|renew|ship|wait|"
    r"store|cache|log|validate|treat|put|name|return|close|open|restart|reset|verify|back up|format|wrap|debug|answer|"
    r"reply|explain|show|list|find|try|revert|release|publish|tag|squash|rebase|mock|measure|profile|scale|no|to)\b"
    r"(?! (?:you|way|idea|problem|worries|doubt|one|more|wonder|need)\b)",
    re.I,
)
_NUMBERED = re.compile(r"(?m)^[ \t]*(?:\d+[.)]|[-*])\s+\S|(?<=[:;,.\s])\(?[1-9][.)]\s+\S|\s(?:->|→|=>)\s")
_NAME = re.compile(
    r"(?<![\w`'])(?:`[^`\n]+`|https?://\S+|[\w.-]{1,64}@[\w-]{1,64}\.[\w.]+|[\w.-]{0,64}(?:/[\w.-]+)+|[A-Za-z]\w*_\w+|"
    r"[A-Z][a-z]+(?:[A-Z][a-z]*)+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|[A-Za-z]+\d\w*|\w+\.(?:py|js|ts|go|rs|md|ya?ml|toml|"
    r"json|sh|sql|html|css|java|txt|cfg|ini|lock)\b)"
)
_PROPER = re.compile(r"(?<=[a-z0-9,;:)] )[A-Z][a-z]+\b(?:[ -][A-Z][a-z]+\b)*")
_FIGURE = re.compile(r"(?<![\w.])[$€£v#]?\d[\d,.:/]*(?:\s?(?:%|ms|s|min|h|days?|weeks?|months?|years?|[KMGT]i?B))?\b")
_SENTENCE = re.compile(r"(?<![.!?\n])[.!?\n]+(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Traits:
    """What one text shows.

    Attributes:
        words: how many words it has that tell something: none that people say about anything.
        variety: distinct ones of these words by all of them, 1 for none.
        letters: letters and blanks by characters.
        names: distinct names, identifiers, paths and links.
        figures: distinct numbers, dates and versions.
        cues: how often each cue occurs; a cue that does not is absent.
        asks: whether nothing but a question is put.
        orders: whether it begins as an order does.
        steps: marks of a list of steps.
    """

    words: int
    variety: float
    letters: float
    names: int
    figures: int
    cues: Mapping[str, int]
    asks: bool
    orders: bool
    steps: int

    def has(self, *names: str) -> bool:
        """Whether any of these cues occurs."""
        return any(name in self.cues for name in names)


def traits(text: str) -> Traits:
    """What a text shows; of a long one, its first 5,000 characters."""
    return _traits(text[:_LOOKED_AT].strip())


@lru_cache(maxsize=64)
def _traits(text: str) -> Traits:
    words = [word.casefold() for word, stems in tokens(text) if stems and word.casefold() not in _EMPTY_WORDS]
    counted = {name: len(pattern.findall(text)) for name, pattern in _PATTERNS.items()}
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    return Traits(
        words=len(words),
        variety=len(set(words)) / len(words) if words else 1.0,
        letters=sum(character.isalnum() or character.isspace() for character in text) / max(len(text), 1),
        names=len({*_NAME.findall(text), *_PROPER.findall(text)}),
        figures=len(set(_FIGURE.findall(text))),
        cues={name: number for name, number in counted.items() if number},
        asks=text.endswith("?") and len(sentences) <= 1,
        orders=_TASK.match(text) is not None,
        steps=len(_NUMBERED.findall(text)),
    )
