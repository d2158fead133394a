#!/usr/bin/env bash
# The DeepSeek protocols on random weights of DeepSeek-V2-Lite's size, in parts of less than ten minutes: docs/full-size.md.
#   tests/gpu/full_size.sh setup|make|smoke|tasks|graph|formal|resume|depth|completion|completion-formal|cross|placements|memory|workers|split|collect NAME
# From the project's root, on a machine with one CUDA device of 40 GiB or more, for `workers` and `split` with two. CHECKPOINT: where the checkpoint is or is to be;
# HARNESS_INPUTS: folder with the data files; STAND_IN: not empty where no container engine is and the tests' stand-in judges programs; OUT: where compact results go; WHEELS: folder of wheels for `setup`;
# WORKERS: processes that share one device and a run's units, three at most on 139 GiB (default: one).
set -u
cd "$(dirname "$0")/../.."
export PYTHONPATH="$PWD" CUBLAS_WORKSPACE_CONFIG=:4096:8 HF_HUB_OFFLINE=1
export HARNESS_INPUTS="${HARNESS_INPUTS:?folder with the data files}"
CHECKPOINT="${CHECKPOINT:-/tmp/deepseek-v2-lite-random}"
ALLOCATOR=""
WHOLE=(--gpu-memory 139GiB --cpu-memory none)  # the whole model on the device: a port's placement

gates() {  # tier protocol arguments...
    local tier="$1" protocol="$2" started="$SECONDS" code
    shift 2
    PYTORCH_CUDA_ALLOC_CONF="$ALLOCATOR" python -m pytest gates/ -m "$tier" -q -p no:cacheprovider -p no:benchmark --port --protocol "$protocol" --checkpoint "$CHECKPOINT" ${WORKERS:+-n "$WORKERS"} "$@"
    code="$?"
    echo "== $protocol $tier: exit $code, $((SECONDS - started)) s"
    return "$code"
}

newest() {  # protocol pattern: the newest run folder that has an audit record or a spec
    ls -td reports/"$1"/$2 2>/dev/null | head -1
}

passed() {  # protocol: its newest passed formal port
    python - "$1" <<'PY'
import json, sys
from pathlib import Path
runs = sorted(Path("reports", sys.argv[1]).glob("formal-*-port/audit.json"), reverse=True)
print(next((str(one.parent) for one in runs if json.loads(one.read_bytes())["passed"]), ""))
PY
}

setup() {
    python -m pip install -q --no-index --no-deps "${WHEELS:-.whl}"/*.whl
    python - <<'PY'
import platform, accelerate, pytest, safetensors, torch, transformers
print(platform.python_version(), torch.__version__, transformers.__version__, accelerate.__version__, safetensors.__version__, pytest.__version__)
print(torch.cuda.get_device_name(0), torch.cuda.mem_get_info(0))
PY
    df -h "$(dirname "$CHECKPOINT")"
    python -m harness inputs verify "$HARNESS_INPUTS" --protocol deepseek-behavior || true  # 1: the Chinese file is missing
}

make_it() {
    local started="$SECONDS"
    python -m harness make-checkpoint deepseek-v2-lite-random "$CHECKPOINT" --device cuda
    echo "== make-checkpoint: exit $?, $((SECONDS - started)) s"
    [ -n "${OUT:-}" ] && cp "$CHECKPOINT/checkpoint.json" "$OUT/"
}

beside() {  # run: the smoke run of `smoke` and this one, cell by cell
    python -m harness compare "$(newest deepseek-behavior 'smoke-20*T*-port')" "$1"
    echo "== compare whole $1: exit $? (0 equal, 1 different)"
}

programs() {  # options of a session that judges programs
    [ -z "${STAND_IN:-}" ] || printf '%s ' -p fake_engine
}

completion_formal() {  # 20 minutes: the baseline of `cross`
    # shellcheck disable=SC2046
    PYTHONPATH="$PYTHONPATH${STAND_IN:+:$PWD/tests/support}" FAKE_ENGINE="" gates formal deepseek-completion "${WHOLE[@]}" $(programs) --baseline "$(passed deepseek-behavior)"
}

placements() {  # three smoke runs of one grid, compared cell by cell; the whole one is that of `smoke`
    gates smoke deepseek-behavior --gpu-memory 29GiB --cpu-memory 80GiB --run reports/deepseek-behavior/smoke-29GiB-port
    gates smoke deepseek-behavior --gpu-memory 28GiB --cpu-memory 80GiB --run reports/deepseek-behavior/smoke-28GiB-port
    for other in 29GiB 28GiB; do beside "reports/deepseek-behavior/smoke-$other-port"; done
}

workers() {  # two processes with a GPU each, on one run folder
    WORKERS="" gates smoke deepseek-behavior "${WHOLE[@]}" -n 2 --gpus 0,1 --run reports/deepseek-behavior/smoke-workers-port
    beside reports/deepseek-behavior/smoke-workers-port
}

split() {  # one process, one model, half of it on each GPU
    gates smoke deepseek-behavior --gpu-memory 17GiB,40GiB --cpu-memory none --run reports/deepseek-behavior/smoke-split-port
    beside reports/deepseek-behavior/smoke-split-port
}

memory() {  # another process leaves 20 GiB of the device: loading the whole model is refused by the allocator
    python - <<'PY' &
import time, torch
free, _ = torch.cuda.mem_get_info(0)
held = torch.empty(free - 20 * 2**30, dtype=torch.uint8, device="cuda")
open("/tmp/full-size-held", "w").close()
time.sleep(600)
PY
    local holder="$!"
    while [ ! -e /tmp/full-size-held ] && kill -0 "$holder"; do sleep 1; done
    gates smoke deepseek-behavior "${WHOLE[@]}" --run reports/deepseek-behavior/smoke-no-memory-port
    echo "== expected: exit 1 and an oom.json or a refusal that names CUDA's message"
    kill "$holder"
    rm -f /tmp/full-size-held
    cat reports/deepseek-behavior/smoke-no-memory-port/oom.json 2>/dev/null
}

collect() {  # one archive: the records of every run that aren't its journals
    local list
    list="$(find reports -type f \( -name audit.json -o -name audit.json.sha256 -o -name spec.json -o -name environment.json \
        -o -name placement.json -o -name statistics.json -o -name claims.json -o -name attempts.jsonl -o -name oom.json \
        -o -name observations.json -o -name junit.xml \))"
    # shellcheck disable=SC2086
    tar -czf "${OUT:?where results go}/full-size-$1.tar.gz" $list
    ls -l "$OUT"
}

case "${1:-}" in
    setup) setup ;;
    make) make_it ;;
    smoke) gates smoke deepseek-behavior "${WHOLE[@]}" ;;
    tasks) ALLOCATOR=expandable_segments:True; gates smoke deepseek-task-crn "${WHOLE[@]}" ;;
    graph) gates smoke deepseek-task-crn-graph ;;  # its registered placement is the whole model on the device
    formal) gates formal deepseek-behavior "${WHOLE[@]}" ;;
    resume) gates formal deepseek-behavior "${WHOLE[@]}" --run "$(newest deepseek-behavior 'formal-*-port')" ;;
    depth) gates formal deepseek-depth "${WHOLE[@]}" --baseline "$(passed deepseek-behavior)" ;;
    completion) gates smoke deepseek-completion "${WHOLE[@]}" --baseline "$(passed deepseek-behavior)" ;;
    completion-formal) completion_formal ;;
    cross) gates smoke deepseek-cross-source-sampling "${WHOLE[@]}" --baseline "$(passed deepseek-completion)" ;;
    placements) placements ;;
    memory) memory ;;
    workers) workers ;;
    split) split ;;
    collect) collect "${2:?a name}" ;;
    *) sed -n 2,7p "$0"; exit 2 ;;
esac
