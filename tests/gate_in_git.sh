#!/usr/bin/env bash
# A gate in a repository of its own: first baseline, a harmless change, a slower one that is caught, and accepted.
#
#   tests/gate_in_git.sh             workload: drawn traces, a few seconds
#   tests/gate_in_git.sh --collect   workload: `shardscope collect tp`, slowed by giving both ranks one core; needs torch
set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH="$tests/..:$tests${PYTHONPATH:+:$PYTHONPATH}"
collect=${1:-}
[[ -z $collect || $collect == --collect ]] || { echo "usage: ${0##*/} [--collect]" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

shardscope() { "$python" -m analyzer "$@"; }
git() { command git -c user.name=gate -c user.email=gate@example.invalid -c init.defaultBranch=main "$@"; }
say() { printf '\n== %s\n' "$*"; }

record() { # record SEED: three runs into runs/1 runs/2 runs/3
    rm -rf runs
    if [[ -z $collect ]]; then
        "$python" "$tests/gate_workload.py" runs --seed "$1"
        return
    fi
    mkdir runs
    for repeat in 1 2 3; do
        $(cat launcher) "$python" -m analyzer collect tp --degrees 2 --layers 2 --hidden 256 --heads 4 --kv-heads 2 \
            --ffn 512 --vocab 512 --context 64 --steps 20 --rounds 1 --out "recorded$repeat" >/dev/null
        mv "recorded$repeat"/* "runs/$repeat" && rmdir "recorded$repeat"
    done
}

gate() { # gate EXPECTED_EXIT_CODE [OPTIONS]
    local expected=$1 code=0
    shift
    shardscope gate runs/1 runs/2 runs/3 --baseline baseline.json --history history.jsonl \
        --label "$(git rev-parse --short HEAD)" "$@" | tee last.txt || code=${PIPESTATUS[0]}
    if [[ $code != "$expected" ]]; then
        echo "exit code $code, expected $expected" >&2
        exit 1
    fi
}

git init --quiet .
printf 'runs/\nrecorded*/\nlast.txt\nhistory.jsonl\n' >.gitignore
if [[ -n $collect ]]; then
    # a shared CPU scatters more than a GPU, and the recording has one prefill step
    printf '[gate]\ndefault = 0.3\nprefill.step = false\nprefill.communication = false\nprefill.sync = false\n' \
        >shardscope.toml
    printf 'env' >launcher
else
    printf '[gate]\nfail-on-new = "error"\n' >shardscope.toml
    printf '{"kernel_us": 300, "all_reduces": 1}\n' >model.json
fi

say "the first baseline"
record 10
shardscope gate runs/1 runs/2 runs/3 --baseline baseline.json --update-baseline
git add . && git commit --quiet -m "A model and its baseline"

say "a harmless change passes"
echo "# about the model" >README.md
git add . && git commit --quiet -m "Describe the model"
record 20
gate 0

say "a slower change is caught"
if [[ -n $collect ]]; then
    printf 'taskset -c 0' >launcher
else
    printf '{"kernel_us": 345, "all_reduces": 1}\n' >model.json
fi
git add . && git commit --quiet -m "Slower on purpose"
record 30
gate 1
grep -q '^regression in .*decode.step' last.txt

say "it does not become the baseline without a reason"
gate 2 --update-baseline

say "it is accepted with one, and the acceptance is in the repository"
gate 0 --update-baseline --reason "a larger feed-forward, agreed on"
git add . && git commit --quiet -m "Accept the slower model"
git show --stat --oneline HEAD -- baseline.json
grep -q "a larger feed-forward, agreed on" baseline.json

say "from then on it passes"
record 40
gate 0

if [[ -z $collect ]]; then
    say "one all-reduce more is caught by one run: calls need no repeats"
    printf '{"kernel_us": 345, "all_reduces": 2}\n' >model.json
    record 50
    rm -rf runs/2 runs/3
    code=0
    shardscope gate runs/1 --baseline baseline.json | tee last.txt || code=${PIPESTATUS[0]}
    [[ $code == 1 ]]
    grep -q '^regression in .*calls.tp.all_reduce' last.txt
fi

say "done"
