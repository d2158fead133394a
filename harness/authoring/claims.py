"""Claims of a study: what a passed run supports, in counts, and what no run of a few fixed sources does."""

import tomllib
from typing import Any

from harness.authoring.answers import COUNTED, Answers, ClaimAnswer, CountAnswer
from harness.files import read_bytes
from harness.places import Places

# What no small greedy run shows, in words that were tried on sentences in two languages.
WORDED_BY = {"nano-behavior": ("benchmark", "throughput", "sampling-stability")}
# The same of a few tapes: what is shared is u, never the token, and another sampler draws other tokens.
WORDED_BY_TAPED = {
    "nano-behavior": ("benchmark", "throughput"),
    "nano-task-crn": ("sampling-robustness", "same-token", "official-sampler"),
}
ACCOUNT_GATES = ["normal_return", "prompt_hashes", "edit_contract", "decode_contract"]
GREEDY_GATES = ["greedy_steps"]
TAPED_GATES = ["taped_contract", "tape_account", "shared_uniforms", "finished_rows", "taped_steps"]
OUTPUT_GATES = ["output_identity", "assembled_run", "completion_state", "observations"]


def permitted_conclusions(answers: Answers) -> list[dict[str, str]]:
    """Conclusions that the protocol permits, as plain data."""
    made = [
        {"id": "account", "text": "what the fixed sources gave under the fixed conditions, in counts of cells"},
        {"id": "replay", "text": "the cells of the replay's grid were generated again exactly in a fresh process"},
    ]
    return [*made, *({"id": _claim_id(one), "text": _text(one)} for one in answers.claims)]


def prohibited_conclusions(answers: Answers, tree: Places) -> list[dict[str, str]]:
    """Conclusions that no run supports, as the embedded protocols word them."""
    return _prohibited(answers, tree, "protocol.toml")


def _prohibited(answers: Answers, tree: Places, name: str) -> list[dict[str, Any]]:
    worded = WORDED_BY if answers.sampling is None else WORDED_BY_TAPED
    return [
        one
        for protocol, ids in worded.items()
        for one in _plain(tree, protocol, name)["prohibited"]
        if one["id"] in ids
    ]


def claims_content(answers: Answers, protocol: dict[str, Any], tree: Places) -> dict[str, Any]:
    """claims.toml as plain data."""
    registered = {gate["id"] for gate in protocol["gates"]}
    gates = [*_gates(answers), *(name for name in ("paired_comparison", "function_scores") if name in registered)]
    judged = any(judge["domain"] for judge in protocol["evaluators"]["judges"])
    return {
        "schema": 1,
        "protocol": protocol["id"],
        "bands": [],
        "permitted": [
            _account(answers, gates, judged=judged),
            _replay(),
            *(_least(one, _gates(answers)) for one in answers.claims),
        ],
        "prohibited": _prohibited(answers, tree, "claims.toml"),
    }


def _gates(answers: Answers) -> list[str]:
    return [*ACCOUNT_GATES, *(GREEDY_GATES if answers.sampling is None else TAPED_GATES), *OUTPUT_GATES]


def _account(answers: Answers, gates: list[str], *, judged: bool) -> dict[str, Any]:
    said = " {succeeded} judged cells succeeded." if judged else ""
    drawn = "greedy" if answers.sampling is None else "drawn under {replicates} fixed tapes"
    figures = [
        _figure("returned", "audit.normal_return", {"rule": "whole"}),
        _figure("natural_eos", "statistics.natural_eos", {"rule": "reported"}),
        _figure("truncated", "statistics.budget_truncated", {"rule": "reported"}),
    ]
    figures += [_figure("succeeded", "statistics.succeeded", {"rule": "reported"})] if judged else []
    return {
        "id": "account",
        "tier": "formal",
        "heading": "results",
        "gates": gates,
        "template": "{result_name}: {sources} fixed sources under {conditions} fixed conditions, "
        f"{drawn}, at most "
        "{budget} new tokens. {returned} cells returned; {natural_eos} ended by EOS, {truncated} were cut at the "
        f"budget.{said}",
        "figures": figures,
    }


def _replay() -> dict[str, Any]:
    return {
        "id": "replay",
        "tier": "formal",
        "heading": "results",
        "gates": ["independent_replay"],
        "template": "{replayed} cells were generated again exactly in a fresh process.",
        "figures": [_figure("replayed", "replay.cells", {"rule": "whole"})],
    }


def _least(one: ClaimAnswer | CountAnswer, gates: list[str]) -> dict[str, Any]:
    source = _source(one)
    return {
        "id": _claim_id(one),
        "tier": "formal",
        "heading": "results",
        "gates": gates,
        "template": _said(one),
        "figures": [_figure(_measure(source), source, {"rule": "at_least", "n": one.least})],
    }


def _source(one: ClaimAnswer | CountAnswer) -> str:
    return one.source if isinstance(one, CountAnswer) else f"{COUNTED}succeeded.{one.domain}.{one.condition}"


def _measure(source: str) -> str:
    return source.removeprefix(COUNTED).partition(".")[0]


def _text(one: ClaimAnswer | CountAnswer) -> str:
    if isinstance(one, CountAnswer):
        return f"{_measure(one.source)} is at least {one.least} in {one.source}"
    return f"at least {one.least} cells of {one.domain} succeed under {one.condition} within the budget"


def _said(one: ClaimAnswer | CountAnswer) -> str:
    """A template holds no numeral of its own: a name that has one is the conclusion's text alone to say."""
    if isinstance(one, CountAnswer):
        plain = not any(letter.isnumeric() for letter in one.source)
        return f"{{{_measure(one.source)}}} counted {f'in {one.source}' if plain else 'as this claim says'}."
    named = f"of {one.domain} under {one.condition}"
    plain = not any(letter.isnumeric() for letter in named)
    return f"{{succeeded}} cells {named if plain else 'of this claim'} succeeded within the budget."


def _figure(name: str, source: str, threshold: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "source": source, "threshold": threshold}


def _claim_id(one: ClaimAnswer | CountAnswer) -> str:
    named = f"{one.domain}-{one.condition}" if isinstance(one, ClaimAnswer) else one.source.removeprefix(COUNTED)
    return f"at-least-{named.replace('.', '-')}"


def _plain(tree: Places, protocol: str, name: str) -> dict[str, Any]:
    data = read_bytes(tree.protocols / protocol / name, what=name)
    return tomllib.loads(data.decode("utf-8"))
