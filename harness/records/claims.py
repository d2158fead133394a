"""What may be claimed from a run, as an account: the registration in claims.toml, and claims.json of a judged run.

A registration lies beside the protocol and apart from its digest; its own SHA-256 is in every record made from it.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.protocol import Tier

Heading = Literal["results", "diagnostics"]
Status = Literal["SUPPORTED", "REFUTED", "NOT CHECKED"]
APART = "registered beside the protocol and apart from its digest"


class Whole(Record, tag_field="rule", tag="whole"):
    """The numerator is the denominator."""


class AtLeast(Record, tag_field="rule", tag="at_least"):
    """The numerator is `n` or more."""

    n: int


class Reported(Record, tag_field="rule", tag="reported"):
    """The figure is printed as it is; no threshold decides anything."""


Threshold = Whole | AtLeast | Reported


class FigureRule(Record):
    """A named figure of a template: which count feeds it (a named source), and what it must reach."""

    name: str
    source: str
    threshold: Threshold


class PermittedRule(Record):
    """How a conclusion that the protocol permits is printed, and when.

    `template`: English; numbers only as `{figure}` or as `{word}` of the protocol. `gates` must be whole in `tier`.
    """

    id: str
    tier: Tier
    heading: Heading
    gates: tuple[str, ...]
    template: str
    figures: tuple[FigureRule, ...]


class Pattern(Record):
    """A sentence states the conclusion if every part is found in it, each after the end of the one before.

    A part is a regular expression without unbounded or nested repetition; case is ignored.
    """

    language: Literal["en", "zh"]
    parts: tuple[str, ...]


class ProhibitedRule(Record):
    """How a conclusion that the protocol prohibits is recognised; the sentences are tried whenever this is loaded."""

    id: str
    patterns: tuple[Pattern, ...]
    must_match: tuple[str, ...]
    must_not_match: tuple[str, ...]


class ClaimRules(Record):
    """claims.toml: one entry for each conclusion of the protocol, and no other.

    `bands`: the names under which an interval of this protocol may be printed; with none, no interval may be.
    """

    schema: Literal[1]
    protocol: str
    bands: tuple[str, ...]
    permitted: tuple[PermittedRule, ...]
    prohibited: tuple[ProhibitedRule, ...]


class FigureResult(Record):
    """`count` of `of`, from a named source, and whether its threshold is met."""

    name: str
    source: str
    count: int
    of: int
    threshold: Threshold
    holds: bool


class NoFigure(Record):
    """A figure that this run doesn't have, and why."""

    name: str
    source: str
    reason: str


class GateResult(Record):
    """A gate that the claim needs: rows passed of rows registered, as the audit record has them."""

    id: str
    passed: int
    registered: int


class PermittedResult(Record):
    """A permitted conclusion under this run. `statement`: the template with its figures, empty unless SUPPORTED.

    `text` is the protocol's; `why` names what doesn't hold or wasn't judged; `rests_on` names files of the run folder.
    """

    id: str
    text: str
    heading: Heading
    status: Status
    statement: str
    why: tuple[str, ...]
    figures: tuple[FigureResult, ...]
    no_figures: tuple[NoFigure, ...]
    gates: tuple[GateResult, ...]
    rests_on: tuple[str, ...]


class ProhibitedResult(Record):
    """A conclusion that no run of this protocol supports, in the protocol's words."""

    id: str
    text: str


class Difference(Record):
    """One way in which the run isn't the published one or the registered one.

    `kind`: `ours` (a choice where the documents are silent), `published` (a digest that can't be had), `software`,
    `weights`, `placement`, `image`, `environment`, `sources` (owed or left out), `port` (listed by the request).
    """

    kind: Literal["ours", "published", "software", "weights", "placement", "image", "environment", "sources", "port"]
    field: str
    registered: str
    found: str


class Claims(Record):
    """claims.json: what a judged run supports, and what no run does. A function of the run folder and the protocol.

    `records`: SHA-256 of the files that the claims rest on, by path in the run folder.
    """

    schema: Literal[1]
    protocol: str
    registered_id: str
    protocol_digest: str
    claims_sha256: str
    claims_registered: Literal["registered beside the protocol and apart from its digest"]
    result_name: str
    run_id: str
    tier: str
    grid: str
    port: bool
    passed: bool
    frozen: bool
    domains: tuple[str, ...]
    bands: tuple[str, ...]
    permitted: tuple[PermittedResult, ...]
    prohibited: tuple[ProhibitedResult, ...]
    differences: tuple[Difference, ...]
    records: dict[str, str]
