"""What stands first: permitted claims with their figures, prohibited conclusions, every deviation, gates, environment.

A claim that the registration puts under diagnostics has its state here, and its statement and figures only there.
"""

from collections.abc import Iterator

from harness.claims.view import RunView
from harness.journal.naming import random_weights
from harness.records.audit import Audit, GateAccount
from harness.records.base import Frozen
from harness.records.claims import AtLeast, Claims, FigureResult, PermittedResult, Reported, Threshold
from harness.report.page import Block, Listing, Note, Section, Table, Value, folded, table

DIAGNOSTICS = "diagnostics"
UNSIGNED = (
    "This page carries no signature. Whether somebody signed the run, and who, is learnt from its folder: "
    "python -m harness verify RUN --signers FILE."
)
RANDOM = (
    "Weights: {made}, drawn at random, not {registered}. Nothing on this page is an output of the registered model. "
    "Random weights rarely end by themselves, so most cells are cut at their budget. What such a run can show is its "
    "exactness gates: the same tokens again in a fresh process or under another placement, every row judged, the books "
    "closed."
)
PINS = ("software", "weights", "placement", "image", "environment")


def permitted(claims: Claims) -> tuple[PermittedResult, ...]:
    """The claims whose statement and figures stand first."""
    return tuple(one for one in claims.permitted if one.heading == "results")


def diagnostic(claims: Claims) -> tuple[PermittedResult, ...]:
    """The claims whose statement and figures stand under Diagnostics alone."""
    return tuple(one for one in claims.permitted if one.heading == DIAGNOSTICS)


def claim_figures(one: PermittedResult) -> Table | None:
    """Each figure of a claim: count of what, threshold, where it is from; also those that the run doesn't have."""
    rows = [
        (figure.name, f"{figure.count}/{figure.of}", _threshold(figure.threshold), _met(figure), figure.source)
        for figure in one.figures
    ]
    rows += [(figure.name, "none", "", figure.reason, figure.source) for figure in one.no_figures]
    head = ("figure", "count", "threshold", "met", "source")
    return table(f"Figures of claim {one.id}", head, rows) if rows else None


def _met(figure: FigureResult) -> str:
    return "reported" if isinstance(figure.threshold, Reported) else "yes" if figure.holds else "no"


def _threshold(threshold: Threshold) -> str:
    if isinstance(threshold, Reported):
        return "none"
    return f"{threshold.n} or more" if isinstance(threshold, AtLeast) else "all"


def deviations(claims: Claims) -> Section:
    """Item by item, ours first; nothing is summed up."""
    rows = [(one.kind, one.field, one.registered, one.found) for one in claims.differences]
    blocks: tuple[Block, ...] = (
        Note(
            "Each way in which this run isn't the published or the registered one; "
            "`ours` is a choice of the protocol's authors."
        ),
        table("Deviations", ("kind", "field", "registered", "found"), rows, heads=2) if rows else Note("None."),
    )
    return Section("deviations", "Deviations", blocks)


def random_note(view: RunView) -> str | None:
    """What a reader must know before any number of a run on random weights; None for a run on others."""
    made = random_weights(view.spec.deviations)
    return None if made is None else RANDOM.format(made=made, registered=view.loaded.profile.id)


def gate_failures(audit: Audit) -> Iterator[Listing]:
    """The rows that don't hold, of each gate that has any."""
    for gate in audit.gates:
        if gate.failed:
            yield Listing(
                f"{gate.id}: {len(gate.failed)} named rows don't hold", gate.failed, folded=len(gate.failed) > 10
            )


def short_gates(audit: Audit) -> tuple[GateAccount, ...]:
    """Gates that aren't whole."""
    return tuple(gate for gate in audit.gates if gate.passed < gate.registered)


def books(audit: Audit) -> Table:
    """How the session that judged closed its books."""
    rows: list[tuple[Value, ...]] = [
        ("rows collected", str(audit.collected)),
        ("rows reported", f"{audit.reported}/{audit.collected}"),
        ("errors", str(audit.errors)),
        ("books", "; ".join(audit.books) or "closed"),
        ("not compared", "; ".join(audit.not_compared) or "none"),
        ("sources owed", ", ".join(audit.unfrozen_sources) or "none"),
        ("stands on smoke run", audit.smoke.run_id if audit.smoke else "none"),
        ("frozen results", "there were, when it was judged" if audit.frozen else "none when it was judged: unfrozen"),
    ]
    return table("The session that judged", ("what", "found"), rows)


def environment(view: RunView, claims: Claims) -> Section:
    """What was read back where it ran, and first what differs from a pin or has none."""
    here = view.environment
    differing = [one for one in claims.differences if one.kind in PINS]
    rows = [(one.kind, one.field, one.registered, one.found) for one in differing]
    head = ("kind", "field", "registered", "found")
    plain = ("python", "machine", "cpu", "cpu_capability", "cuda", "dtype", "attention", "experts", "threads")
    found = [(name, str(getattr(here, name))) for name in plain]
    found += [("gpus", ", ".join(here.gpus) or "none"), ("interop threads", str(here.interop_threads))]
    found += [(f"kernel {name}", value) for name, value in here.kernels.items()]
    blocks: tuple[Block, ...] = (
        table("What differs from the pins, or has none", head, rows, heads=2) if rows else Note("Nothing differs."),
        _packages(view),
        table("Where it ran", ("what", "found"), found),
        _checkpoint(view),
        *_placement(view),
        folded(table("Generation config, as read back", ("field", "value"), sorted(here.generation_config.items()))),
    )
    return Section("environment", "Environment", blocks)


def _packages(view: RunView) -> Table:
    pins, here = view.loaded.protocol.software.packages, view.environment.packages
    rows = [(name, pins.get(name, "no pin"), here.get(name, "not installed")) for name in sorted({*pins, *here})]
    return table("Packages", ("package", "registered", "found"), rows)


def _checkpoint(view: RunView) -> Table:
    here, rows = view.environment.checkpoint, []
    for file in view.loaded.profile.files:
        pin = file.digest.sha256 if isinstance(file.digest, Frozen) else f"unfrozen: {file.digest.reason}"
        rows.append((file.name, pin, "the same" if here.get(file.name) == pin else here.get(file.name, "no such file")))
    return table(f"Checkpoint {view.loaded.profile.id}, SHA-256", ("file", "registered", "found"), rows)


def _placement(view: RunView) -> Iterator[Block]:
    facts = view.run.placement
    rows = [
        ("placement", facts.id, f"registered: {view.loaded.protocol.placement}"),
        *((f"parameters on {device}", f"{size} bytes", "") for device, size in facts.parameter_bytes.items()),
        ("modules offloaded", str(len(facts.offloaded)), ", ".join(facts.offloaded)),
    ]
    yield table("Placement, as read back", ("what", "found", "note"), rows)
    yield folded(table("Device map", ("module", "device"), sorted(facts.device_map.items())))


def records(view: RunView, claims: Claims) -> Section:
    """The digests that this page rests on."""
    audit = view.audit
    rows: list[tuple[Value, ...]] = [
        ("protocol", claims.protocol_digest),
        ("claims.toml", claims.claims_sha256),
        ("environment", audit.environment_sha256),
        *sorted(claims.records.items()),
    ]
    if audit.smoke is not None:
        rows += [("smoke audit.json", audit.smoke.audit_sha256), ("smoke run.json", audit.smoke.run_sha256)]
    judge = table("The judge", ("what", "found"), sorted(audit.judge.items()))
    digests = table("SHA-256 of the records", ("record", "digest"), rows)
    return Section("records", "Records", (Note(UNSIGNED), digests, folded(judge)))
