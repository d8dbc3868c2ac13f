#!/bin/sh
# The main job in half a minute: remember, recall, edit by hand, history, restore. 'make demo' runs it.
# It works on a copy of example-workspace/ in .demo/, and fails when a step does not do what it says.
set -eu

. "$(dirname "$0")/tour.sh"
work=$demo/waybill
rm -rf "$demo"
mkdir -p "$demo"
trap 'memfs -C "$work" serve --stop >/dev/null 2>&1 || :' EXIT  # the hooks began one that answers quicker

# as NAME DATE MESSAGE PATH...: a commit of the story that came before
as() {
    who=$1 when=$2 message=$3
    shift 3
    for path in "$@"; do
        mkdir -p "$(dirname "$work/$path")"
        cp -R "$here/example-workspace/$path" "$(dirname "$work/$path")/"
    done
    commit "$who" "$when" "$message"
}

commit() {
    git -C "$work" add --all
    GIT_AUTHOR_DATE="$2T09:00:00Z" GIT_COMMITTER_DATE="$2T09:00:00Z" git -C "$work" -c user.name="$1" \
        -c user.email="$1@waybill.example" -c commit.gpgsign=false commit --quiet --message "$3"
}

month() { (cd "$here/example-workspace" && ls -d ContextMemory/memories/*/"$1"); }

# -- what came before ------------------------------------------------------------------------------------------------
git init --quiet "$work"
git -C "$work" symbolic-ref HEAD refs/heads/main
rule=ContextMemory/conventions/retry-carrier-webhooks.yaml
as Ines 2026-02-18 "Begin the memory of Waybill" memfs.toml README.md ContextMemory/.gitattributes \
    ContextMemory/.gitignore ContextMemory/configuration ContextMemory/context/project.yaml
as Ines 2026-02-27 "February: decisions, carriers, first conventions" $(month 2026-02) \
    ContextMemory/conventions/times-are-utc.yaml ContextMemory/conventions/migrations-roll-forward.yaml \
    ContextMemory/conventions/no-personal-data-in-logs.yaml
mkdir -p "$work/ContextMemory/conventions"
sed 's/tried five times/tried three times/' "example-workspace/$rule" >"$work/$rule"
commit Tomasz 2026-03-06 "Retry calls to carriers, agreed after the NordPost outage"
as Tomasz 2026-03-31 "March: outage, partitions, BlueVan" $(month 2026-03)
cp "example-workspace/$rule" "$work/$rule"
commit Jonas 2026-04-02 "Retry five times: three were not enough for NordPost"
as Mei 2026-04-09 "April: Buchladen is live" $(month 2026-04) ContextMemory/memories/social \
    ContextMemory/conventions/feature-flags-have-an-end.yaml ContextMemory/context/release-2026-4.yaml
as Mei 2026-05-04 "Ten rounds of looking for what makes parcels late" ContextMemory/iterations ContextMemory/aggregates \
    ContextMemory/archive ContextMemory/threads
cd "$work"

# you, for the rest of the demo
person Ines
memfs -C "$work" init >"$out" 2>&1 || { cat "$out"; fail "init failed"; }  # lets git join memory files by field

# -- the tour --------------------------------------------------------------------------------------------------------
say "1. A small team's memory: plain files, in git. Ask it something."
run 'memfs recall "how often do we retry a call to a carrier" --limit 1'
expect retry-carrier-webhooks
expect "tried five times"

say "2. An agent remembers something. It is a file, it is in git, and it is found at once."
run 'memfs remember "Kestrel moves to version 5 in June; its scan times carry an offset from then on" --type knowledge --tag kestrel --agent scout --session demo --json'
expect '"stored": true'
expect '"durability": "commit"'
run 'memfs recall "kestrel version with offsets" --limit 1'
expect "version 5 in June"
expect "by agent scout"

say "3. A person edits a file with whatever they like. Recall follows, nothing has to be told."
run "sed -i.bak 's/tried five times/tried eight times/' $rule && rm $rule.bak"
run 'memfs recall "how often do we retry a call to a carrier" --limit 1'
expect "tried eight times"
refuse "tried five times"
run 'memfs status'
expect "1 uncommitted hand edit"

say "4. The edit becomes history like any other change. git knows all of it."
run 'memfs commit -m "Retry eight times"'
expect "$rule"
run 'memfs log retry-carrier-webhooks'
expect "Retry eight times"
expect "three were not enough"
run 'git log -4 --format="%h %an: %s" -- ContextMemory'
expect "scout:"
expect "Retry eight times"
run 'git status --short'
[ ! -s "$out" ] || fail "git status should be clean"

say "5. That was a mistake: bring the old text back. History is added to, never rewritten."
run 'memfs restore retry-carrier-webhooks --from HEAD~1'
expect "Restored $rule"
run 'memfs recall "how often do we retry a call to a carrier" --limit 1'
expect "tried five times"
run 'git log -2 --format="%h %s"'
expect "Restore retry-carrier-webhooks"

say "6. git by hand works as well: look at an old state, and recall sees that one."
run 'git checkout --quiet HEAD~1 -- ContextMemory && memfs recall "retry a call to a carrier" --limit 1'
expect "tried eight times"
run 'git checkout --quiet HEAD -- ContextMemory && memfs recall "retry a call to a carrier" --limit 1'
expect "tried five times"

say "7. A system of several agents keeps its state here, too. What did its reviewer tell one of them; how is another doing?"
run 'memfs state feedback Generation --no-record'
expect "Look at parcels with"
run 'memfs state analyze Evolution --iterations 5 | grep weight'
expect "suggested weight"

say "8. It can go on after a crash: from the newest checkpoint that is whole. Here, one bit of the newest is flipped."
run "echo '{\"checkpoint_data\": {\"in_flight_tasks\": [{\"task_id\": \"ranking-011\", \"agent\": \"Ranking\"}]}}' | memfs state store state_update"
run 'memfs state checkpoint create --json'
good=$(sed -n 's/.*"id": *"\(ckpt_[0-9_]*\)".*/\1/p' "$out")
run 'memfs state checkpoint create --json'
bad=$(sed -n 's/.*"id": *"\(ckpt_[0-9_]*\)".*/\1/p' "$out")
[ "$good" != "$bad" ] || fail "two checkpoints should have two names"
printf '\377' | dd of="ContextMemory/checkpoints/$bad/state.tar.zst" bs=1 seek=2000 conv=notrunc 2>/dev/null
run 'memfs state checkpoint recover'
expect "$good"
expect "$bad"
expect "ranking-011"

say "9. Memory comes up by itself: what failed once is warned about the second time; where nothing is like it, nothing is said."
run 'memfs agent episode record "Sent a second test label to Kestrel" --file src/labels.py --agent scout --outcome failure --error "HTTP 409: label exists, cancel it first"'
run 'memfs agent warn --file src/labels.py "print the labels of returned parcels"'
expect "cancel it first"
run 'memfs agent warn --file docs/holidays.md "translate the opening hours"'
refuse "<memories"
run 'memfs agent correct "No, always write dates like 2026-03-01 in reports."'
run 'memfs agent inject --max-tokens 300'
expect "always write dates like 2026-03-01"

say "10. Agents come through doors of their own. Here the hooks of Claude Code: what was said on Monday is known on Tuesday."
doors=$here/examples/doors
run 'while read -r event; do printf "%s\n" "$event" | memfs hook; done <"$doors/monday.jsonl"'
run 'while read -r event; do printf "%s\n" "$event" | memfs hook; done <"$doors/tuesday.jsonl"'
expect "always name the depot before the carrier"
expect "tariff code with 10 digits"
run 'memfs import "$doors/memory" --reviewed'
expect "Imported 2 memories (1 documentation, 1 preference) from claude-code"
run 'memfs recall "what is on the dispatcher board" --limit 1'
expect "dispatcher board lists"

say "11. Is everything in order?"
run 'memfs status'
expect "to commit  nothing"
run 'memfs check'  # all but what waits until somebody trusts a copied workspace: a schema of its own
expect "kinds.yaml: warning"
expect "1 warning"
git -C "$here" status --short -- .demo >"$out" 2>&1 || : >"$out"
[ ! -s "$out" ] || fail ".demo should be ignored by git"

say "That was the main job. The workspace is in .demo/waybill: look around with 'memfs list', 'memfs show ID', 'git log'."
