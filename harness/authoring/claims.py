"""Claims of a study: what a passed run supports, in counts, and what no run of a few fixed sources does."""

import tomllib
from typing import Any

from harness.authoring.answers import Answers, ClaimAnswer
from harness.files import read_bytes
from harness.places import Places

# What no small greedy run shows, in words that were tried on sentences in two languages.
WORDED_BY = "nano-behavior"
PROHIBITED = ("benchmark", "throughput", "sampling-stability")
ACCOUNT_GATES = [
    "normal_return",
    "prompt_hashes",
    "edit_contract",
    "decode_contract",
    "greedy_steps",
    "output_identity",
    "assembled_run",
    "completion_state",
    "observations",
]


def permitted_conclusions(answers: Answers) -> list[dict[str, str]]:
    """Conclusions that the protocol permits, as plain data."""
    made = [
        {"id": "account", "text": "what the fixed sources gave under the fixed conditions, in counts of cells"},
        {"id": "replay", "text": "the cells of the replay's grid were generated again exactly in a fresh process"},
    ]
    for one in answers.claims:
        text = f"at least {one.least} cells of {one.domain} succeed under {one.condition} within the budget"
        made.append({"id": _claim_id(one.domain, one.condition), "text": text})
    return made


def prohibited_conclusions(tree: Places) -> list[dict[str, str]]:
    """Conclusions that no run supports, as the embedded protocol words them."""
    listed = _plain(tree, "protocol.toml")["prohibited"]
    return [one for one in listed if one["id"] in PROHIBITED]


def claims_content(answers: Answers, protocol: dict[str, Any], tree: Places) -> dict[str, Any]:
    """claims.toml as plain data."""
    registered = {gate["id"] for gate in protocol["gates"]}
    gates = [*ACCOUNT_GATES, *(name for name in ("paired_comparison", "function_scores") if name in registered)]
    judged = any(judge["domain"] for judge in protocol["evaluators"]["judges"])
    return {
        "schema": 1,
        "protocol": protocol["id"],
        "bands": [],
        "permitted": [_account(gates, judged=judged), _replay(), *map(_least, answers.claims)],
        "prohibited": [one for one in _plain(tree, "claims.toml")["prohibited"] if one["id"] in PROHIBITED],
    }


def _account(gates: list[str], *, judged: bool) -> dict[str, Any]:
    said = " {succeeded} judged cells succeeded." if judged else ""
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
        "template": "{result_name}: {sources} fixed sources under {conditions} fixed conditions, greedy, at most "
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


def _least(one: ClaimAnswer) -> dict[str, Any]:
    return {
        "id": _claim_id(one.domain, one.condition),
        "tier": "formal",
        "heading": "results",
        "gates": ACCOUNT_GATES,
        "template": _said(one),
        "figures": [
            _figure(
                "succeeded",
                f"statistics.succeeded.{one.domain}.{one.condition}",
                {"rule": "at_least", "n": one.least},
            )
        ],
    }


def _said(one: ClaimAnswer) -> str:
    """A template holds no numeral of its own: a name that has one is the conclusion's text alone to say."""
    named = f"of {one.domain} under {one.condition}"
    plain = not any(letter.isnumeric() for letter in named)
    return f"{{succeeded}} cells {named if plain else 'of this claim'} succeeded within the budget."


def _figure(name: str, source: str, threshold: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "source": source, "threshold": threshold}


def _claim_id(domain: str, condition: str) -> str:
    return f"at-least-{domain}-{condition}"


def _plain(tree: Places, name: str) -> dict[str, Any]:
    data = read_bytes(tree.protocols / WORDED_BY / name, what=name)
    return tomllib.loads(data.decode("utf-8"))
