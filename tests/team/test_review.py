"""A review says what a change does to memory, field by field, and what is wrong with it (B4, K8)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from changes import ADA, BELOW, CODER, Team, codes

from memfs.errors import HistoryUnavailable
from memfs.format.codec import Codec
from memfs.team import review
from memfs.team.review_report import FieldChange, ItemChange, Report, markdown

KEY = "AKIA" + "Q3EGRIWXV5TLPO2Z"
PRUNED = "ContextMemory/archive/pruned/semantic"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A team's repository."""
    return Team(tmp_path / "team")


def one(report: Report, name: str) -> ItemChange:
    """What became of an item."""
    (found,) = [change for change in report.items if change.id == name]
    return found


# -- what changed -------------------------------------------------------------------------------------------------
def test_items_are_reported_by_what_became_of_them(team: Team) -> None:
    """Added, changed, superseded, moved and removed items are reported as that; into the archive they move (B4)."""
    team.item("semantic/tabs", "Indent with tabs.")
    team.item("semantic/port", "The gateway listens on port 8080.")
    team.item("semantic/gone", "The old cluster is in Oslo.")
    team.item("semantic/weak", "A weak one about nothing.")
    team.item("knowledge/moving", "Releases are cut on Tuesdays.")
    team.write(f"{PRUNED}/back.yaml", "content: Back again\ncreated: 2026-01-01T00:00:00Z\n")
    team.commit()
    team.branch()
    team.item("semantic/spaces", "Indent with four spaces.", supersedes="[tabs]")
    team.item("semantic/tabs", "Indent with tabs.", status="superseded")
    team.item("semantic/port", "The gateway listens on port 9090.", importance="2")
    (team.root / BELOW / "semantic/2026-03/gone.yaml").unlink()
    team.move(f"{BELOW}/semantic/2026-03/weak.yaml", f"{PRUNED}/weak.yaml")
    team.move(f"{PRUNED}/back.yaml", f"{BELOW}/semantic/2026-03/back.yaml")
    team.move(f"{BELOW}/knowledge/2026-03/moving.yaml", f"{BELOW}/semantic/2026-04/moving.yaml")
    team.commit()
    report = team.review()
    assert {change.id: change.what for change in report.items} == {
        "spaces": "added",
        "tabs": "superseded",
        "port": "changed",
        "gone": "removed",
        "weak": "moved",
        "back": "moved",
        "moving": "moved",
    }
    assert one(report, "tabs").by == "spaces"
    assert one(report, "moving").fields == (FieldChange(field="type", before="knowledge", after="semantic"),)
    assert {(field.field, field.before, field.after) for field in one(report, "port").fields} == {
        ("content", "The gateway listens on port 8080.", "The gateway listens on port 9090."),
        ("importance", 1.0, 2.0),
    }
    assert (report.commits, report.failed()) == (1, False)


def test_the_base_is_what_both_began_from(team: Team) -> None:
    """As in a pull request, what main got in the meantime is not part of the change (K8)."""
    team.branch()
    team.item("semantic/mine", "The branch says this.")
    team.commit()
    team.git("switch", "--quiet", "main")
    team.item("semantic/theirs", "Main says that.")
    team.commit()
    team.git("switch", "--quiet", "work")
    for revisions in ("main..work", "main...work", "main..", ""):
        assert [change.id for change in team.review(revisions).items] == ["mine"]
    team.git("switch", "--quiet", "--detach")
    assert [change.id for change in team.review("main..HEAD").items] == ["mine"]


def test_a_workspace_in_a_folder_is_reviewed_by_itself(tmp_path: Path) -> None:
    """In a code repository only the workspace's own files count."""
    team = Team(tmp_path / "team", below="tools/memory")
    team.branch()
    team.item("semantic/fresh", "A fact of its own.")
    (team.top / "code.py").write_text("print()")
    team.commit()
    report = team.review()
    assert [change.id for change in report.items] == ["fresh"]
    assert report.documents == ()


def test_documents_and_settings_are_reported_key_by_key(team: Team) -> None:
    """What changed in settings and other documents is reported by key (B4)."""
    team.branch()
    team.write("memfs.toml", '[review]\nendpoint = "https://x.example"\n[recall]\nlimit = 7\n')
    team.write("ContextMemory/configuration/retention_policy.json", "{}\n")
    team.commit()
    report = team.review()
    changes = {change.path: change for change in report.documents}
    assert changes["memfs.toml"].fields == (
        FieldChange(field="review.endpoint", after="https://x.example"),
        FieldChange(field="recall.limit", after=7),
    )
    assert changes["ContextMemory/configuration/retention_policy.json"].what == "added"


def test_conventions_are_reported_by_their_status(team: Team) -> None:
    """A convention that was accepted is named with owner, scope and what changed; one that came or went, too (K8)."""
    fields = {"content": "Write dates as 2026-03-01.", "data": "{owner: ada, scope: ['docs/**']}"}
    team.item("convention/dates", status="proposed", **fields)
    old = team.item("convention/old", "Log in local time.", status="retired")
    team.commit()
    team.branch()
    team.item("convention/dates", status="accepted", **fields)
    team.item("convention/utc", "Log in UTC.", trust="human", supersedes="[old]")
    team.git("rm", "-q", old)
    team.commit()
    text = markdown(team.review())
    assert "- `dates` (convention, accepted; owner ada; for `docs/**`, trust human)" in text
    assert "  - `status`: `proposed` → `accepted`" in text
    assert "- `utc` (convention, no status; no owner; supersedes old; for all files, trust human)" in text
    assert "- `old` (convention, retired; no owner; for all files" in text
    assert text.count("Log in UTC") == 1


def test_no_report_shows_a_secret(team: Team) -> None:
    """Not in what was added, nor in what a field or a file had or has, nor in a convention (B6)."""
    team.item("semantic/changed", f"It was {KEY}.")
    team.commit()
    team.branch()
    team.item("semantic/changed", f"It is {KEY[:-1]}3.", title=f"For {KEY}")
    team.item("semantic/added", f"The key is {KEY}.")
    team.item("semantic/allowed", f"The key is {KEY}.", metadata="{secret_allowed: an example}")
    team.commit()
    report = team.review()
    assert {"SecretDetected", "SecretAllowed"} <= {one.code for one in report.findings}
    for text in (str(report), markdown(report)):
        assert KEY[:-1] not in text
    assert "The key is [redacted: aws-access-key]." in markdown(report)


def test_links_twins_and_odd_names_are_found(team: Team) -> None:
    """A link among the files, two files of one id, and a name that hides something are errors (faults row 41)."""
    team.branch()
    (team.root / BELOW / "semantic/2026-03/link.yaml").symlink_to("/etc/passwd")
    team.item("knowledge/Anchor", "Another of the same name.")
    team.write(f"{BELOW}/semantic/2026-03/na\u202eme.yaml", "content: x\n")
    team.commit()
    found = codes(team.review())
    assert {("LinkInMemory", "error"), ("DuplicateId", "error"), ("SuspectName", "error")} <= found


def test_contradictions_and_repetitions_are_found(team: Team) -> None:
    """What a change denies, repeats or nearly repeats is named with the memory that was there (B4)."""
    team.item("semantic/database", "Use PostgreSQL for transactions.")
    team.item("semantic/old", "Use Oracle for transactions.", status="superseded")
    team.item("semantic/review", "Each pull request needs two reviewers before it is merged into the main branch.")
    team.commit()
    team.branch()
    team.item("semantic/other", "Use MySQL for transactions.")
    team.item("semantic/again", "Use PostgreSQL for transactions.")
    team.item("semantic/nearly", "Each pull request needs two reviewers before it gets merged into the main branch.")
    team.commit()
    found = {(row.code, frozenset((row.id, row.other))) for row in team.review().findings}
    assert ("Contradiction", frozenset(("other", "database"))) in found
    assert ("NearDuplicate", frozenset(("again", "database"))) in found
    assert ("NearDuplicate", frozenset(("nearly", "review"))) in found
    assert not any("old" in pair for _, pair in found)


def test_a_change_that_is_compared_in_part_says_so(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a very large change not every memory is compared with the others, and the report says that (B4)."""
    monkeypatch.setattr(review, "_MOST", 1)
    team.item("semantic/database", "Use PostgreSQL for transactions.")
    team.commit()
    team.branch()
    team.item("semantic/a", "Use PostgreSQL for transactions.")
    team.commit()
    assert "NotCompared" not in {code for code, _ in codes(team.review())}
    team.item("semantic/b", "Use PostgreSQL for transactions.")
    team.commit()
    assert ("NotCompared", "note") in codes(team.review())


def test_what_replaces_another_contradicts_it_not(team: Team) -> None:
    """A memory that names the one it takes the place of is not a contradiction."""
    team.item("semantic/database", "Use PostgreSQL for transactions.")
    team.commit()
    team.branch()
    team.item("semantic/other", "Use MySQL for transactions.", supersedes="[database]")
    team.commit()
    assert team.review().findings == ()


def test_trust_that_rises_is_found(team: Team) -> None:
    """Trust that rises is a warning, and more so where an agent's own commit claims it."""
    team.item("semantic/said", "The mirror is in Bergen.", trust="agent")
    team.commit()
    team.branch()
    team.item("semantic/said", "The mirror is in Bergen.", trust="human")
    team.item("semantic/fresh", "The backup is in Oslo.", trust="human", origin="{agent: planner}")
    team.item("semantic/typed", "The proxy is in Rome.", trust="human", origin="{role: user}")
    team.commit(author=CODER)
    report = team.review()
    found = {(row.code, row.severity, row.id) for row in report.findings}
    assert ("TrustRaised", "warning", "said") in found
    assert ("TrustClaimed", "warning", "fresh") in found
    assert ("TrustClaimed", "note", "typed") in found


def test_a_secret_that_was_taken_out_again_is_still_in_history(team: Team) -> None:
    """A secret in a commit on the way, or in a message, is found though the last commit has none (faults row 19)."""
    team.branch()
    team.item("semantic/fresh", f"The key is {KEY}.")
    team.commit()
    team.item("semantic/fresh", "The key is in the vault.")
    team.commit(f"Take out {KEY}")
    report = team.review()
    assert [row.code for row in report.findings] == ["SecretInHistory", "SecretInHistory"]
    assert KEY not in str(report.findings)


def test_a_reason_lets_a_secret_stay(team: Team) -> None:
    """A secret that the file gives a reason for is a warning that shows the reason."""
    team.branch()
    team.item("semantic/fresh", f"The key is {KEY}.", metadata="{secret_allowed: an example of the vendor}")
    team.commit()
    (found,) = team.review().findings
    assert (found.code, found.severity) == ("SecretAllowed", "warning")
    assert "an example of the vendor" in found.message


def test_what_a_merge_could_not_decide_is_found(team: Team) -> None:
    """A conflict that a merge recorded in an item, and a record of one between documents, wait for somebody (B3)."""
    team.branch()
    team.item("semantic/fresh", "The mirror is in Bergen.", conflicts="[{field: title, kept: North, lost: South}]")
    team.write("ContextMemory/iterations/iteration_001/conflicts/c1.json", "{}")
    team.commit()
    report = team.review()
    found = [row for row in report.findings if row.code == "MergeConflict"]
    assert [row.id for row in found] == ["", "fresh"]
    assert "of title a merge kept 'North' and not 'South'" in found[1].message


def test_attributes_that_change_bytes_are_found(team: Team) -> None:
    """Git attributes by which a checkout would change memory files are found (threat model: the author of a PR)."""
    team.branch()
    team.write("ContextMemory/.gitattributes", "* text eol=crlf\n")
    team.commit()
    assert ("AttributesChanged", "warning") in codes(team.review())


def test_a_kind_file_that_is_broken_is_one_finding(team: Team) -> None:
    """With an invalid kinds.yaml the rest is still reviewed."""
    team.branch()
    team.write("ContextMemory/configuration/kinds.yaml", "kinds: 3\n")
    team.item("semantic/fresh", "A fact of its own.")
    team.commit()
    report = team.review()
    assert [change.id for change in report.items] == ["fresh"]
    assert any(row.path.endswith("kinds.yaml") and row.severity == "error" for row in report.findings)


# -- where it runs ------------------------------------------------------------------------------------------------
def test_a_shallow_clone_says_what_it_needs(team: Team, tmp_path: Path) -> None:
    """A clone without the common beginning gets an error that says so, with the remedy for workflows."""
    team.branch()
    for number in range(3):
        team.item(f"semantic/n{number}", f"Fact {number}.")
        team.commit()
    team.git("clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{team.top}", str(tmp_path / "clone"))
    clone = Team.__new__(Team)
    clone.top = clone.root = tmp_path / "clone"
    with pytest.raises(HistoryUnavailable, match="shallow") as caught:
        clone.review("origin/main..HEAD")
    assert "fetch-depth: 0" in (caught.value.hint or "")


@pytest.mark.parametrize("revisions", ["nobody..HEAD", "..HEAD", "--output=x..HEAD", "main..nobody", "other..HEAD"])
def test_a_range_that_means_nothing_is_refused(team: Team, revisions: str) -> None:
    """Unknown revisions, options in their place, and histories without a common beginning are clear errors."""
    team.git("switch", "--quiet", "--orphan", "other")
    team.item("semantic/alone", "Alone.")
    team.commit()
    team.git("switch", "--quiet", "main")
    with pytest.raises(HistoryUnavailable) as caught:
        team.review(revisions)
    assert caught.value.hint


def test_a_review_changes_nothing(team: Team) -> None:
    """A review writes neither into the folder nor into history, no matter who is at work there."""
    team.branch()
    team.item("semantic/fresh", "A fact of its own.")
    team.commit(author=ADA)
    team.item("semantic/edited", "Not committed.")
    before = (team.git("status", "--porcelain"), team.git("for-each-ref"), (team.top / ".git/index").read_bytes())
    team.review()
    after = (team.git("status", "--porcelain"), team.git("for-each-ref"), (team.top / ".git/index").read_bytes())
    assert before == after


def test_a_review_reads_what_the_last_one_did_not(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two reviews of one memory the second reads the items that differ, not all, and says the same (B4)."""
    for number in range(40):
        team.item(f"semantic/fact{number}", f"Fact number {number} is about the subject s{number}.")
    team.commit()
    team.branch()
    team.item("semantic/again", "Fact number 7 is about the subject s7.")
    team.commit()
    read, decode = list[str](), Codec.decoded

    def noted(codec: Codec, data: bytes, path: str, modified: datetime, *, checked: bool = False) -> object:
        read.append(path)
        return decode(codec, data, path, modified, checked=checked)

    monkeypatch.setattr(Codec, "decoded", noted)
    first = team.review()
    assert len(read) > 40
    read.clear()
    assert team.review() == first
    assert len(set(read)) < 15
    assert ("NearDuplicate", "warning") in codes(first)
