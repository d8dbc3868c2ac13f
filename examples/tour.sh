# What the tours share; 'demo.sh' and 'teams.sh' read it first. It goes to the repository's root, $here, and gives them
# $demo, the folder they work in, and $out, the last output.
cd "$(dirname "$0")/.."
command -v memfs >/dev/null || { echo "memfs is not on PATH: run 'make demo'" >&2; exit 1; }

here=$(pwd)
demo=$here/.demo
out=$demo/output

# Nothing outside .demo is read or written: no git settings of yours, no cache of yours.
for name in $(env | sed -n -e 's/^\(GIT_[A-Z_]*\)=.*/\1/p' -e 's/^\(MEMFS_[A-Z_]*\)=.*/\1/p' \
    -e 's/^\(CLAUDE_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat NO_COLOR=1 XDG_CACHE_HOME="$demo/cache"

bold='' plain=''
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi

# person NAME: from here on, git commits in this folder's repository are NAME's
person() {
    git config user.name "$1"
    git config user.email "$1@waybill.example"
}

say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

fail() { printf '\ndemo: %s\n' "$1" >&2; exit 1; }

# run COMMAND: show it, run it, show what it prints
run() {
    printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"
    if ! eval "$1" >"$out" 2>&1; then cat "$out"; fail "this command failed: $1"; fi
    cat "$out"
}

# expect TEXT / refuse TEXT: the last output must (not) hold it
expect() { grep -qF -- "$1" "$out" || fail "expected to see: $1"; }
refuse() { ! grep -qF -- "$1" "$out" || fail "did not expect to see: $1"; }
