"""claims.json from a judged run: SUPPORTED, REFUTED or NOT CHECKED for each permitted conclusion, with its counts.

A pure function of the run folder and the protocol's files. What wasn't judged is never supported; what was judged and
doesn't hold is refuted; a statement is printed only where it is supported.
"""

from harness.claims.differences import differences
from harness.claims.load import PLACE, Registration
from harness.claims.source import AUDIT, LEDGER, RUN, STATISTICS, Source
from harness.claims.status import holds, status
from harness.claims.view import RunView
from harness.claims.vocabulary import words_of
from harness.errors import HarnessError
from harness.files import file_sha256
from harness.journal import naming
from harness.records.claims import (
    AtLeast,
    Claims,
    FigureResult,
    FigureRule,
    GateResult,
    NoFigure,
    PermittedResult,
    PermittedRule,
    ProhibitedResult,
    Threshold,
)

PORT = "Port, not the registered run: "
RANDOM_PORT = "Port on {}, random weights, not the registered model and not the registered run: "


def claims_of(view: RunView, registration: Registration) -> Claims:
    """The account of a judged run; HarnessError where a record of it can't be read."""
    loaded, audit, rules = view.loaded, view.audit, registration.rules
    permitted = tuple(_permitted(view, rule, registration) for rule in rules.permitted)
    there = [name for name in (RUN, LEDGER, STATISTICS, AUDIT) if view.folder.file(name).exists()]
    rests = sorted({*there, *(name for one in permitted for name in one.rests_on)})
    return Claims(
        schema=1,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        claims_sha256=registration.sha256,
        claims_registered="registered beside the protocol and apart from its digest",
        result_name=result_name(view),
        run_id=audit.run_id,
        tier=audit.tier,
        grid=view.spec.grid,
        port=view.spec.port,
        passed=audit.passed,
        frozen=audit.frozen,
        domains=view.spec.domains,
        bands=rules.bands,
        permitted=permitted,
        prohibited=tuple(ProhibitedResult(id=one.id, text=one.text) for one in loaded.protocol.prohibited),
        differences=differences(view),
        records={name: file_sha256(view.folder.file(name), what=name) for name in rests},
    )


def result_name(view: RunView) -> str:
    """What the run's result is called: the protocol's name, and a port's with "(port)" and random weights' ID."""
    return naming.result_name(view.loaded.protocol.result_name, port=view.spec.port, deviations=view.spec.deviations)


def _permitted(view: RunView, rule: PermittedRule, registration: Registration) -> PermittedResult:
    text = next(one.text for one in view.loaded.protocol.permitted if one.id == rule.id)
    open_reasons = _not_judged(view, rule)
    gates = tuple(
        GateResult(id=name, passed=view.gates[name].passed, registered=view.gates[name].registered)
        for name in rule.gates
        if name in view.gates
    )
    made = [_figure(view, one, rule, registration.sources[one.source]) for one in rule.figures]
    figures = tuple(one for one in made if isinstance(one, FigureResult))
    missing = tuple(one for one in made if isinstance(one, NoFigure))
    open_reasons += [f"{one.name}: {one.reason}" for one in missing]
    failed = [f"gate {one.id}: {one.passed}/{one.registered} rows hold" for one in gates if one.passed < one.registered]
    failed += [f"{one.name}: {one.count}/{one.of}, {_wanted(one.threshold)}" for one in figures if not one.holds]
    found = status(judged=not open_reasons, gates=gates, figures=[one.holds for one in figures])
    rests = {AUDIT, *(name for one in figures for name in registration.sources[one.source].reads)}
    return PermittedResult(
        id=rule.id,
        text=text,
        heading=rule.heading,
        status=found,
        statement=_statement(view, rule, figures) if found == "SUPPORTED" else "",
        why=(*open_reasons, *failed),
        figures=figures,
        no_figures=missing,
        gates=gates,
        rests_on=tuple(sorted(rests)),
    )


def _opening(view: RunView) -> str:
    if not view.spec.port:
        return ""
    made = naming.random_weights(view.spec.deviations)
    return PORT if made is None else RANDOM_PORT.format(made)


def _not_judged(view: RunView, rule: PermittedRule) -> list[str]:
    """Why the claim can't be judged from this run at all."""
    audit = view.audit
    found = [] if audit.tier == rule.tier else [f"tier {audit.tier}: the claim is over tier {rule.tier}"]
    found += [f"gate {name}: not judged" for name in rule.gates if name not in view.gates]
    if audit.books or audit.errors or audit.collected != audit.reported:
        found.append("the session that judged didn't close its books")
    named = view.audit.files.get(RUN, "none")
    if audit.run_sha256 != named:
        found.append(f"run.json: the audit record names {audit.run_sha256} and lists {named}")
    return found


def _figure(view: RunView, rule: FigureRule, claim: PermittedRule, source: Source) -> FigureResult | NoFigure:
    if view.audit.tier != claim.tier:
        return NoFigure(name=rule.name, source=rule.source, reason=f"tier {view.audit.tier} has none")
    try:
        count = source.count(view)
    except HarnessError as error:
        return NoFigure(name=rule.name, source=rule.source, reason=f"expected {error.expected}, found {error.found}")
    planned = source.planned(view.loaded, claim.tier, view.spec.domains)
    if planned.exact and count.of != planned.of:
        reason = f"its denominator is {count.of}, and the protocol registers {planned.of}"
        return NoFigure(name=rule.name, source=rule.source, reason=reason)
    return FigureResult(
        name=rule.name,
        source=rule.source,
        count=count.count,
        of=count.of,
        threshold=rule.threshold,
        holds=holds(rule.threshold, count),
    )


def _wanted(threshold: Threshold) -> str:
    return f"{threshold.n} or more are needed" if isinstance(threshold, AtLeast) else "all are needed"


def _statement(view: RunView, rule: PermittedRule, figures: tuple[FigureResult, ...]) -> str:
    words = words_of(view.loaded, rule.tier, view.spec.domains, result_name(view))
    words |= {one.name: f"{one.count}/{one.of}" for one in figures}
    return _opening(view) + PLACE.sub(lambda match: words[match[1]], rule.template)
