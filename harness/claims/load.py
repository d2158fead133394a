"""Loading claims.toml and holding it against its protocol: nothing left out or invented, nothing that can't fail."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.canon import sha256_hex
from harness.claims.patterns import check_pattern, check_sentences
from harness.claims.source import Source
from harness.claims.status import reachable
from harness.claims.vocabulary import bands_of, sources_of, words_of
from harness.errors import ProtocolError
from harness.files import read_bytes
from harness.protocols.load import LoadedProtocol
from harness.records.base import convert
from harness.records.claims import AtLeast, ClaimRules, FigureRule, PermittedRule, Whole

NAME = "claims.toml"
TODO = "Correct claims.toml; the protocol itself stays as it is."
PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Registration:
    """claims.toml of one protocol, checked, and the SHA-256 of its bytes."""

    rules: ClaimRules
    sha256: str
    sources: Mapping[str, Source]


def load_claims(loaded: LoadedProtocol) -> Registration:
    """The registered claims of a protocol; ProtocolError names entry, expected and found."""
    path = loaded.folder / NAME
    data = read_bytes(path, what="claims of the protocol")
    try:
        plain = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(path), expected="UTF-8 TOML", found=str(error), todo=TODO) from error
    rules = convert(plain, ClaimRules, where=path, error=ProtocolError, todo=TODO)
    sources = sources_of(loaded)
    check_claims(str(path), loaded, rules, sources)
    return Registration(rules, sha256_hex(data), sources)


def check_claims(where: str, loaded: LoadedProtocol, rules: ClaimRules, sources: Mapping[str, Source]) -> None:
    """ProtocolError for the first entry that doesn't agree with the protocol or with itself."""
    _same(f"{where}: protocol", loaded.protocol.id, rules.protocol)
    listed = (("permitted", loaded.protocol.permitted, rules.permitted),)
    for name, conclusions, entries in listed:
        _same(f"{where}: {name}", [one.id for one in conclusions], [one.id for one in entries])
    _same(f"{where}: bands", bands_of(loaded), rules.bands)
    prohibited = [one.id for one in loaded.protocol.prohibited]
    _same(f"{where}: prohibited", prohibited, [one.id for one in rules.prohibited])
    for rule in rules.permitted:
        _check_permitted(f"{where}: permitted {rule.id}", loaded, rule, sources)
    for entry in rules.prohibited:
        at = f"{where}: prohibited {entry.id}"
        for pattern in entry.patterns:
            check_pattern(at, pattern)
        check_sentences(at, entry)


def _check_permitted(where: str, loaded: LoadedProtocol, rule: PermittedRule, sources: Mapping[str, Source]) -> None:
    registered = {gate.id for gate in loaded.protocol.gates if rule.tier in gate.tiers}
    _subset(f"{where}: gates of tier {rule.tier}", rule.gates, registered)
    _subset(f"{where}: sources", [one.source for one in rule.figures], sources)
    names = [one.name for one in rule.figures]
    if not rule.gates or not names or len(set(names)) != len(names):
        raise _bad(where, "a gate that can fail and figures of different names", f"{rule.gates}, {names}")
    words = words_of(loaded, rule.tier, loaded.domains, loaded.protocol.result_name)
    _check_template(where, loaded, rule, words)
    diagnostic = [one.name for one in rule.figures if sources[one.source].diagnostic]
    if bool(diagnostic) != (rule.heading == "diagnostics"):
        raise _bad(f"{where}: heading", "diagnostics, for diagnostic figures and for them alone", rule.heading)
    for figure in rule.figures:
        _check_threshold(f"{where}: {figure.name}", loaded, rule, figure, sources[figure.source])
    states = reachable(loaded, rule, sources)
    if missing := sorted({"SUPPORTED", "REFUTED"} - states):
        found = f"none for {', '.join(missing)}"
        raise _bad(where, "counts that support the claim and counts that refute it", found)


def _check_template(where: str, loaded: LoadedProtocol, rule: PermittedRule, words: Mapping[str, str]) -> None:
    """Every figure is printed once, every number is a figure or a word of the protocol, and the name is the run's."""
    named, figures = PLACE.findall(rule.template), {one.name for one in rule.figures}
    plain = PLACE.sub("", rule.template)
    _subset(f"{where}: template", named, {*figures, *words})
    _same(f"{where}: figures in the template", sorted(figures), sorted(name for name in named if name in figures))
    if figures & {*words} or "{" in plain or "}" in plain or any(letter.isnumeric() for letter in plain):
        raise _bad(f"{where}: template", "numbers as {figures} or {words} only", rule.template)
    if loaded.protocol.result_name.lower() in plain.lower():
        raise _bad(f"{where}: template", "the result's name as {result_name}", rule.template)


def _check_threshold(
    where: str, loaded: LoadedProtocol, rule: PermittedRule, figure: FigureRule, source: Source
) -> None:
    """A threshold can be reached on the grid and can be missed."""
    planned = source.planned(loaded, rule.tier, loaded.domains)
    if planned.of < 1:
        raise _bad(where, f"a source that tier {rule.tier} has", f"{figure.source}, over nothing")
    rule_ = figure.threshold
    if isinstance(rule_, AtLeast) and not (planned.exact and 1 <= rule_.n <= planned.of):
        raise _bad(where, f"at_least from 1 to {planned.of}, of a registered denominator", str(rule_.n))
    if isinstance(rule_, Whole) and source.diagnostic:
        raise _bad(where, "no threshold on a diagnostic", "whole")


def _subset(where: str, found: Iterable[str], known: Iterable[str]) -> None:
    listed = sorted({*known})
    if strangers := sorted({*found} - {*listed}):
        raise _bad(where, f"only {', '.join(listed)}", ", ".join(strangers))


def _same(where: str, expected: object, found: object) -> None:
    if expected != found:
        raise _bad(where, str(expected), str(found))


def _bad(where: str, expected: str, found: str) -> ProtocolError:
    return ProtocolError(where, expected=expected, found=found, todo=TODO)
