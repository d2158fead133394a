"""The JUnit file, case by case, against the audit record's accounts and the protocol's rows."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from harness.errors import JournalError
from harness.files import read_bytes
from harness.protocols.grids import gate_rows
from harness.records.audit import GateAccount
from harness.records.protocol import Gate
from harness.verify.ground import AGAIN, RESTORE, Ground, Lines, compared, fails, holds

NAME = "junit.xml"
FAULTS = ("failure", "error", "skipped")
PROPERTIES = (
    "protocol", "protocol_digest", "tier", "gate", "clause", "cell", "run_sha256", "fraction", "differences",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One case: its name, its properties, and what pytest said of it."""

    name: str
    properties: dict[str, str]
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Reported as passed, and its check found nothing."""
        return not self.faults and self.properties.get("differences") == "0"


@dataclass(frozen=True)
class JUnit:
    """A JUnit file as its cases."""

    cases: tuple[Case, ...]
    totals: dict[str, str]

    @cached_property
    def protocols(self) -> dict[str, list[Case]]:
        """Cases that judge a row, by protocol."""
        found = defaultdict(list)
        for case in self.cases:
            found[case.properties.get("protocol", "")].append(case)
        return found


class _DeclaredError(Exception):
    """An XML document with a type of its own."""


class _Plain(ET.TreeBuilder):
    """A document without a type, wherever that may stand: entities could make it grow without bound."""

    def doctype(self, name: str, *_: object) -> None:
        """There is none."""
        raise _DeclaredError(name)


def read_junit(ground: Ground) -> JUnit:
    """junit.xml; JournalError where it isn't the XML that pytest writes."""
    path = ground.folder.file(NAME)
    data = read_bytes(path, what="JUnit file")
    try:
        root = ET.fromstring(data, ET.XMLParser(target=_Plain()))  # noqa: S314 - no declaration, so no entity
    except _DeclaredError as error:
        raise JournalError(str(path), expected="no document type", found="a declaration", todo=RESTORE) from error
    except ET.ParseError as error:
        raise JournalError(str(path), expected="XML", found=str(error), todo=RESTORE) from error
    suites = root.findall("testsuite")
    totals = dict(suites[0].attrib) if len(suites) == 1 else {}
    return JUnit(tuple(_case(one) for one in root.iter("testcase")), totals)


def _case(element: ET.Element) -> Case:
    properties = {
        one.attrib.get("name", ""): one.attrib.get("value", "") for one in element.iterfind("properties/property")
    }
    faults = tuple(one.tag for one in element if one.tag in FAULTS)
    name = f"{element.attrib.get('classname', '')}.{element.attrib.get('name', '')}"
    return Case(name, properties, faults)


def junit_holds(ground: Ground) -> Lines:
    """Books, cases and accounts agree; every case is of this run; every registered row has exactly one case."""
    junit = read_junit(ground)
    found = [*_books(ground, junit)]
    for case in junit.protocols.get(ground.loaded.protocol.id, []):
        found += _of_this_run(ground, case)
    found += _accounts(ground, junit)
    rows = sum(gate.registered for gate in ground.audit.gates)
    yield from found or [holds("junit", NAME, f"{rows} rows", f"{len(junit.cases)} cases of the session")]


def _books(ground: Ground, junit: JUnit) -> Lines:
    """The file's totals are those of its cases, and of the session's books."""
    counted = {
        "tests": len(junit.cases),
        "failures": sum("failure" in case.faults for case in junit.cases),
        "errors": sum("error" in case.faults for case in junit.cases),
        "skipped": sum("skipped" in case.faults for case in junit.cases),
    }
    pairs = [(f"{NAME}: {name}", str(count), junit.totals.get(name, "none")) for name, count in counted.items()]
    audit = ground.audit
    pairs += [("audit.json: reported, and junit.xml's cases", str(len(junit.cases)), str(audit.reported))]
    pairs += [("audit.json: collected, and reported", str(audit.reported), str(audit.collected))]
    if audit.passed:
        pairs += [
            (f"{NAME}: {name} of a session that passed", "0", str(counted[name])) for name in ("failures", "errors")
        ]
    names = [case.name for case in junit.cases]
    pairs += [(f"{NAME}: cases of one name", "0", str(len(names) - len(set(names))))]
    if not audit.passed and audit.books:
        pairs = pairs[:4]  # books that didn't close say so themselves
    yield from compared("junit", pairs, AGAIN)


def _of_this_run(ground: Ground, case: Case) -> Lines:
    """A case of this protocol carries this run's identity, a registered gate and that gate's clause."""
    said, gates = case.properties, {gate.id: gate for gate in ground.loaded.protocol.gates}
    gate = gates.get(said.get("gate", ""))
    accounts = {one.id: one for one in ground.audit.gates}
    where = f"{NAME}: {case.name}"
    if gate is None or gate.id not in accounts or set(said) != {*PROPERTIES}:
        yield fails("junit", where, f"the properties {', '.join(PROPERTIES)}", ", ".join(sorted(said)), RESTORE)
        return
    account = accounts[gate.id]
    clause = gate.clause.encode("ascii", "backslashreplace").decode("ascii")
    run = said["run_sha256"] if said["run_sha256"] != "none yet" else ground.audit.run_sha256
    pairs = (
        (f"{where}: protocol_digest", ground.audit.protocol_digest, said["protocol_digest"]),
        (f"{where}: tier", ground.audit.tier, said["tier"]),
        (f"{where}: clause", clause, said["clause"]),
        (f"{where}: run_sha256", ground.audit.run_sha256, run),
        (f"{where}: fraction", f"{account.passed}/{account.registered}", said["fraction"]),
        (f"{where}: passed with differences", False, not case.faults and said["differences"] != "0"),
    )
    yield from compared("junit", pairs, RESTORE)


def _accounts(ground: Ground, junit: JUnit) -> Lines:
    """The audit's accounts are exactly the tier's gates, over the protocol's rows, with the cases' outcomes."""
    cases: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in junit.protocols.get(ground.loaded.protocol.id, []):
        cases[case.properties.get("gate", "")][case.properties.get("cell", "")].append(case)
    accounts = {one.id: one for one in ground.audit.gates}
    expected, listed = [gate.id for gate in ground.judged_gates], [one.id for one in ground.audit.gates]
    yield from compared("junit", [("audit.json: gates of the tier", expected, listed)], AGAIN)
    for gate in ground.judged_gates:
        if gate.id in accounts:
            yield from _account(ground, gate, accounts[gate.id], cases[gate.id])
    yield from compared("junit", [("audit.json: passed", _passed(ground), ground.audit.passed)], RESTORE)


def _account(ground: Ground, gate: Gate, account: GateAccount, cases: dict[str, list[Case]]) -> Lines:
    units = ground.loaded.units(gate.tiers[ground.tier].grid, ground.domains)
    rows = [row.name or "whole" for row in gate_rows(ground.loaded.protocol, ground.loaded.profile, gate, units)]
    passed = [name for name in rows if cases.get(name) and all(case.holds for case in cases[name])]
    where = f"audit.json: gate {gate.id}"
    doubled = sorted(name for name, found in cases.items() if len(found) > 1)
    none: list[str] = []
    pairs = (
        (f"{where}: registered, by the protocol", len(rows), account.registered),
        (f"{where}: passed, by {NAME}", len(passed), account.passed),
        (f"{where}: failed, by {NAME}", tuple(name for name in rows if name not in set(passed)), account.failed),
        (f"{where}: clause", gate.clause, account.clause),
        (f"{NAME}: rows of gate {gate.id}", sorted(rows), sorted(cases)),
        (f"{NAME}: rows of gate {gate.id} in several cases", none, doubled),
    )
    yield from compared("junit", pairs, AGAIN)


def _passed(ground: Ground) -> bool:
    """What `passed` may be, from the rest of the record. A session with another exit code passed nothing."""
    audit = ground.audit
    whole = bool(audit.gates) and all(one.passed == one.registered for one in audit.gates)
    closed = not audit.books and not audit.errors and audit.collected == audit.reported
    return whole and closed and audit.passed
