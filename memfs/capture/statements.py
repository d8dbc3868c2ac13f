"""Statements: which sentences of an agent's message decide or state something that lasts (seed 003, C6).

Owns what makes a sentence a decision or a piece of knowledge, and of which sort. It is precise rather than greedy: most
of what an agent says is about the moment, and is passed over. English is understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memfs.capture.sentences import sentences
from memfs.pipeline.corrections import is_correction

MOST = 5
"""Of one message, so many decisions and so many pieces of knowledge at most."""
_FEWEST_WORDS, _MOST_WORDS, _LONGEST = 5, 60, 400
_TOLD_BY_PERSONS = frozenset({"location", "fact"})
_FEWEST_NAMING = 4  # a path says more than a word

# About the moment, about what might be, or a question: nothing that lasts.
_PASSING = re.compile(
    r"^(?:(?:now|next|then|first|ok(?:ay)?|great|perfect|so|and|but|also|alright|good|done|sure|finally),? )*"
    r"(?:let me|let's|lets|i'?ll|i will|i'?m (?:going|about|now)|i am (?:going|about|now)|i can|i could|i would|"
    r"i'd|i should|i need|i think|i believe|i suspect|would you|do you|should (?:i|we)|shall|could you|can you|please|"
    r"you (?:can|could|may|might|should|need|want|must|will)|if (?:you|i|we)|want me|feel free|happy to|"
    r"here(?:'s| is| are)|see |try |running|checking|looking)\b|"
    r"\b(?:might|maybe|perhaps|probably|possibly|i guess|not sure|unclear|whether|would be|could be|may be|seems?|"
    r"appears?|likely|let me know|right now|at the moment|for now|should i|haven't decided|undecided|"
    r"in this (?:environment|sandbox|session)|not (?:yet )?decided|to be decided|have to decide|need to decide|"
    r"needs? (?:to be decided|your))\b|\b(?:here|yet|now)[.!]?$",
    re.I,
)
_WHO = r"(?:we|i|they|the team|the user|you|it was|was|were|have|has|had|'ve|and|then|also|finally)"
_DECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "rejection",
        re.compile(
            rf"\b(?:decided (?:against|not to)|chose not to|opted (?:against|not to)|ruled out|agreed not to|{_WHO} "
            r"(?:rejected|abandoned|discarded|dropped (?:support|the)))\b",
            re.I,
        ),
    ),
    ("deferral", re.compile(rf"\b{_WHO} (?:postponed|deferred)\b|\bdecided to (?:postpone|defer)\b", re.I)),
    (
        "choice",
        re.compile(
            r"\b(?:decided (?:to|on|that|upon)|decision(?: was)?:|the decision (?:is|was)|settled on|opted (?:for|to)|"
            rf"agreed (?:to|on|that)|{_WHO} (?:chose|chosen|picked|selected|went with|standardi[sz]ed on|adopted))\b|"
            r"\bdecision: ",
            re.I,
        ),
    ),
    (
        "change",
        re.compile(
            rf"\b{_WHO} (?:now )?(?:switched|migrated|replaced|swapped|ported)\b.{{1,200}}?"
            r"\b(?:from .{1,120}? to|to|with|by|in favou?r of|over to)\b|"
            r"^(?:switched|migrated|replaced|ported)\b.{1,200}?\b(?:to|with|by|in favou?r of)\b|"
            rf"\b{_WHO} moved\b.{{1,100}}?\b(?:away from|over to|into its own|from .{{1,120}}? to)\b|"
            r"\bnow uses? .{1,120}? instead of\b",
            re.I,
        ),
    ),
)
_KNOWLEDGE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "cause",
        re.compile(
            r"\b(?:root cause|(?:cause|reason|culprit|problem|bug|issue|failure|fix|solution|workaround)) "
            r"(?:is|was|were|turned out)\b(?! (?:fixed|solved|resolved|gone|now|still|not|that you|in progress|done))|"
            r"\b(?:is|was|were) caused by\b|\bturn(?:s|ed) out (?:that|to be|the)\b",
            re.I,
        ),
    ),
    (
        "lesson",
        re.compile(
            r"\b(?:lessons?(?: learned)?:|(?:we|i) (?:have )?learn(?:ed|t) (?:that|to)|note to self|remember that|"
            r"keep in mind(?: that)?|next time|from now on|going forward)|"
            r"^(?:important|gotcha|caveat|lesson|learning|takeaway)(?: learned)?: |"
            r"^(?:never|always) (?!mind\b)[a-z]+ ",
            re.I,
        ),
    ),
    (
        "constraint",
        re.compile(
            r"^(?!(?:this|that|it|these|those|everything|nothing|all|there) )(?:the |a |an |every |each |all )?"
            r"(?!i\b|we\b|you\b)[\w`'\"./@:()*-]+(?: [\w`'\"./@:()*-]+){0,7} (?:must(?: not| never| always)?|requires?|"
            r"only works?|works only|only accepts?|accepts only|cannot|can not|can't|has to|have to|is limited to|"
            r"are limited to|"
            r"should (?:never|always)) ",
            re.I,
        ),
    ),
    (
        "location",
        re.compile(
            r"\b(?:lives?|is defined|are defined|is located|are located|is configured|are configured|is stored|"
            r"are stored|is implemented|are implemented|is kept|are kept|resides?|can be found) "
            r"(?:in|at|under|inside|below) (?:the )?[`\"']?[\w~.-]*[/._][\w/.-]+",
            re.I,
        ),
    ),
    (
        "fact",
        re.compile(
            r"^(?:the|this|our) (?:[\w-]+ ){0,2}?(?:project|repo(?:sitory)?|codebase|app(?:lication)?|service|api|team|"
            r"database|server|backend|frontend|pipeline|ci|build)(?: [\w-]+)? (?:uses?|runs? on|relies on|depends on|"
            r"expects|defaults to|listens on|is written in|is built with|is deployed (?:to|on|with|by))\b|"
            r"\bby default,? .{3,80}? (?:is|are|uses?)\b",
            re.I,
        ),
    ),
)


_REPORTED = re.compile(
    r"^(?:(?:done|finished|ok(?:ay)?)[:.,!]? )?(?:(?:i|we)(?:'ve| have)? )?(?:now |also |just |successfully |and )*"
    r"(?:[a-z]+ed|built|wrote|rewrote|made|put|set up|set|split|cut|ran|moved|took|sent|wired up|hooked up) \S",
    re.I,
)
_NOT_DONE = re.compile(
    r"\b(?:not|n't|todos?|later|still|remains?|remaining|except|partly|partially|half|only|started|tried|planned|need(?:s|ed)?|"
    r"decided|looked|checked|reviewed|failed|failing|wanted)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that lasts.

    Attributes:
        text: the sentence.
        decides: whether it tells a decision; else a piece of knowledge.
        sort: of a decision ``choice``, ``change``, ``rejection``, ``deferral``; of knowledge ``cause``, ``lesson``,
            ``constraint``, ``location``, ``fact``.
    """

    text: str
    decides: bool
    sort: str


def statements(text: str) -> list[Statement]:
    """What a message decides or states, in order; of each at most ``MOST``."""
    found = [one for sentence in sentences(text) if (one := statement(sentence)) is not None]
    decided = [one for one in found if one.decides][:MOST]
    known = [one for one in found if not one.decides][:MOST]
    return [one for one in found if one in decided or one in known]


def facts_in(text: str) -> list[Statement]:
    """What a person's message tells of the work that lasts: where something is, and what the project is made of.

    What must be or cannot be is as a rule what the message is to change, and how things are done, preferences keep.
    """
    found = (one for one in map(statement, sentences(text)) if one is not None and one.sort in _TOLD_BY_PERSONS)
    return [one for one in found if not is_correction(one.text)][:MOST]


def reports(text: str) -> list[str]:
    """The sentences of a message that report something as done."""
    return [one for one in sentences(text) if _reports(one.replace("\u2019", "'"))]


def _reports(sentence: str) -> bool:
    return len(sentence) <= _LONGEST and bool(_REPORTED.match(sentence)) and not _NOT_DONE.search(sentence)


def statement(sentence: str) -> Statement | None:
    """What one sentence decides or states, None where that is nothing that lasts."""
    words = len(sentence.split())
    if not _FEWEST_NAMING <= words <= _MOST_WORDS or len(sentence) > _LONGEST or sentence.endswith(("?", ":")):
        return None
    plain = sentence.replace("\u2019", "'")
    if _PASSING.search(plain):
        return None
    for decides, table in ((True, _DECISIONS), (False, _KNOWLEDGE)):
        for sort, pattern in table:
            if pattern.search(plain) and words >= (_FEWEST_NAMING if sort == "location" else _FEWEST_WORDS):
                return Statement(sentence, decides, sort)
    return None
