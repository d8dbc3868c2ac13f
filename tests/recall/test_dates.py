"""Times that a question names: in ten languages, counted from a remembered event, and asked for by their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memfs import MemoryItem, Query, Workspace, open_workspace
from memfs.recall.dates import times_in
from memfs.recall.ranking import QueryTerms, relevance_percents
from memfs.recall.recaller import Recaller
from memfs.resources import times_text

TODAY = date(2026, 3, 10)
LAST_WEEK, YESTERDAY = "2026-03-10 -14..0", "2026-03-10 -1..-1, 2026-03-10 -1..0"
THREE_MONTHS_AGO, THAT_DAY = "2026-03-10 -106..-74", "2023-05-09 0..0, 2023-05-09 0..1, 2023-05-09 -1..7"
LAST_MONTH, LAST_YEAR, IN_MAY, IN_SUMMER = "month 2, year 2026", "year 2025", "month 5", "month 6, month 7, month 8"

TABLE = {
    "en": {
        "What did we do yesterday?": YESTERDAY,
        "What did we do last week?": LAST_WEEK,
        "What did we decide last month?": LAST_MONTH,
        "What did we decide last year?": LAST_YEAR,
        "What did we decide this month?": "month 3, year 2026",
        "What did we decide this year?": "year 2026",
        "What is planned this Friday?": "2026-03-10 3..3",
        "What did we do this Monday?": "2026-03-10 -1..0",
        "What did we decide three months ago?": THREE_MONTHS_AGO,
        "What did we decide in May?": IN_MAY,
        "What happened on 9 May 2023?": THAT_DAY,
        "Where were we in the summer?": IN_SUMMER,
        "What changed two weeks after the launch?": "2 x 7 after: launch",
        "Two weeks after the launch, what changed?": "2 x 7 after: launch",
        "What did we do the day before the migration?": "1 before: migration",
        "What broke the week after we moved to Postgres?": "7 after: we moved to Postgres",
        "Which bugs came up since the audit?": "since: audit",
        "Who was the puppy she got two weeks before May 9, 2023?": "2023-05-09 -10..0, 2023-05-09 -18..-10",
        "Where did she go on the Sunday before May 9, 2023?": "2023-05-09 -10..0, 2023-05-09 -2..-1, 2023-05-09 -3..5",
        "When did we deploy for the first time?": "oldest first",
        "When did we last deploy?": "newest first",
        "When was the shop last deployed?": "newest first",
        "What did the last speaker say?": "",
        "What do we do after lunch?": "",
        "Have I ever met a hot spring before?": "",
        "What follows after two weeks?": "",
    },
    "de": {
        "Was haben wir gestern gemacht?": YESTERDAY,
        "Was war letzte Woche?": LAST_WEEK,
        "Was haben wir im letzten Monat entschieden?": LAST_MONTH,
        "Was haben wir letztes Jahr entschieden?": LAST_YEAR,
        "Was haben wir vor drei Monaten entschieden?": THREE_MONTHS_AGO,
        "Was haben wir im Mai beschlossen?": IN_MAY,
        "Was haben wir am 9. Mai 2023 beschlossen?": THAT_DAY,
        "Wo waren wir im Sommer?": IN_SUMMER,
        "Was änderte sich zwei Wochen nach dem Launch?": "2 x 7 after: Launch",
        "Was haben wir am Tag vor der Migration gemacht?": "1 before: Migration",
        "Was änderte sich seit dem Audit?": "since: Audit",
        "Wann haben wir zum ersten Mal deployt?": "oldest first",
        "Wann haben wir zuletzt deployt?": "newest first",
    },
    "fr": {
        "Qu'avons-nous fait hier ?": YESTERDAY,
        "Qu'avons-nous fait la semaine dernière ?": LAST_WEEK,
        "Qu'avons-nous décidé le mois dernier ?": LAST_MONTH,
        "Qu'avons-nous décidé l'année dernière ?": LAST_YEAR,
        "Qu'avons-nous décidé il y a trois mois ?": THREE_MONTHS_AGO,
        "Qu'avons-nous décidé en mai ?": IN_MAY,
        "Qu'avons-nous décidé le 9 mai 2023 ?": THAT_DAY,
        "Où étions-nous en été ?": IN_SUMMER,
        "Que s'est-il passé deux semaines après le lancement ?": "2 x 7 after: lancement",
        "Qu'avons-nous fait la veille de la migration ?": "1 x 1 before: migration",
        "Qu'est-ce qui a changé depuis l'audit ?": "since: l'audit",
        "Quand avons-nous déployé pour la première fois ?": "oldest first",
        "Quand avons-nous déployé pour la dernière fois ?": "newest first",
    },
    "es": {
        "¿Qué hicimos ayer?": YESTERDAY,
        "¿Qué hicimos la semana pasada?": LAST_WEEK,
        "¿Qué decidimos el mes pasado?": LAST_MONTH,
        "¿Qué decidimos el año pasado?": LAST_YEAR,
        "¿Qué decidimos hace tres meses?": THREE_MONTHS_AGO,
        "¿Qué decidimos en mayo?": IN_MAY,
        "¿Qué pasó el 9 de mayo de 2023?": THAT_DAY,
        "¿Dónde estuvimos en verano?": IN_SUMMER,
        "Dos semanas después del lanzamiento, ¿qué cambió?": "2 x 7 after: lanzamiento",
        "¿Qué hicimos el día antes de la migración?": "1 before: migración",
        "¿Qué ha cambiado desde la auditoría?": "since: auditoría",
        "¿Cuándo desplegamos por primera vez?": "oldest first",
        "¿Cuándo desplegamos por última vez?": "newest first",
    },
    "pt": {
        "O que fizemos ontem?": YESTERDAY,
        "O que fizemos na semana passada?": LAST_WEEK,
        "No mês passado, o que decidimos?": LAST_MONTH,
        "O que decidimos no ano passado?": LAST_YEAR,
        "O que decidimos há três meses?": THREE_MONTHS_AGO,
        "O que decidimos em maio?": IN_MAY,
        "O que aconteceu em 9 de maio de 2023?": THAT_DAY,
        "Onde estivemos no verão?": IN_SUMMER,
        "O que mudou duas semanas depois do lançamento?": "2 x 7 after: lançamento",
        "O que fizemos no dia antes da migração?": "1 before: migração",
        "Não sei o que mudou desde a auditoria": "since: auditoria",
        "Quando publicamos pela primeira vez?": "oldest first",
        "Quando publicamos pela última vez?": "newest first",
    },
    "it": {
        "Cosa abbiamo fatto ieri?": YESTERDAY,
        "Cosa abbiamo fatto la settimana scorsa?": LAST_WEEK,
        "Cosa abbiamo deciso il mese scorso?": LAST_MONTH,
        "Cosa abbiamo deciso l'anno scorso?": LAST_YEAR,
        "Cosa abbiamo deciso tre mesi fa?": THREE_MONTHS_AGO,
        "Cosa è successo a maggio?": IN_MAY,
        "Cosa è successo il 9 maggio 2023?": THAT_DAY,
        "Dove siamo stati in estate?": IN_SUMMER,
        "Che cosa è cambiato due settimane dopo il lancio?": "2 x 7 after: lancio",
        "Cosa abbiamo fatto il giorno prima della migrazione?": "1 before: migrazione",
        "Cosa è cambiato da quando siamo passati a Postgres?": "since: siamo passati a Postgres",
        "Quando abbiamo pubblicato per la prima volta?": "oldest first",
        "Quando abbiamo pubblicato per l'ultima volta?": "newest first",
    },
    "nl": {
        "Wat hebben we gisteren gedaan?": YESTERDAY,
        "Wat hebben we vorige week gedaan?": LAST_WEEK,
        "Wat hebben we vorige maand besloten?": LAST_MONTH,
        "Wat hebben we vorig jaar besloten?": LAST_YEAR,
        "Wat hebben we drie maanden geleden besloten?": THREE_MONTHS_AGO,
        "Wat hebben we in mei besloten?": IN_MAY,
        "Wat gebeurde er op 9 mei 2023?": THAT_DAY,
        "Waar waren we in de zomer?": IN_SUMMER,
        "Wat veranderde er twee weken na de lancering?": "2 x 7 after: lancering",
        "Wat hebben we de dag voor de migratie gedaan?": "1 before: migratie",
        "Wat is er veranderd sinds de audit?": "since: audit",
        "Wanneer hebben we voor het eerst uitgerold?": "oldest first",
        "Wanneer hebben we voor het laatst uitgerold?": "newest first",
    },
    "ru": {
        "Что мы делали вчера?": YESTERDAY,
        "Что мы делали на прошлой неделе?": LAST_WEEK,
        "Что мы решили в прошлом месяце?": LAST_MONTH,
        "Что мы решили в прошлом году?": LAST_YEAR,
        "Что мы решили три месяца назад?": THREE_MONTHS_AGO,
        "Что мы решили в мае?": IN_MAY,
        "Что случилось 9 мая 2023?": THAT_DAY,
        "Где мы были летом?": IN_SUMMER,
        "Что изменилось через две недели после запуска?": "2 x 7 after: запуска",
        "Что мы делали накануне миграции?": "1 x 1 before: миграции",
        "Что изменилось с момента аудита?": "since: аудита",
        "Когда мы впервые выпустили релиз?": "oldest first",
        "Когда мы выпускали релиз в последний раз?": "newest first",
    },
    "zh": {
        "我们昨天做了什么?": YESTERDAY,
        "我们上周做了什么?": LAST_WEEK,
        "我们上个月决定了什么?": LAST_MONTH,
        "我们去年决定了什么?": LAST_YEAR,
        "我们三个月前决定了什么?": THREE_MONTHS_AGO,
        "我们在五月决定了什么?": IN_MAY,
        "2023年5月9日发生了什么?": THAT_DAY,
        "我们在夏天去了哪里?": IN_SUMMER,
        "发布两周后我们改了什么?": "2 x 7 after: 发布",
        "我们在迁移前一天做了什么?": "1 x 1 before: 迁移",
        "审计以来改了什么?": "since: 审计",
        "我们第一次部署是什么时候?": "oldest first",
        "我们最后一次部署是什么时候?": "newest first",
    },
    "ja": {
        "昨日何をしましたか": YESTERDAY,
        "先週何をしましたか": LAST_WEEK,
        "先月何を決めましたか": LAST_MONTH,
        "去年何を決めましたか": LAST_YEAR,
        "3ヶ月前に何を決めましたか": THREE_MONTHS_AGO,
        "5月に何を決めましたか": IN_MAY,
        "2023年5月9日に何がありましたか": THAT_DAY,
        "夏にどこへ行きましたか": IN_SUMMER,
        "リリースの2週間後に何を変えましたか": "2 x 7 after: リリース",
        "移行の前日に何をしましたか": "1 x 1 before: 移行",
        "監査以来何が変わりましたか": "since: 監査",
        "初めてデプロイしたのはいつですか": "oldest first",
        "最後にデプロイしたのはいつですか": "newest first",
    },
}  # fmt: skip


def times_named(question: str) -> str:
    """What times a question names, in short."""
    times = times_in(question, TODAY)
    if times is None:
        return ""
    found = [f"{one.day} {one.first}..{one.last}" for one in times.days]
    if not times.days:
        found += [f"month {month}" for month in sorted(times.months)] + [f"year {year}" for year in sorted(times.years)]
    if times.distance is not None:
        number, length, relation = times.distance.number, times.distance.length, times.distance.relation
        how = " x ".join(str(one) for one in (number, length) if one)
        sort = {"S": "since", "F": "after"}.get(relation, "before")
        found.append(f"{how} {sort}: {times.event}".strip())
    return ", ".join(
        found + [name for name, order in (("oldest first", -1), ("newest first", 1)) if times.order == order]
    )


@pytest.mark.parametrize(
    ("question", "expected"), [row for rows in TABLE.values() for row in rows.items()], ids=lambda text: text[:40]
)
def test_a_question_names_its_times_in_its_language(question: str, expected: str) -> None:
    """Each question names the window beside it, whatever language it is in."""
    assert times_named(question) == expected


def test_every_language_of_times_is_tested() -> None:
    """A language with words of time has questions that are read with them; those without a time are not read at all."""
    assert json.loads(times_text()).keys() == TABLE.keys()
    for rows in TABLE.values():
        for question, expected in rows.items():
            named = QueryTerms.of(Query(text=question), datetime(2026, 3, 10, tzinfo=UTC)).times
            assert bool(named) == bool(expected), question


LOGOS = [f"{month}-{day}" for month in range(1, 7) for day in ("04", "18")]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A new workspace."""
    with open_workspace(tmp_path / "w", create=True) as opened:
        yield opened


@pytest.fixture
def shop(workspace: Workspace) -> Workspace:
    """A workspace of a shop whose logo changes all the time, beside a few events."""
    rows = [
        ("launch", "The launch of the shop went live on May 3, 2026", "2026-04-20"),
        ("checklist", "The launch checklist has nine steps", "2026-04-10"),
        ("tired", "Two weeks after the launch nobody had slept", "2026-05-18"),
        ("postgres", "We moved to Postgres", "2026-03-01"),
        *((f"logo-{day}", f"Logo number {day}", f"2026-0{day}") for day in LOGOS),
    ]
    for name, text, day in rows:
        workspace.store.put(MemoryItem(text, id=name, timestamp=day))
    return workspace


def best(workspace: Workspace, question: str) -> tuple[str, set[str]]:
    """The anchor of an answer with its day, and the logos that count for their time."""
    answer = workspace.recall(question, limit=50)
    found = {hit.item.id for hit in answer if hit.reasons.get("when", 1.0) > 1.0 and hit.item.id.startswith("logo")}
    return f"{answer.anchor.id} {answer.anchor.day}" if answer.anchor is not None else "", found


@pytest.mark.parametrize(
    ("question", "anchor", "logos"),
    [
        ("which logo did we have two weeks after the launch", "launch 2026-05-03", {"logo-5-18"}),
        ("the logo of the day after the launch", "launch 2026-05-03", {"logo-5-04"}),
        ("the logo of the week after we moved to Postgres", "postgres 2026-03-01", {"logo-3-04"}),
        ("every logo since the launch", "launch 2026-05-03", {"logo-5-04", "logo-5-18", "logo-6-04", "logo-6-18"}),
        ("the logo two weeks after the zebra", "", set()),
        ("the logo two weeks after the launch of the zebra", "", set()),
        ("the logo after the launch", "", set()),
    ],
)
def test_a_time_counts_from_a_remembered_event(shop: Workspace, question: str, anchor: str, logos: set[str]) -> None:
    """The event is looked up; the day that its memory names counts, or its own; where none fits, nothing changes."""
    assert best(shop, question) == (anchor, logos)


@pytest.mark.parametrize(
    ("question", "sought"),
    [
        ("what happened two weeks after the launch", ""),
        ("what did we do the day after the launch", ""),
        ("which logo did we have two weeks after the launch", "which logo did we have"),
        ("which bugs came since the launch?", "which bugs came ?"),
        ("how many weeks after the launch did we change it", "how many weeks after the launch did we change it"),
    ],
)
def test_the_words_of_an_event_are_not_what_is_asked_for(question: str, sought: str) -> None:
    """Where the day of an event is found, the rest of the question is searched; where nothing remains, that time is."""
    times = times_in(question, TODAY)
    assert times is not None
    assert " ".join(times.counted_from(TODAY).rest.split()) == sought


def test_what_happened_some_time_after_an_event_is_the_answer(shop: Workspace) -> None:
    """Nothing but a time is asked for: what was then comes before the memory of the event itself."""
    assert shop.recall("what happened two weeks after the launch").hits[0].item.id == "tired"


@pytest.mark.parametrize("day", ["the day before 0001-01-01", "the day after 9999-12-31", "9999-12-31", "0001-01-01"])
def test_a_day_at_the_end_of_all_time_ends_no_question(workspace: Workspace, day: str) -> None:
    """A memory of a day beside which there is none is counted from like others, whichever way."""
    workspace.store.put(MemoryItem(f"The zebra launch was {day}.", id="launch", timestamp="2026-05-03"))
    for distance in ("two weeks after", "a year before", "the day before", "since"):
        answer = workspace.recall(f"what happened {distance} the zebra launch")
        assert answer.anchor is not None
        assert answer.anchor.id == "launch"
    assert workspace.recall(f"what happened two years before {day}") is not None


def test_of_many_numbers_the_last_one_counts() -> None:
    """Numbers are read however many there are, and the one beside the unit is meant."""
    found = times_in(f"What was it {'7 ' * 40}2 weeks ago?", TODAY)
    assert found is not None
    assert [(one.first, one.last) for one in found.days] == [(-18, -10)]


def test_the_day_of_an_event_is_looked_for_where_a_memory_begins(workspace: Workspace) -> None:
    """Of a long memory the beginning, and what follows the words of the event, give the day."""
    numbers = "7 8 9 " * 10_000
    workspace.store.put(MemoryItem(f"{numbers}\nThe zebra launch was on May 3, 2026", id="l", timestamp="2026-06-03"))
    assert best(workspace, "the logo two weeks after the zebra launch")[0] == "l 2026-05-03"


def test_the_first_and_the_last_time_are_reported_by_the_times(workspace: Workspace) -> None:
    """Of memories that fit as well as the best, the oldest comes first, or the newest, with the factor that did it."""
    for month in (3, 1, 2):
        workspace.store.put(MemoryItem("The shop was deployed", id=f"m{month}", timestamp=f"2026-0{month}-01"))
    workspace.store.put(MemoryItem("A shop", id="worse", timestamp="2020-01-01"))
    workspace.store.put(MemoryItem("Tests took long", id="other", timestamp="2026-01-01"))
    assert [hit.item.id for hit in workspace.recall("when was the shop deployed for the first time")][:3] == [
        "m1",
        "m2",
        "m3",
    ]
    assert [hit.item.id for hit in workspace.recall("when was the shop deployed the last time")][:3] == [
        "m3",
        "m2",
        "m1",
    ]


SUNDAY = datetime(2026, 11, 29, 9, tzinfo=UTC)
FIXES = [f"fix-{number}" for number in range(120)]


@pytest.fixture
def fixes(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace in which many old memories have the words of a question, and one of last week has some of them."""
    with open_workspace(tmp_path / "fixes", create=True) as workspace:
        for number, name in enumerate(FIXES):
            moment = f"2026-0{number % 2 + 1}-{number % 28 + 1:02}"
            workspace.store.put(MemoryItem(f"Ada fixed test {number}", id=name, timestamp=moment))
        deploy = "Ada deployed version 4.2 of the shop, which many asked for, and a rollback was needed"
        workspace.store.put(MemoryItem(deploy, id="deploy", timestamp="2026-11-24"))
        yield workspace


def asked(workspace: Workspace, text: str, limit: int, until: str | None = None) -> list[str]:
    """The ids of the hits of a question that is asked on a Sunday, best first."""
    recall = Recaller(workspace.store, "default", lambda: SUNDAY, workspace.kinds)
    return [hit.item.id for hit in recall.search(Query(text=text, limit=limit, until=until)).hits]


@pytest.mark.parametrize("question", ["what did Ada do last week", "what did Ada do in November", "Ada on 24 November"])
def test_a_memory_of_the_time_that_is_named_is_found_beside_many_that_fit_the_words(
    fixes: Workspace, question: str
) -> None:
    """What is of the time asked for is looked for apart, within the filters of the question."""
    assert asked(fixes, question, limit=3)[0] == "deploy"
    assert "deploy" not in asked(fixes, question, limit=3, until="2026-10-01")


@pytest.mark.parametrize("question", ["what did Ada do last week", "Ada fixed test 7", "how many tests did Ada fix"])
def test_a_smaller_limit_gives_the_beginning_of_the_same_answer(fixes: Workspace, question: str) -> None:
    """How many hits are asked for does not decide which are the best."""
    twenty = asked(fixes, question, limit=20)
    assert len(twenty) == 20
    for limit in (1, 3, 10):
        assert asked(fixes, question, limit) == twenty[:limit]


BARE = {
    "en": ["What happened last week?", "What did we do on 2026-11-24?", "what is new since 23 November 2026"],
    "de": ["Was ist letzte Woche passiert?", "Was haben wir am 24. November 2026 gemacht?"],
    "fr": ["Que s'est-il passé la semaine dernière ?", "Qu'avons-nous fait le 24 novembre 2026 ?"],
    "es": ["¿Qué pasó la semana pasada?", "¿Qué hicimos el 24 de noviembre de 2026?"],
    "pt": ["O que aconteceu na semana passada?", "O que fizemos em 24 de novembro de 2026?"],
    "it": ["Cosa è successo la settimana scorsa?", "Cosa abbiamo fatto il 24 novembre 2026?"],
    "nl": ["Wat is er vorige week gebeurd?", "Wat hebben we op 24 november 2026 gedaan?"],
    "ru": ["Что произошло на прошлой неделе?", "Что мы делали 24 ноября 2026?"],
    "zh": ["上周发生了什么？", "我们2026年11月24日做了什么？"],
    "ja": ["先週何がありましたか", "2026年11月24日に何をしましたか"],
}


def test_every_language_of_times_has_questions_of_a_time_alone() -> None:
    """A language with words of time is tested with what asks for nothing but what was then."""
    assert json.loads(times_text()).keys() == BARE.keys()


@pytest.mark.parametrize("question", [row for rows in BARE.values() for row in rows], ids=lambda text: text[:40])
def test_a_question_of_a_time_alone_brings_what_was_then(fixes: Workspace, question: str) -> None:
    """Where nothing but words about the asking is beside a time, the memories of that time are the answer."""
    recall = Recaller(fixes.store, "default", lambda: SUNDAY, fixes.kinds)
    answer = recall.search(question)
    assert [hit.item.id for hit in answer.hits] == ["deploy"]
    assert not answer.nothing_fits
    assert relevance_percents(question, answer.hits) == [100]


def test_what_was_then_is_reported_with_the_day_itself_first_and_the_newest_before_the_older(fixes: Workspace) -> None:
    """The day that is named comes before those around it; of days that are as near the last comes first."""
    for day in (23, 25, 26, 27):
        fixes.store.put(MemoryItem(f"Grace wrote page {day}", id=f"page-{day}", timestamp=f"2026-11-{day}"))
    assert asked(fixes, "what happened last week", 3) == ["page-27", "page-26", "page-25"]
    assert asked(fixes, "what happened on 24 November 2026", 4) == ["deploy", "page-25", "page-27", "page-26"]


def test_the_figures_of_a_day_are_not_taken_for_words_but_are_found_where_they_are_written(fixes: Workspace) -> None:
    """A memory that says the day asked for, in words or figures, is a hit; one that has some of its figures is not one
    of what was then.
    """
    for number in range(5):
        fixes.store.put(MemoryItem(f"Ada has {number} of 24 in November", id=f"n{number}", timestamp="2026-03-01"))
    fixes.store.put(MemoryItem("The party is on 2026-12-24, in Graz", id="party", timestamp="2026-03-01"))
    assert asked(fixes, "what did Ada do on 24 November 2026", 1) == ["deploy"]
    assert asked(fixes, "what happens on 24 December 2026", 5) == ["party"]
    assert asked(fixes, "where is the party on 2026-12-24", 1) == ["party"]
    assert asked(fixes, "2026-12-24", 5) == ["party"]
    assert asked(fixes, "what did Ada do 30 days before February 9, 2026", 1)
    assert asked(fixes, "what did Ada do on 9999-12-31", 1)
