"""The table of verbs: where each is implemented and what it says of itself.

``memfs --help`` and completion are answered from here, so that no verb's module is imported for them. Knows nothing of
what the verbs do.
"""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One verb: its name, ``module:attribute`` below this package, a summary, and a second name."""

    name: str
    home: str
    summary: str
    alias: str = ""


FAMILIES: dict[str, tuple[Verb, ...]] = {
    "Remember and find": (
        Verb("remember", "remember:remember", "Remember a text.", "add"),
        Verb("recall", "recall:recall", "Find what was remembered.", "search"),
        Verb("show", "items:show", "Show one item, now or at a revision."),
        Verb("list", "items:list_", "List items, newest first."),
        Verb("context", "context:context", "Keep keys and values of a session or workflow."),
        Verb("inbox", "inbox:inbox", "Decide what becomes of what memfs worked out by itself."),
        Verb("patterns", "patterns:patterns", "Show what several memories have in common."),
        Verb("consolidate", "patterns:consolidate", "End a session: keep what matters, clear the rest."),
        Verb("feedback", "learning:feedback", "Say whether an item helped."),
        Verb("forget", "items:forget", "Remove items; history keeps them."),
        Verb("erase", "erasing:erase", "Remove an item from history, too, with proof."),
    ),
    "Give agents their memory": (
        Verb("inject", "delivering:inject", "Print what belongs into an agent's system prompt."),
        Verb("warn", "delivering:warn", "Print what a situation brings to mind before a step."),
        Verb("episode", "episodes:episode", "Record what agents did, and learn rules from it."),
        Verb("correct", "delivering:correct", "Keep what a person corrects or prefers."),
        Verb("agents-md", "agents_md:agents_md", "Keep what is agreed on in AGENTS.md."),
        Verb("conflicts", "conflicts:conflicts", "Show what cannot both hold, and decide about it."),
    ),
    "Meet agents where they are": (
        Verb("install", "installing:install", "Let an agent's program use this memory."),
        Verb("uninstall", "installing:uninstall", "Take out what install put in, to the byte."),
        Verb("private", "private:private", "Show where your private memory of this project lies."),
        Verb("share", "share:share", "Copy private memory into the memory that others see."),
        Verb("hook", "hooking:hook", "Answer an event of an agent's session."),
        Verb("mcp", "serving:mcp", "Serve this memory to programs that speak MCP."),
    ),
    "Write by hand": (
        Verb("new", "writing:new", "Start an item from its kind's template."),
        Verb("edit", "writing:edit", "Open an item in your editor and check it afterwards."),
    ),
    "History": (
        Verb("commit", "history:commit", "Commit what waits, hand edits included."),
        Verb("log", "history:log", "Show the commits of the memory or of one item."),
        Verb("diff", "history:diff", "Show what changed between two revisions."),
        Verb("blame", "blaming:blame", "Show who taught each field of an item."),
        Verb("rollback", "history:rollback", "Bring back an earlier state, as a new commit."),
        Verb("recover", "history:recover", "Bring back what a change by hand displaced."),
    ),
    "Work as a team": (
        Verb("review", "review:review", "Report what a pull request changes in memory."),
        Verb("convention", "convention:convention", "Propose, accept, retire and share what a team agrees on."),
        Verb("sync", "syncing:sync", "Exchange memory with a remote, losing nothing of either side."),
        Verb("branch", "branching:branch", "Give an agent a branch of its own, and merge or drop it."),
        Verb("resolve", "resolving:resolve", "Decide what a merge could not, and finish it."),
        Verb("undo", "undoing:undo", "Take back what a session, an agent or a commit wrote."),
        Verb("served", "serving_log:served", "Show who was given an item, and when."),
        Verb("bisect", "bisecting:bisect", "Find the commit that broke an answer."),
        Verb("verify", "verifying:verify", "Check who signed the commits of the memory."),
        Verb("merge-driver", "merging:merge_driver", "Join three versions of a file; git calls it."),
    ),
    "Multi-agent state": (
        Verb("iteration", "iteration:iteration", "Start, close and show rounds of work."),
        Verb("state", "statecalls:state", "Store documents of agents, and ask for their state."),
        Verb("checkpoint", "checkpointing:checkpoint", "Keep the state of one moment, and go on from it."),
        Verb("feedback-for", "insight:feedback_for", "Print what the meta-review says to an agent."),
        Verb("analyze", "insight:analyze", "Show how an agent did, and the weight that this suggests."),
        Verb("trends", "insight:trends", "Show the patterns that meta-reviews name."),
        Verb("aggregates", "insight:aggregates", "Sum up all iterations in three files."),
        Verb("export", "transferring:export", "Write documents or memories out, for analysis elsewhere."),
        Verb("import", "transferring:import_", "Store what an export, or another memory, holds."),
    ),
    "Care": (
        Verb("status", "status:status", "Show how the workspace stands."),
        Verb("check", "checking:check", "Look for problems, and repair them with --fix.", "doctor"),
        Verb("repair", "checking:repair", "Put right what the disk damaged."),
        Verb("stats", "upkeep:stats", "Count items by type and layer, and what they weigh."),
        Verb("watch", "upkeep:watch", "Follow changes of the files until interrupted."),
        Verb("reindex", "upkeep:reindex", "Build the search index anew."),
        Verb("migrate", "upkeep:migrate", "Bring the files to this memfs's version of the format."),
        Verb("maintain", "upkeep:maintain", "Pack the history and fold the index."),
        Verb("prune", "learning:prune", "Move weak items into the archive."),
        Verb("archive", "archiving:archive", "Pack iterations closed long ago; they stay readable."),
        Verb("usage", "archiving:usage", "Show what each area and iteration weighs."),
        Verb("cleanup", "keeping:cleanup", "Make room without losing anything."),
        Verb("backup", "keeping:backup", "Write a verified backup into one file."),
        Verb("restore", "keeping:restore", "Make a workspace anew from a backup."),
    ),
    "Set up": (
        Verb("init", "setup:init", "Make a workspace."),
        Verb("semantic", "semantic:semantic", "Switch search by meaning on or off, and see how far it is."),
        Verb("config", "setup:config", "Show the settings and where each came from."),
        Verb("schema", "schema:schema", "Write the schemas by which editors check memory files."),
        Verb("plugins", "plugins:plugins", "Show what gives agents their context, and whether it works."),
        Verb("trust", "trusting:trust", "Let a workspace enable what its files ask for."),
        Verb("admin", "admin:admin", "Move the memory to a branch of its own, or back."),
        Verb("deinit", "deinit:deinit", "Take memfs out of a repository, and the files on request."),
        Verb("completion", "completing:completion", "Print the completion script for a shell."),
    ),
}
VERBS: dict[str, Verb] = {verb.name: verb for family in FAMILIES.values() for verb in family}
ALIASES: dict[str, str] = {verb.alias: verb.name for verb in VERBS.values() if verb.alias}
