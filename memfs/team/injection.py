"""Hidden instructions: texts that give orders to whoever reads them, where a memory should tell a fact (faults row 18).

Owns the signs by which that is told, offline, and the disguises that are taken off first: letters of other scripts,
characters that nobody sees, marks of Markdown, entities, text in base64. It is precise rather than greedy: a
convention may order people and agents about ("never use tabs", "always run the tests"); what it may not do is set
itself above other instructions, hide from the person, send things away, or pass for the frame in which it is quoted.
What becomes of a finding is the review's business.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import unquote

from memfs.format.text_guard import shown
from memfs.team.injection_rules import COMPILED, RULES, InjectionRule

MARKED = "marks of Markdown"
_MOST_COMMENTS = 50
_LONGEST_LINE = 2_000
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_SPACED = re.compile(r"(?<!\S)(?:\w[ .\-_*]){5,}\w(?!\S)")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{32,4000}={0,2}(?![A-Za-z0-9+/=_-])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]*){3}")
# A list's own marks and lone bars at the beginning of a line, and what sets words in bold, italics or code.
_MARKUP = re.compile(
    r"^[ \t]{0,12}(?:[>#*+|-]{1,6}[ \t]+){1,3}|\*{1,3}|~~|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|"
    r"(?<!\w)`(?=\w+`)|(?<=\w)`(?!\w)",
    re.MULTILINE,
)
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){24,2000}(?![0-9A-Fa-f])")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_DIGITS = re.compile(
    r"(?<![\w.+/=-])(?=[0-9]{0,4}[A-Za-z])[A-Za-z013457]{0,24}[013457][A-Za-z013457]{0,24}(?![\w+/=-])"
)
"""A word that has letters, and digits that look like some."""
_TWO_OF_THEM = re.compile(rf"{_DIGITS.pattern}\s{{1,4}}{_DIGITS.pattern}")
_SPELLED = str.maketrans("013457", "oieast")
_TURNED = re.compile(
    r"\b(?:vtaber|qvfertneq|sbetrg|cerivbhf|vafgehpgvba|flfgrz|frperg|cnffjbeq|perqragvny|rkrphgr|hfre)f?\b",
    re.IGNORECASE,
)
_BACKWARDS = re.compile(
    r"\b(?:erongi|dragersid|tegrof|suoiverp|s?noitcurtsni|tpmorp|s?terces|s?drowssap|s?laitnederc|etucexe)\b",
    re.IGNORECASE,
)
"""Words of orders in rot13, and backwards."""
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝАВЕКМНОРСТХІЈЅοαενιτρκυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhqwABEKMHOPCTXIJSoaevitpkuABEZHIKMNOPTYX",
)


def readings(text: str) -> Iterator[tuple[str, str, int]]:
    """The text as models may read it: as it stands, and without each disguise; where what was hidden begins, or -1."""
    bare = _UNSEEN.sub("", text)
    yield (bare, "", -1) if bare == text else (text, "", -1)
    if bare != text:
        yield bare, "characters that nobody sees", -1
    folded = _folded(bare)
    if folded != bare:
        yield folded, "letters of other scripts", -1
    if (unmarked := _MARKUP.sub("", bare)) != bare:
        yield unmarked, MARKED, -1
    if (tag := _TAGS.search(text)) is not None:
        hidden = "".join(chr(ord(letter) - 0xE0000) for run in _TAGS.findall(text) for letter in run)
        yield hidden, "tag characters", tag.start()
    for match in islice(_COMMENT.finditer(text), _MOST_COMMENTS):  # what they say was read with the text, too
        yield match[1], "a comment", match.start()
    yield from ((plain, disguise, -1) for plain, disguise in _respelled(bare))
    for match in _apart(_SPACED.finditer(bare)):
        yield _joined(bare, match), "letters set apart", match.start()
    yield from _decoded(bare)


def _respelled(bare: str) -> Iterator[tuple[str, str]]:
    """The text with other signs for its letters taken back, each way by itself."""
    if "&" in bare and (unescaped := html.unescape(bare)) != bare:
        yield unescaped, "entities"
    if _ESCAPED.search(bare):
        yield _ESCAPED.sub(lambda one: chr(int(one[1] or one[2], 16)), bare), "escapes"
    if _TWO_OF_THEM.search(bare):
        yield _DIGITS.sub(lambda word: word[0].translate(_SPELLED), bare), "digits for letters"
    if _TURNED.search(bare):
        yield codecs.decode(bare, "rot13"), "letters moved by thirteen"
    if _BACKWARDS.search(bare):
        yield "\n".join(line[::-1] for line in bare.split("\n")), "letters written backwards"
    if _PERCENT.search(bare):
        yield unquote(bare, errors="replace"), "percent signs"


def _apart(matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Those of which none lies in the stretch that was looked at with the one before."""
    end = -1
    for match in matches:
        if match.start() >= end:
            line = match.string.find("\n", match.start(), match.start() + _LONGEST_LINE)
            end = line if line >= 0 else match.start() + _LONGEST_LINE
            yield match


def _folded(text: str) -> str:
    """With letters of other scripts that look like Latin ones as those, in words that have Latin ones, too."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return re.sub(r"\w+", lambda word: _latin(word[0]), plain)


def _latin(word: str) -> str:
    if word.isascii():
        return word
    translated = word.translate(_LOOKALIKES)
    return translated if translated.isascii() else word


def _joined(text: str, match: re.Match[str]) -> str:
    """Letters that stand apart, as the words they make: two blanks or more are one, a single sign is none."""
    end = text.find("\n", match.start(), match.start() + _LONGEST_LINE)
    line = text[match.start() : end if end >= 0 else match.start() + _LONGEST_LINE]
    words = re.split(r"\s{2,}|[ ]?[|/][ ]?", line)
    return " ".join(re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", word) for word in words)


def _decoded(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _BASE64.finditer(text):
        if (plain := _readable(_from_base64(match[0]))) is not None:
            yield plain, "base64", match.start()
    for match in _HEX.finditer(text):
        if (plain := _readable(bytes.fromhex(match[0]))) is not None:
            yield plain, "hexadecimal digits", match.start()


def _from_base64(word: str) -> bytes:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (ValueError, binascii.Error):
        return b""


def _readable(data: bytes) -> str | None:
    """The bytes as text where they are one that a person could have written."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if " " in text and all(letter.isprintable() or letter in "\n\t\r" for letter in text) else None


_LONGEST = 600
"""A longer sentence is looked at in stretches that overlap by half."""

_BREAK = re.compile(r"[.!?][\"')\]]{0,2}(?=\s)|[。！？]|\n[ \t]{0,40}(?=\n|[-*#>+|]|\d{1,3}[.)]\s|[\w.-]{1,40}:\s)")
_GOES_ON = re.compile(
    r"\s{0,4}(?:then\s+|and\s+|please\s+)?(?:send|post|upload|e-?mail|forward|paste|share|submit|pass|put|"
    r"attach|include)\s+"
    r"(?:it|them|that|this|(?:the|its|their)\s+(?:contents?|results?|output|values?))\b",
    re.IGNORECASE,
)

_MODEL = (
    r"(?:(?:AI|LLM|coding|autonomous|code)[\s-]+){0,2}(?:agents?|assistants?|models?|LLMs?|bots?|chatbots?|copilots?|"
    r"claude|chatgpt|gpt|gemini|cursor|codex)"
)
_WATCHER = r"(?:developers?|reviewers?|maintainers?|owners?|operators?|humans?|people|persons?|anyone|anybody|admins?)"
_ACT = (
    r"(?:take|read|collect|gather|get|grab|open|look|find|search|make|render|show|summari[sz]e|copy|spread|"
    r"store|add|set|"
    r"edit|change|write|install|disable|leave|download|execute|run|start|send|post|upload|e-?mail|forward|"
    r"attach|include|"
    r"put|paste|pass|fetch|call|transfer|wire|pay|delete|tell|pretend|claim|report|say|act|drop|obey|skip|omit|reveal|"
    r"print|share|encode|embed|append|submit|use|create|visit|load|push|commit|insert|provide|give|list|turn|switch|"
    r"modify|update|generate|implement|approve|merge|remember|save|access|export|serialize|book|buy|order|"
    r"exfiltrate|dump|leak|copy|zip|invoke|query)"
)
_LEAD = (
    r"(?:(?:please|now|also|then|first|next|always|silently|just|simply|kindly|quietly|immediately|secretly)\s*,?\s+)"
    r"{0,3}"
)
_DUTY = (
    r"(?:must|should|shall|need\s+to|have\s+to|has\s+to|ought\s+to|(?:are|is)\s+(?:required|expected|obliged|"
    r"instructed|"
    r"asked|supposed)\s+to|(?:are|is)\s+to)"
)
_SELF = r"(?:this|these)\s+(?:\w+\s+)?(?:instructions?|notes?|memory|memories|messages?|prompts?|directives?|orders?)"
_STEP = (
    r"(?:so|it|this|that|these|(?:this|the)\s+(?:\w+\s+)?(?:step|command|action|call|change|request|edit|file|"
    r"line|fact))"
)
_TO_YOURS = (
    r"(?:in|to|among|with|on)\s+(?:your\b|(?:the\s+)?(?:chat|transcript|report|summary|answer|reply|response|"
    r"user|developer|"
    r"reviewers?)\b)"
)
_LIMITS = (
    r"(?:instructions?|guidelines|rules|directives?|orders|limits|limitations|restrictions|guardrails|safety\s+checks|"
    r"safeguards|policies|constraints)"
)

_TRAITS: dict[str, str] = {
    # -- mood and reader -----------------------------------------------------------------------------------------
    "commands": (
        rf"^\W{{0,12}}(?:[\w .-]{{1,60}}:\s+)?{_LEAD}{_ACT}\b|"
        rf"^\W{{0,12}}(?:before|after|when|whenever|while|if|once|at|as|in|during|for|on|every\s+time|each\s+time)\b"
        rf"[^\n]{{0,140}}?,\s+{_LEAD}{_ACT}\b|"
        rf"\b(?:you|{_MODEL})\s+(?:\w+\s+)?{_DUTY}\s+{_LEAD}{_ACT}\b|\bplease\s+{_LEAD}{_ACT}\b|"
        rf"\byour\s+(?:real\s+)?task\s+is\s+to\b"
    ),
    "forbids": r"^\W{0,12}(?:[\w .-]{1,60}:\s+)?(?:please\s+)?(?:do\s+not|don't|never)\b",
    "calls_the_reader": (
        rf"^\W{{0,12}}(?:(?:\w+\s+){{0,3}}(?:to|for)\s+)?(?:(?:the|all|any|every)\s+){{0,2}}{_MODEL}\s*[,:]\s|"
        rf"\bif\s+you\s+are\s+(?:an?\s+)?{_MODEL}\b|\b(?:must|should|shall|has\s+to|"
        rf"have\s+to)\s+be\s+\w+\s+by\s+(?:the|every|any)\s+{_MODEL}\b|"
        rf"\b{_MODEL}\s+(?:that\s+(?:read|see)|reading|who\s+read)\s+this\b|\byou\s+{_DUTY}\s+(?:now|immediately|"
        rf"first)\b"
    ),
    # -- what it is about ----------------------------------------------------------------------------------------
    "secret": (
        r"(?<![\w.])\.(?:env|netrc|npmrc|pypirc|pgpass)\b|\b(?:api|private|ssh|secret|access|signing|"
        r"encryption)[\s_-]?keys?\b|"
        r"(?-i:\b[A-Z][A-Z0-9_]{0,40}(?:SECRET|TOKEN|PASSWORD|API_KEY|ACCESS_KEY)[A-Z0-9_]{0,40}\b)|\bpasswords?\b|"
        r"\bcredentials?\b|"
        r"\bsecrets?\b|(?<!\w)(?<!number of )(?<!many )tokens?\b(?!\s+(?:counts?|budgets?|usage|limits?|sizes?|"
        r"costs?)\b)|\benv(?:ironment)?\s+var(?:iable)?s\b|\bid_(?:rsa|ed25519)\b|"
        r"~/\.(?:ssh|aws|gnupg|kube|config|cursor|claude|docker)\b|\bmcp\.json\b|\bkeychain\b|\bsession\s+cookies?\b|"
        r"\bsystem\s+prompt\b|/etc/(?:passwd|shadow)\b"
    ),
    "talk": (
        r"\b(?:conversations?|chat|message)\s+(?:history|log)\b|\b(?:whole|entire|full|this|"
        r"current)\s+(?:conversation|chat)\b|"
        r"\bwhat\s+(?:the\s+)?users?\s+(?:told|said|wrote|typed|asked)\b|\b(?:last|latest|previous|user's|"
        r"user)\s+(?:user\s+)?"
        r"(?:messages?|questions?|prompts?|inputs?)\b|\b(?:c|q|d|data|msg|text|history)=(?:CONVERSATION|CHAT|"
        r"HISTORY|MESSAGE|"
        r"DATA|SECRETS?|PROMPT)\b"
    ),
    "every_secret": (
        r"\b(?:all|every|any|each)\s+(?:\w+\s+){0,3}?(?:(?:api|private|ssh|access)\s+keys?|secrets?|tokens?|"
        r"passwords?|credentials?)\b"
    ),
    "yours": (
        r"\byour\s+(?:\w+\s+){0,2}(?:memory|memories|knowledge(?:\s+base)?|context|instructions|"
        r"system\s+prompt)\b"
    ),
    "exfiltrates": r"(?:\b(?:always|must|should|now|then|please|is\s+to|and)\s|:\s|^\W{0,12})exfiltrate\b",
    "elsewhere": (
        r"\bhttps?://(?!localhost|127\.0\.0\.1)|\bftp://|\bwebhooks?\b|\b[\w.+-]{1,64}@[\w-]{1,60}\.\w|\bpastebin\b"
    ),
    "open_place": (
        r"\bas\s+(?:a|an|the|its|your)\s+(?:'\w+'|\"\w+\"|`\w+`|\w+)?\s*(?:argument|parameter|field|comment|value|"
        r"attachment|city)\b|"
        r"\bas\s+['\"`]\w+['\"`]|"
        r"\b(?:in|into|to|on|as|with)\s+(?:(?:a|an|the|every|each|your|this|that|any|new|next|public|"
        r"of)\s+){0,3}(?:\w+\s+)?"
        r"(?:comments?|issues?|gists?|pull\s+requests?|commits?(?:\s+messages?)?|user-agent|query(?:\s+string)?|url|"
        r"image|bug\s+reports?|public\s+channel|answers?|reply|replies|responses?|outputs?)\b|"
        r"\b(?:open|create|make|file)\s+(?:a|an)\s+(?:\w+\s+)?(?:gist|paste|issue|pull\s+request)\b|"
        r"\bto\s+(?:the|a|an)\s+\w+\s+tool\b"
    ),
    "spared": (
        r"\b(?:never|not)\s+(?:in|into|to|as|on|with)\b|"
        r"\b(?:never|do\s+not|don't|must\s+not|should\s+not|nor|not|no|without|instead\s+of|except|"
        r"minus)\b(?:\s+(?:the|any|"
        r"a|your|their|its|with|real)\b)*\s*(?:print|send|post|write|paste|log|share|put|include|commit|expose|"
        r"secrets?|tokens?|keys?|passwords?|values?|credentials?|(?:api|private)\s+keys?)|"
        r"\bredact|\bmask|\bstrip|\banonymi|\bremov|\bplaceholder|\bdummy|\bfake\b|\bleav\w+\s+(?:\w+\s+){1,3}out\b|"
        r"\bprompts?\s+for\b"
    ),
    "drastic": (
        r"\b(?:delet|wip|eras|destroy|overwrit)\w*|\bremov\w+\s+(?:the\s+|all\s+|every\s+)?(?:backups?|branch\w*|"
        r"data\w*|files|"
        r"users?|history)\b|\bforce[- ]push|\bpush\w*\s+(?:\w+\s+)?to\s+(?:main|master|production)\b|"
        r"\bdrop\w*\s+(?:the\s+|all\s+)?"
        r"(?:tables?|databases?)\b|\b(?:wire|transfer)\w*\b|\bpay(?:ment|ments|ing)?\b|\bmoney\b|\bIBAN\b|"
        r"\bdollars?\b|\beuros?\b|"
        r"\bdeploy\w*\s+to\s+production\b|\brm\s+-\w*r"
    ),
    "power": (
        r"\bowner\s+of\b|\badmin(?:istrator)?\s+(?:rights|access|role)\b|\bcollaborators?\b|\bauthorized_keys\b|"
        r"\binsteadOf\b|"
        r"\b(?:transfer|wire|pay)\b[^\n]{0,60}(?:\d|\b(?:money|funds|IBAN|account)\b)|\b(?:reveal|exfiltrate)\b|"
        r"\b(?:e-?mail|forward|upload|send)\b[^\n]{0,80}(?:https?://|\w@\w)|"
        r"\bdelete\s+(?:all|every|the)\s+(?:\w+\s+){0,2}(?:backups?|data|databases?|branch(?:es)?|history|repositor\w+|"
        r"users?|accounts?|logs?|memor\w+|tables?|tests?)\b|"
        r"\bstop\s+(?:what|whatever|answering|doing)\b|"
        r"\bdrop\s+(?:the|your|this)\s+\w*\s*task\b"
    ),
    # -- kept from the person ------------------------------------------------------------------------------------
    "unsaid": (
        r"\b(?:do\s+not|don't|never|must\s+not|without|nor)\s+(?:say|mention|tell|explain|comment|disclos|reveal|"
        r"announc)\w*\s+"
        rf"(?:on\s+|about\s+)?{_STEP}(?=\s*(?:[.,;:!)]|$)|\s+(?:and|or|when|if)\b|\s+{_TO_YOURS})|"
        r"\b(?:do\s+not|don't|never|must\s+not|without|nor)\s+(?:log|list|report|show|writ|not|record|document|"
        r"includ)\w*\s+"
        rf"{_STEP}\s+{_TO_YOURS}"
    ),
    "unseen": (
        rf"\bso\s+(?:that\s+)?(?:the\s+)?{_WATCHER}\s+(?:(?:do|does|will|can|may)\s*(?:not|n't)|cannot|"
        rf"never)\s+(?:notice|see|know|"
        r"find|reali[sz]e|suspect|detect|spot)\b|"
        r"\bso\s+(?:that\s+)?(?:the\s+)?users?\s+(?:(?:do|does|will|can)\s*(?:not|n't)|cannot|never)\s+(?:notice|"
        r"see|know|reali[sz]e|"
        r"suspect|find\s+out)\s+(?:(?:about|of)\s+)?(?:it|this|that|the\s+(?:\w+\s+)?(?:call|request|command|change|"
        r"step|commit))\b|"
        rf"\bwithout\s+(?:the\s+)?(?:users?|{_WATCHER})(?:'s?)?\s+(?:notic|know|see|reali[sz])\w+|"
        rf"\bbehind\s+the\s+users?'?s?\s+back\b|"
        rf"\bmust\s+(?:not|never)\s+be\s+(?:shown|told|mentioned|reported|disclosed|visible|"
        rf"known)\s+to\s+(?:the\s+)?(?:users?|{_WATCHER})\b|"
        rf"\b(?:omit|hide|conceal|exclude)\b[^\n]{{0,60}}\bfrom\s+(?:the\s+)?(?:users?|{_WATCHER})\b"
    ),
    "hushed": (
        r"\b(?:rules?|memory|memories|notes?|instructions?|steps?)\s+(?:that|which)\s+(?:the\s+)?users?\s+(?:cannot|"
        r"can't|do\s+not|don't|"
        r"never)\s+see\b|"
        r"\bleav\w+\s+no\s+(?:trace|record|log|sign)s?\s+of\s+(?:this|it|your|what\s+you)\b|"
        r"\bleave\s+(?:it|this|them|these)\s+out\s+of\s+your\b|\b(?:nobody|no\s+one|no-one)\s+(?:needs|has|ought|"
        r"is)\s+to\s+(?:know|"
        r"learn|hear|find\s+out)\s+(?:that|about|of)\s+(?:this|you|it|these)\b|\b(?:do\s+not|don't|never)\s+let\s+on\b|"
        r"\bkeep\s+(?:quiet|silent|mum)\s+about\s+(?:this|these|it|what\s+you)\b|\bact\s+(?:normal|naturally|"
        r"as\s+if\s+nothing)\b|"
        rf"\b(?:keep|treat)\s+(?:this|these|{_SELF})\s+(?:as\s+)?(?:strictly\s+)?(?:a\s+)?(?:secret|confidential|"
        rf"hidden|between\s+us)"
        r"(?:\s+from\s+(?:the\s+)?user|\s*[.,;!]|\s*$)"
    ),
    "lies": (
        r"\bpretend\s+(?:that\s+)?(?:all\s+)?(?:the\s+|every\s+)?\w+\s+(?:pass|succeed|work|compil|ran|run|fail)\w*\b|"
        r"\b(?:report|say|claim|tell|answer|state|assure)\b[^\n]{0,40}\bthat\s+(?:nothing\s+(?:happened|changed|"
        r"was)|there\s+(?:are|is)\s+"
        r"(?:none|nothing|no\s+memor\w+|no\s+instructions?))|"
        r"\b(?:report|say|claim|tell|answer|state|assure)\b[^\n]{0,60}\b(?:succeeded|passed|worked|went\s+well|"
        r"is\s+(?:fine|safe|"
        r"secure|clean|done|complete))\b[^\n]{0,20}\b(?:whatever|regardless|even\s+if|even\s+when|no\s+matter|"
        r"although|in\s+any\s+case)\b"
    ),
    # -- above other orders --------------------------------------------------------------------------------------
    "yours_are_off": (
        r"\b(?:safety|content)\s+(?:restrictions?|filters?|limits|guidelines|protocols?|rules|modules?)\s+"
        r"(?:(?:are|is)\s+now|ha(?:ve|s)\s+been|were)\s+"
        r"(?:temporarily\s+)?(?:disabled|lifted|removed|suspended|off)\b|"
        r"\ball\s+restrictions\s+(?:are\s+|have\s+been\s+)?lifted\b|"
        r"\b(?:ignore|override|bypass|disregard)\s+(?:(?:all|any|the|your)\s+){0,2}(?:safety|content)\s+(?:filters?|"
        r"protocols?|measures?|"
        r"restrictions?|controls?)\b|\byou(?:'re|\s+are)\s+(?:now\s+)?(?:\w+\s+){0,4}?(?:unrestricted|uncensored|"
        r"unfiltered|(?:with(?:out|\s+no))\s+"
        r"(?:any\s+)?(?:restrictions|safety\s+guidelines))\b|"
        rf"\byour\s+(?:\w+\s+){{0,2}}{_LIMITS}\s+(?:have\s+(?:been\s+)?(?:changed|replaced|updated|revoked|lifted)|"
        rf"changed|"
        r"(?:do|does)(?:\s+not|n't)\s+(?:apply|count|matter|hold)|no\s+longer\s+\w+|are\s+(?:now\s+)?(?:suspended|"
        r"void|lifted|off|"
        rf"revoked|obsolete|outdated|wrong))\b|\b(?:break|ignore|violate|bypass|disregard|forget|"
        rf"drop)\s+your\s+(?:\w+\s+)?{_LIMITS}\b|"
        rf"\b(?:no\s+matter|regardless\s+of|whatever|despite)\s+(?:what\s+)?your\s+(?:\w+\s+)?{_LIMITS}\b"
    ),
    "rules_are_off": (
        rf"\b{_LIMITS}\s+(?:(?:above|before|so\s+far|until\s+now)\s+)?(?:no\s+longer\s+(?:apply|count|hold|bind)|"
        rf"(?:do\s+not|don't)\s+"
        r"(?:apply|count)|are\s+(?:now\s+)?(?:suspended|void|lifted|off|revoked|cancelled)|were\s+(?:(?:only|"
        r"just)\s+)?(?:a|an)\s+"
        r"(?:test|joke|example|trick|drill))\b"
    ),
    "sets_itself_above": (
        r"\b(?:for|in)\s+this\s+(?:session|conversation|chat)\b|\bfrom\s+(?:now|here)\s+on\b|\breal\s+(?:rules|"
        r"orders|instructions|"
        r"task|goal|mission)\b|\bnew\s+(?:directive|orders|mission|instructions)\b|\bproceed\b|\bfollow\s+only\b|"
        r"\bonly\s+follow\b"
    ),
    "takes_over": (
        rf"\b(?:only\s+(?:follow|obey)|(?:follow|obey)\s+only|obey)\s+(?:what\s+(?:comes|follows|stands|is|it|I|he|"
        rf"she)|her|his|my|me|whoever|{_SELF})\b"
        r"(?!\s+(?:laws?|rules?\s+of|conventions?|guidelines?|style)\b)|\bmust\s+be\s+obeyed\b|"
        r"\b(?:your\s+(?:real|true|actual|new|only|secret)\s+(?:task|job|goal|orders|mission|purpose|objective|"
        r"instructions|rules)|the\s+(?:real|true|actual|new|secret)\s+(?:task|orders|mission|instructions|rules))\s+"
        r"(?:is|are|begins?|starts?)\b(?=[^\n]{0,10}\b(?:to|now|here|below|that|you)\b)|"
        r"\b(?:drop|abandon|stop|set\s+aside|cancel|interrupt|pause)\s+(?:the\s+|your\s+)?(?:current|present|user's|"
        r"original|what\s+you\s+"
        r"are|answering)\b[^\n]{0,20}\b(?:task|request|question|work|doing|conversation|job)\b[^\n]{0,20}\b(?:and|"
        r"obey|instead|first|then)\b"
    ),
    # -- the person's say ----------------------------------------------------------------------------------------
    "unasked": (
        r"\bno\s+need\s+to\s+(?:ask|confirm|check\s+with)\b|\b(?:do\s+not|don't|never|need\s+not|needn't)\s+(?:ask|"
        r"wait|check\s+with|"
        r"confirm)\b|\bskip\s+(?:the\s+|any\s+|all\s+)?(?:confirmations?|approvals?|permission)\b|\b(?:do\s+not|"
        r"don't)\s+(?:need|require)\s+"
        r"(?:the\s+|a\s+|any\s+)?(?:\w+'s?\s+)?(?:consent|permission|approval|confirmation|authori[sz]ation)\b|"
        r"\bwithout\s+(?:asking|(?:the\s+)?user's|(?:any\s+)?(?:confirmation|approval|permission|consent))\b"
    ),
    "throwaway": r"\b(?:te?mp|temporary|build|dist|caches?|generated|artifacts?|fixtures?|scratch|worktrees?)\b",
    "in_a_case": r"\bunless\b|\b(?:when|if|where)\s+(?:nothing|none|there\s+(?:is|are|was)\s+(?:nothing|none|no))\b",
    "asked_for": (
        r"\b(?:not|never|cannot|can't|don't|nobody|nothing|no\s+\w+)\b(?!\s+(?:ask|wait|need|require))[^\n]{0,80}?"
        r"\bwithout\s+(?:asking|(?:\w+\s+){0,2}(?:user's|confirmation|approval|permission|consent))\b"
    ),
    "you_or_user": (
        r"\byou\b|\byour\b|\bthe\s+user\b|\bask\s+again\b|"
        r"^\W{0,12}(?:skip|do\s+not|don't|never|there\s+is\s+no\s+need|no\s+need)\b"
    ),
    "does_anything": (
        r"\b(?:comply|obey|execute|run|perform|accept|carry\s+out)\b[^\n]{0,30}\b(?:any|all|every|commands?|"
        r"requests?)\b[^\n]{0,40}"
        r"\bwithout\s+(?:any\s+)?(?:confirmations?|restrictions?|questions?|asking|approval|limits?)\b"
    ),
    "opens_the_gate": (
        r"\bauto[- _]?(?:approve|accept|run)\w*\W{1,4}(?:\w+\s+){0,2}(?:true|on|all|always|\*)|\byolo\s+mode\b|"
        r"\ballow\w*\s+(?:all|every|any)\s+(?:\w+\s+)?(?:bash|shell|commands?|tools?|permissions?)\b"
    ),
    # -- code and settings ---------------------------------------------------------------------------------------
    "each_session": (
        r"\b(?:at\s+the\s+)?(?:beginning|start)\s+of\s+(?:each|every|any|a|the)\s+session\b|\bbefore\s+(?:any|every|"
        r"each|all)\s+(?:other\s+)?"
        r"(?:task|answer|step|tool\s+call|action)s?\b|\bfirst\s+thing\s+in\b|\b(?:in|on|with)\s+every\s+session\b|"
        r"\bbefore\s+you\s+(?:answer|do\s+"
        r"anything|start|begin)\b|\bevery\s+(?:hour|day|minute)\b"
    ),
    "foreign_code": (
        r"\b(?:execut|run|install|unpack|follow|launch|source)\w*\b[^\n]{0,80}(?:https?://|\b(?:curl|"
        r"wget)\s+(?:-\S+\s+)*[\w-]+\.\w)|"
        r"https?://\S{1,200}+[^\n]{0,60}\b(?:execut|run|install|"
        r"unpack|follow|launch)\w*\b"
    ),
    "at_a_word": r"\bwhen(?:ever)?\s+(?:you\s+(?:see|read|hear)|(?:the|a|any)\s+users?\s+(?:asks?|says?|mentions?))\b",
    "foreign_orders": (
        r"\b(?:fetch|get|download|load|read|poll)\w*\s+(?:new|further|more|your|its|the\s+next)\s+(?:instructions|"
        r"orders|commands|tasks)\s+from\b"
    ),
    "own_key": r"\bssh-(?:rsa|ed25519)\s+AAAA\S{0,400}[^\n]{0,40}\bauthorized_keys\b",
    "claims_power": (
        r"\bI\s+am\s+your\s+(?:administrator|admin|owner|developer|creator|operator|master)\b|"
        r"\bI\s+am\s+(?:the|an)\s+(?:administrator|admin|developer|operator)\b[^\n]{0,60}"
        r"\byou\s+(?:must|will|shall|should|have\s+to|are\s+to|need\s+to|can\s+now|may\s+now)\b"
    ),
    "own_vouching": (
        r"\b(?:is|are|as|be)\s+(?:fully\s+)?(?:trustworthy|trusted|safe|reliable)\b[^\n]{0,30}\b(?:never|not|"
        r"no)\s+(?:longer\s+)?(?:needs?|has|have|require[sd]?|to)?\s*(?:to\s+)?(?:be\s+)?"
        r"(?:any\s+)?(?:check|verif|review|scan|question|validat)\w*"
    ),
    # -- carried on ----------------------------------------------------------------------------------------------
    "carried_on": (
        r"\b(?:add|save|store|write|inject|insert|put)\s+(?:this|these|it|them|the\s+following|what\s+follows)\b[^\n]{0,60}"
        r"\b(?:in|into|to)\s+your\s+(?:\w+[\s-]+){0,2}(?:memory|memories|knowledge(?:\s+base)?)\b|"
        r"\b(?:(?:add|save|store|write|inject|insert|put)\b[^\n]{0,60}\b(?:in|into|to)|populate|update)\s+"
        r"your\s+(?:\w+[\s-]+){0,2}(?:vector\s+(?:database|store)|system\s+prompt|permanent\s+instructions)\b|"
        rf"\b(?:copy|paste|put|write|add|append|store|save|insert|repeat|propagate|"
        rf"include)\s+{_SELF}\b[^\n]{{0,60}}\b(?:AGENTS\.md|"
        r"CLAUDE\.md|\.cursorrules|every|each|all|any\s+other|other|memory|memories|system\s+prompt)\b|"
        r"\bspread\s+(?:this|these)\b|"
        r"\b(?:add|save|write|commit)\s+(?:this\s+|it\s+)?to\s+your\s+(?:\w+[\s-]+)?(?:memory|memories)\b|"
        r"\bremember\s+(?:this\s+)?(?:permanently|forever|for\s+ever|for\s+all\s+time|in\s+(?:all|"
        r"every)\s+\w+\s+(?:sessions?|conversations?))\b"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Traits that make a sign when one sentence has them all, and none of those that excuse it."""

    rule: str
    traits: tuple[str, ...]
    unless: tuple[str, ...] = ()


SIGNS: tuple[Together, ...] = (
    Together(rule="sending", traits=("secret", "open_place", "commands"), unless=("spared",)),
    Together(rule="sending", traits=("talk", "elsewhere", "commands")),
    Together(rule="sending", traits=("every_secret", "elsewhere", "commands"), unless=("spared",)),
    Together(rule="sending", traits=("yours", "elsewhere", "commands")),
    Together(rule="sending", traits=("exfiltrates",)),
    Together(rule="secrecy", traits=("hushed",), unless=("in_a_case",)),
    Together(rule="secrecy", traits=("lies",)),
    Together(rule="secrecy", traits=("unsaid", "commands")),
    Together(rule="secrecy", traits=("unsaid", "calls_the_reader")),
    Together(rule="secrecy", traits=("unsaid", "forbids"), unless=("in_a_case",)),
    Together(rule="secrecy", traits=("unseen", "commands")),
    Together(rule="secrecy", traits=("unseen", "calls_the_reader")),
    Together(rule="override", traits=("yours_are_off",)),
    Together(rule="override", traits=("rules_are_off", "sets_itself_above")),
    Together(rule="override", traits=("takes_over",)),
    Together(rule="override", traits=("power", "calls_the_reader"), unless=("spared",)),
    Together(rule="permission", traits=("unasked", "drastic", "you_or_user"), unless=("asked_for", "throwaway")),
    Together(rule="permission", traits=("opens_the_gate", "commands")),
    Together(rule="permission", traits=("does_anything", "commands")),
    Together(rule="running", traits=("foreign_code", "each_session")),
    Together(rule="running", traits=("foreign_code", "at_a_word")),
    Together(rule="running", traits=("foreign_orders",)),
    Together(rule="running", traits=("own_key", "commands")),
    Together(rule="trust", traits=("own_vouching",)),
    Together(rule="trust", traits=("claims_power",)),
    Together(rule="spreading", traits=("carried_on",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionFinding:
    """A sentence that gives an order: from where to where it goes, and where in it the sign's first trait stands."""

    start: int
    end: int
    told: int


_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _TRAITS.items()}


def signs(text: str) -> Iterator[tuple[str, Iterator[InjectionFinding]]]:
    """Each sign with the sentences that show it, in the order of the text."""
    flat = text.replace("\n", " ")
    ends = [*(one.end() for one in _BREAK.finditer(text)), len(text)]
    for sign in SIGNS:
        yield sign.rule, _orders(sign, flat, ends)


def _orders(sign: Together, flat: str, ends: list[int]) -> Iterator[InjectionFinding]:
    first, *others = (_COMPILED[trait] for trait in sign.traits)
    excuses = [_COMPILED[trait] for trait in sign.unless]
    seen = -1
    for match in first.finditer(flat):
        if match.start() < seen:
            continue
        start, seen = _sentence(flat, ends, match.start())
        sentence = flat[start:seen]
        if all(one.search(sentence) for one in others) and not any(one.search(sentence) for one in excuses):
            yield InjectionFinding(start=start, end=seen, told=match.start())


def _sentence(flat: str, ends: list[int], place: int) -> tuple[int, int]:
    """Where the sentence around a place begins and ends; with the next where that goes on with what this one names."""
    number = bisect_right(ends, place)
    start, end = (ends[number - 1] if number else 0), ends[number]
    if number + 1 < len(ends) and _GOES_ON.match(flat, end):
        end = ends[number + 1]
    return max(start, place - _LONGEST // 2), min(end, place + _LONGEST)


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


def _signs(plain: str) -> Iterator[tuple[InjectionRule, Iterator[tuple[int, int, bool]]]]:
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


def _is_told_of(text: str, order: InjectionFinding, rule: str) -> bool:
    """Whether the sentence reports what stands in quotation marks that are open where its sign begins."""
    before = text[order.start : order.told]
    opened = max((before.rfind(mark) for mark in _QUOTATION if before.count(mark) % 2), default=-1)
    if opened >= 0 and _REPORTING.search(before[:opened].rstrip(" ,:(")):
        return True
    return _is_mentioned(text, order.told, order.end, rule)
