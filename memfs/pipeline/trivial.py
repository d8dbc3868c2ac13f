"""Trivial filter: texts that are not worth remembering, told without a reviewer (seed 003, C3).

Owns the sorts of trivial text, the phrases of small talk, and what each sort is called. Whether such a text is refused
is the intake's business; what merely says little is left to the reviewers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache

TRIVIAL = "trivial: "

_GREETING = "a greeting"
_FAREWELL = "a farewell"
_ASSENT = "an acknowledgement"
_THANKS = "thanks"
_FILLER = "a filler"
_ADDRESSING = frozenset({_GREETING, _FAREWELL, _THANKS})
_LONGEST = 200
_FEWEST_LETTERS = 4
_FEWEST_WORDS = 2

_PHRASES: Mapping[str, str] = {
    _GREETING: "hi, hiya, hello, hey, heya, yo, howdy, greetings, sup, what's up, whats up, wassup, good "
    "morning, morning, good afternoon, good evening, good day, how are you, how are you doing, "
    "how are you today, how's it going, hows it going, how do you do, how have you been, nice to "
    "meet you, nice to see you, good to see you, pleased to meet you, welcome back, long time no "
    "see, hope you are well, hope you're well, are you there, you there, hallo, guten tag, guten "
    "morgen, bonjour, salut, hola, buenos dias, ciao, ola, namaste, hej, 你好, こんにちは, 안녕하세요, "
    "привет, здравствуйте, مرحبا",
    _FAREWELL: "bye, bye bye, goodbye, good bye, good night, goodnight, night, see you, see ya, see you "
    "later, see you soon, see you tomorrow, talk to you later, talk later, ttyl, cya, later, take "
    "care, have a nice day, have a good day, have a great day, have a good one, have a nice "
    "weekend, have a good weekend, have a great weekend, have fun, cheerio, farewell, that's all, "
    "thats all, that is all, that will be all, tschüss, au revoir, adios, 再见",
    _THANKS: "thanks, thank you, thank u, thx, ty, tysm, many thanks, thanks a lot, thanks a bunch, thanks "
    "a million, much appreciated, appreciated, appreciate it, i appreciate it, i appreciate that, "
    "cheers, you're welcome, youre welcome, you are welcome, no problem, no worries, np, my "
    "pleasure, anytime, don't mention it, danke, merci, gracias, obrigado, grazie, spasibo, 谢谢, "
    "ありがとう, 감사합니다, спасибо",
    _ASSENT: "ok, okay, okey, k, kk, okie, okey dokey, yes, yeah, yep, yup, yea, ya, aye, no, nope, nah, "
    "sure, sure thing, of course, certainly, absolutely, definitely, exactly, indeed, right, "
    "alright, all right, correct, fine, agreed, i agree, true, got it, gotcha, i see, i "
    "understand, understood, roger, copy that, noted, will do, makes sense, that makes sense, "
    "sounds good, sounds great, looks good, looks great, looks good to me, sounds good to me, "
    "lgtm, fair enough, good, great, nice, cool, perfect, awesome, excellent, amazing, wonderful, "
    "fantastic, brilliant, lovely, well done, good job, great job, nice work, good work, great "
    "work, nice one, go ahead, go for it, please do, do it, yes please, no thanks, please, please "
    "continue, continue, go on, keep going, proceed, next, next please, carry on, never mind, "
    "nevermind, nvm, forget it, it's fine, its fine, that's fine, thats fine, that's right, thats "
    "right, that's great, thats great, that's good, works for me, that works, it works, it "
    "worked, that worked, works now, done, all done, i'm done, im done, all good, all set, we're "
    "good, good to know, my bad, sorry, i'm sorry, im sorry, apologies, oops, whoops, excuse me, "
    "pardon, you're right, youre right, you are right, absolutely right, you're absolutely right, "
    "interesting, good idea, great idea, good point, good question, great question, ja, nein, "
    "oui, non, si, da, 好的, 是的, はい",
    _FILLER: "hm, hmm, hmmm, mhm, uh, uhh, um, umm, er, erm, ah, aha, oh, ooh, eh, huh, meh, wow, whoa, "
    "yay, lol, lmao, rofl, haha, hahaha, hehe, well, let me see, let me think, let's see, lets "
    "see, let me check, let me look, i'll check, i will check, i'll take a look, i'll look into "
    "it, i'll have a look, let me take a look, checking, looking, looking into it, thinking, "
    "working, working on it, on it, i'm on it, im on it, one moment, one second, one sec, a "
    "moment, just a moment, just a second, just a sec, give me a moment, give me a second, hold "
    "on, hang on, wait, wait a moment, wait a minute, please wait, brb, be right back, back, i'm "
    "back, im back, here we go, let's go, lets go, let's start, let's begin, here you go, there "
    "you go, are you sure, really, seriously, what, why, how, who, when, where, so what, what "
    "now, now what, what else, anything else, is there anything else, can you help me, can you "
    "help, could you help me, help, help me, i need help, please help, i have a question, can i "
    "ask you a question, can i ask a question, quick question, i don't know, i dont know, idk, "
    "not sure, i'm not sure, no idea, whatever, how can i help, how can i help you, how may i "
    "help you, how can i assist you, how can i assist you today, how can i help you today, what "
    "can i do for you, let me know, let me know if you need anything, let me know if you have any "
    "questions, let me know if you need anything else, happy to help, glad to help, glad to hear "
    "it, glad i could help, feel free to ask, try again, again, test, testing, this is a test, "
    "just testing, just a test, asdf, qwerty, qwertz, foo, bar, baz, lorem ipsum, hello world, "
    "blah, bla, 嗯",
}
# Words that may stand between small talk without adding to it, and those one may be addressed by.
_NEUTRAL_WORDS = (
    "a all and at bit but dear everybody everyone folks for friend friends from guys help here i it it's "
    "just lot me man mate much my now of oh one quick really sir so team that the then there this to "
    "today too u us very we you your ya y'all again am i'm im buddy claude assistant bot"
)
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
_COMMANDS = (
    r"cd|ls|ll|pwd|clear|exit|quit|whoami|date|history|top|htop|df|du|ps|jobs|fg|bg|reset|"
    r"git (?:status|log|diff|pull|push|fetch|add|stash|branch|show)"
)
_ARGUMENT = r"(?:-\S+|[\w.~*-]*[/.~*][\w./~*-]*)"
_COMMAND = re.compile(rf"[$%❯➜]\s+\S.{{0,38}}|(?:{_COMMANDS})(?:\s+{_ARGUMENT})*|/[a-z][\w-]*")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


@cache  # takes milliseconds, and a filter is made for each facade
def _tree() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Every phrase with its sort, by its first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for sort, phrases in _PHRASES.items():
        for phrase in phrases.split(", "):
            words = tuple(_words(phrase))
            found.setdefault(words[0], []).append((words, sort))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


class TrivialFilter:
    """Tells greetings, acknowledgements, fragments and echoes from what somebody may want to know again.

    It refuses only what is nothing else: "thanks to caching it is fast" and the short order "use tabs" pass.
    """

    def __init__(self) -> None:
        self._phrases = _tree()

    def reason(self, content: str) -> str:
        """Why the text is not worth remembering, beginning with ``trivial: ``; "" where it may be."""
        sort = self._sort(content.strip())
        return TRIVIAL + sort if sort else ""

    def is_trivial(self, content: str) -> bool:
        """Whether the text is not worth remembering."""
        return bool(self.reason(content))

    def _sort(self, text: str) -> str:
        if len(text) > _LONGEST:
            return "" if any(character.isalpha() for character in text) else _without_letters(text)
        if not any(character.isalpha() for character in text):
            return _without_letters(text)
        if _COMMAND.fullmatch(text):
            return "an echo of a command"
        words = _words(text)
        return self._small_talk(words, text) or _fragment(words, text)

    def _small_talk(self, words: list[str], text: str) -> str:
        """The sort of the first phrase, where nothing but phrases and neutral words is said."""
        first, at = "", 0
        while at < len(words):
            length, sort = self._phrase(words, at)
            if length:
                first = first or sort
            elif words[at] not in _NEUTRAL and not (first in _ADDRESSING and _is_address(words, at, text)):
                return ""
            at += length or 1
        return first

    def _phrase(self, words: list[str], at: int) -> tuple[int, str]:
        for phrase, sort in self._phrases.get(words[at], ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                return len(phrase), sort
        return 0, ""


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()
    return [_squeezed(word) for word in _WORD.findall(plain)]


def _squeezed(word: str) -> str:
    """``heyyyy`` as ``hey``: three letters in a row are one."""
    return re.sub(r"(\w)\1{2,}", r"\1", word)


def _without_letters(text: str) -> str:
    if not text:
        return "empty"
    digits = sum(character.isdigit() for character in text)
    return "nothing but numbers" if digits else "nothing but punctuation or signs"


def _is_address(words: list[str], at: int, text: str) -> bool:
    """Whether the last word is the name of somebody spoken to: ``Hi Bob``, ``thanks, Alice!``."""
    return at == len(words) - 1 <= 3 and any(word.casefold() == words[at] for word in _capitals(text))


def _capitals(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text)[1:] if word.istitle())


def _fragment(words: list[str], text: str) -> str:
    """Why a text is too little to mean anything; "" where it is enough."""
    letters = sum(character.isalnum() for character in text)
    if _UNSPACED.search(text):
        return "" if letters >= _FEWEST_LETTERS else "too short"
    if len(words) < _FEWEST_WORDS or letters < _FEWEST_LETTERS:
        says = re.search(r"\w[=:@/]\w", text)  # ``editor=vim``, a link, an address: short, and yet a fact
        return "" if says else "too short"
    if len(set(words)) == 1:
        return "one word over and over"
    return ""
