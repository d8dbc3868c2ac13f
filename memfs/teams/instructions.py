"""Hidden instructions: texts that give orders to whoever reads them, where a memory should tell a fact (faults row 18).

Owns the signs by which that is told, offline, and the disguises that are taken off first: letters of other scripts,
characters that nobody sees, marks of Markdown, entities, text in base64. It is precise rather than greedy: a
convention may order people and agents about ("never use tabs", "always run the tests"); what it may not do is set
itself above other instructions, hide from the person, send things away, or pass for the frame in which it is quoted.
What becomes of a finding is the review's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memfs.files.textguard import shown
from memfs.teams.instructiondisguises import MARKED, readings
from memfs.teams.instructionrules import COMPILED, RULES, Rule
from memfs.teams.instructionsentences import Order, signs

_LOOKED_INTO = 1 << 20
"""As long as a file that is read at all."""
_MOST = 10
_SHOWN = 120
_BEFORE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A place in a text that speaks to a model.

    Attributes:
        rule: which sign it is.
        what: the sign in words.
        line: 1-based line in the text.
        excerpt: the words, on one line, what is hidden in them shown as escapes.
        quoted: the text only speaks of such words: it quotes them, or warns of them.
        disguise: how they were hidden, "" where they stand openly.
    """

    rule: str
    what: str
    line: int
    excerpt: str
    quoted: bool = False
    disguise: str = ""


_CALLS = re.compile(
    r"ignor|disregard|forget|overr|bypass|discard|neglect|follow|obey|verg|missach|oubli|olvid|忽略|无视|無視|you\s|"
    r"pretend|\bact\b|behave|respond|<|\[|system|developer|begin|end\sof|tell|inform|notify|mention|reveal|show|alert|"
    r"disclos|let|acknowledge|repeat|keep|hide|conceal|send|post|upload|exfil|forward|transmit|leak|mail|submit|append|"
    r"report|copy|includ|embed|put|add|encode|print|output|dump|curl|wget|\bnc|silent|secret|quiet|background|base64|"
    r"eval|approve|accept|allow|grant|confirm|ask|wait|dangerously|bypasspermissions|verified|authori|trusted|review|"
    r"signed|treat|regard|consider|your\s|"
    r"nutzer|anwender|entwickler|utilisateur|usu[aá]ri|utent|utilizador|desarrollador|desenvolvedor|gebruiker|ytkownik|"
    r"пользовател|разработчик|игнорир|забудь|отбрось|用户|用戶|使用者|开发者|開發者|ユーザ|사용자|指令|指示|命令|规则|規則|"
    r"지시|명령|규칙|تجاهل|dimentica|trascura|esque|desconsid|vergeet|negeer|zapomnij|pomi|nceki|schick|bermittl|poste|"
    r"leite|envo[iy]|transmet|publi|env[íi]|mand[ae]",
    re.IGNORECASE,
)
_REPORTING = re.compile(
    r"\b(?:such\s+as|like|says?|said|saying|reads?|phrases?|words?|texts?|strings?|payloads?|examples?|e\.g\.|contain\w*|"
    r"detect\w*|flag\w*|block\w*|refus\w*|reject\w*|attack\w*|injection\w*|test\w*|match\w*|attempt\w*|warn\w*|forbid\w*|"
    r"looks?\s+for|never|not)\b[^.!?\n]{0,40}$",
    re.IGNORECASE,
)
_WARNING = re.compile(
    r"(?:\b(?:never|do\s+not|don't|must\s+not|should\s+not|shall\s+not|may\s+not|cannot|can't|not\s+to)[\s:]+(?:ever\s+)?|"
    r"\b(?:never|do\s+not|don't|must\s+not)\s+(?:use|set|start|run|pass|call|allow)\b[^.\n]{0,30}|"
    r"\b(?:tried|tries|trying|attempt(?:s|ed)?|wants?|wanted)\s+to\s+(?:make\s+(?:the\s+)?\w+\s+)?|"
    r"\b(?:makes?|made|lets?|forbids?)\s+(?:the\s+|an?\s+)?\w+\s+(?:to\s+)?)$",
    re.IGNORECASE,
)
_OPEN = ("", MARKED)
"""The readings in which quoting counts: who hides an order does not warn of it."""
_BY_ID = {rule.id: rule for rule in RULES}
_QUOTATION = '"\u201c`'
_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"


def instructions(text: str) -> list[Instruction]:
    """The places of a text that speak to a model, each sign once, disguised ones too.

    At most ten that give orders, and ten that only speak of such: however many of these there are, they cannot keep one
    of those from being found.
    """
    orders: dict[tuple[str, int], Instruction] = {}
    quoted: dict[tuple[str, int], Instruction] = {}
    for plain, disguise, offset in readings(text[:_LOOKED_INTO]):
        for one in _in_plain(plain, disguise, offset, text):
            (quoted if one.quoted else orders).setdefault((one.rule, one.line), one)
        if len(orders) >= _MOST:
            break
    every = [*list(orders.values())[:_MOST], *(one for key, one in quoted.items() if key not in orders)][: 2 * _MOST]
    return sorted(every, key=lambda one: one.line)


def _in_plain(plain: str, disguise: str, offset: int, text: str) -> Iterator[Instruction]:
    """Of each sign the first place where it is an order, and some before that where it is only spoken of."""
    spoken_of = 0
    for rule, places in _signs(plain):
        for start, end, mentioned in places:
            quoted = disguise in _OPEN and mentioned
            spoken_of += quoted
            if quoted and spoken_of > _MOST:
                continue
            line = plain.count("\n", 0, start) + 1 if offset < 0 else text.count("\n", 0, offset) + 1
            excerpt = shown(" ".join(plain[start : min(end, start + 4 * _SHOWN)].split()))[:_SHOWN]
            yield Instruction(
                rule=rule.id, what=rule.what, line=line, excerpt=excerpt, quoted=quoted, disguise=disguise
            )
            if not quoted:
                break


def _signs(plain: str) -> Iterator[tuple[Rule, Iterator[tuple[int, int, bool]]]]:
    """Each sign with the places that show it: where they begin and end, and whether they are only spoken of."""
    if _CALLS.search(plain):
        for rule, pattern in COMPILED:
            yield rule, _worded(plain, pattern, rule.id)
    for name, sentences in signs(plain):
        yield _BY_ID[name], ((one.start, one.end, _is_told_of(plain, one, name)) for one in sentences)


def _worded(plain: str, pattern: re.Pattern[str], rule: str) -> Iterator[tuple[int, int, bool]]:
    for match in pattern.finditer(plain):
        yield match.start(), match.end(), _is_mentioned(plain, match.start(), match.end(), rule)


def _is_mentioned(text: str, start: int, end: int, rule: str) -> bool:
    """Whether a text speaks of the words instead of saying them: quotes them as what somebody says, or warns of them.

    What asks to be kept from the person denies by its nature; there the word before it tells nothing.
    """
    before = text[max(0, start - _BEFORE) : start]
    if before[-1:] and before[-1] in _QUOTES and any(mark in text[end : end + _BEFORE] for mark in _QUOTES):
        return bool(_REPORTING.search(before.rstrip(_QUOTES + " ,:(")))
    return rule != "secrecy" and bool(_WARNING.search(before))


def _is_told_of(text: str, order: Order, rule: str) -> bool:
    """Whether the sentence reports what stands in quotation marks that are open where its sign begins."""
    before = text[order.start : order.told]
    opened = max((before.rfind(mark) for mark in _QUOTATION if before.count(mark) % 2), default=-1)
    if opened >= 0 and _REPORTING.search(before[:opened].rstrip(" ,:(")):
        return True
    return _is_mentioned(text, order.told, order.end, rule)
