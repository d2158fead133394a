"""The behaviour ledger: right rows for a hand-made run, typed absence, refusal of anything that isn't the grid."""

import json
import subprocess
import sys

import msgspec
import pytest

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.errors import JournalError, ProtocolError
from harness.ledgers.behavior import NO_CODE, NO_NUMBERS, ledger, observed_in
from harness.ledgers.statistics import statistics
from harness.ledgers.text import eos_text, observed_text
from harness.records.base import decode_json
from harness.records.ledger import (
    DoesNotParse,
    GoldAbsent,
    GoldCompared,
    Ledger,
    NoNumber,
    NumberFound,
    NumberObservation,
    Parses,
    Statistics,
    SyntaxObservation,
    TooDeep,
)
from harness.records.run import Run
from harness.records.sources import Domain


@pytest.fixture(scope="module")
def made(protocol, two_sources):
    """The ledger of the hand-made run."""
    return ledger(protocol, two_sources)


def row(made, source_id, condition):
    """The one row of a cell."""
    (found,) = [each for each in made.cells if (each.source_id, each.condition) == (source_id, condition)]
    return found


def test_the_ledger_names_its_run(protocol, two_sources, made):
    """Protocol, run digest and evaluator versions stand in the ledger; the run's name is its canonical SHA-256."""
    assert (made.protocol, made.protocol_digest, made.grid) == (protocol.id, two_sources.protocol_digest, "smoke")
    assert made.run_sha256 == sha256_hex(canonical_bytes(two_sources))
    assert made.evaluators == protocol.evaluators
    assert (made.domains, made.result_name) == (("code", "math"), "small-scale deterministic behavior probe")


def test_rows_are_the_grid_in_the_protocols_order(protocol, made):
    """A row for each cell and each edge of both sources: code before math, conditions and edges as registered."""
    sources = ["code/0000", "math/0000"]
    conditions = [condition.id for condition in protocol.conditions]
    edges = [edge.id for edge in protocol.edges]
    assert [(each.source_id, each.condition) for each in made.cells] == [(s, c) for s in sources for c in conditions]
    assert [(each.source_id, each.edge) for each in made.edges] == [(s, e) for s in sources for e in edges]


@pytest.mark.parametrize(
    ("condition", "last", "matches"),
    [
        ("s0_eos", NumberFound(value="1234.5", start=3, end=11), True),
        ("s1_eos", NumberFound(value="1234.5", start=3, end=9), True),
        ("s0_bos", NoNumber(), False),
        ("s1_bos", NumberFound(value="12", start=3, end=5), False),
    ],
)
def test_numbers_of_mathematics(made, condition, last, matches):
    """The last number and its comparison with gold 1,234.50, by value and not by writing; no number is no match."""
    compared = GoldCompared(gold="1234.5", last_number_match=matches)
    found = row(made, "math/0000", condition)
    assert found.number == NumberObservation(last_number=last, comparison=compared)
    assert found.syntax == NO_CODE


@pytest.mark.parametrize(
    ("condition", "part", "outcome"),
    [
        ("s0_eos", "fence", Parses()),
        ("s0_x", "whole_text", Parses()),
        ("s1_x", "whole_text", DoesNotParse(error="SyntaxError")),
        ("s0_period", "whole_text", Parses()),
        ("s1_period", "whole_text", TooDeep()),
    ],
)
def test_syntax_of_code(made, condition, part, outcome):
    """What was parsed and what came out; the EOS token's text is no part of a program."""
    found = row(made, "code/0000", condition)
    assert found.syntax == SyntaxObservation(part=part, outcome=outcome)
    assert found.number == NO_NUMBERS


def test_completion_is_the_evidences(made):
    """Natural EOS, truncation and length (EOS counted) are the cell's."""
    ended, cut = row(made, "math/0000", "s0_eos"), row(made, "math/0000", "s1_eos")
    assert (ended.natural_eos, ended.truncated, ended.length) == (True, False, 12)
    assert (cut.natural_eos, cut.truncated, cut.length) == (False, True, 9)


def test_a_missing_gold_is_absent_and_not_made_up(protocol, two_sources):
    """Without gold the number is still read and nothing is compared; the gold of another source isn't used."""
    without = msgspec.structs.replace(two_sources, gold={"math/0001": "12"})
    numbers = [each.number for each in ledger(protocol, without).cells if each.domain == "math"]
    assert {type(number.comparison) for number in numbers} == {GoldAbsent}
    assert numbers[1].last_number == NumberFound(value="1234.5", start=3, end=9)


def test_gold_of_a_domain_without_numbers_is_never_read(protocol, two_sources, made):
    """An entry for a code source gives no number observation."""
    more = msgspec.structs.replace(two_sources, gold={**two_sources.gold, "code/0000": "1"})
    assert ledger(protocol, more).cells == made.cells


@pytest.mark.parametrize("gold", ["", "twelve", "12 apples", "\uff11\uff12"])
def test_a_gold_that_is_no_number_is_refused(protocol, two_sources, gold):
    """A broken gold isn't a mismatch."""
    broken = msgspec.structs.replace(two_sources, gold={"math/0000": gold})
    with pytest.raises(JournalError, match=r"^run record: gold of math/0000: expected one number"):
        ledger(protocol, broken)


def test_gold_fields_decide_what_is_observed(protocol):
    """A domain with an `answer` has numbers, one with an `entry_point` has code, whatever its name."""
    found = {domain.name: set(observed_in(domain)) for domain in protocol.domains}
    assert found == {"english": set(), "chinese": set(), "code": {"syntax"}, "math": {"number"}}


def test_a_domains_name_decides_nothing(protocol):
    """A domain named math without gold has no evaluator."""
    math: Domain = next(domain for domain in protocol.domains if domain.name == "math")
    assert observed_in(msgspec.structs.replace(math, gold=())) == frozenset()


def test_only_the_eos_at_the_end_is_left_out(protocol, builder, say):
    """Evaluators read the text up to its EOS token; the same characters elsewhere stay."""
    eos = eos_text(protocol)
    condition = protocol.conditions[0]
    ended, cut = builder.cell(condition, say(f"a{eos}b")), builder.cell(condition, say(f"a{eos}", eos=False))
    assert observed_text(protocol, ended, where="cell") == f"a{eos}b"
    assert observed_text(protocol, cut, where="cell") == f"a{eos}"


def altered(run, **changes):
    """The run with its first cell changed."""
    first = run.units[0]
    cells = (msgspec.structs.replace(first.cells[0], **changes), *first.cells[1:])
    return msgspec.structs.replace(run, units=(msgspec.structs.replace(first, cells=cells), *run.units[1:]))


@pytest.mark.parametrize(
    ("text", "message"),
    [("no end", "expected an end of '<"), ("\\u12", "expected escaped text"), ("\u7b54", "expected escaped text")],
)
def test_a_text_that_contradicts_its_eos_is_refused(protocol, two_sources, text, message):
    """A cell that ended by EOS but whose text doesn't, or whose text isn't an escaped one, is a broken record."""
    with pytest.raises(JournalError, match=f"^cell code/0000, greedy, s0_eos: text_escaped: {message}"):
        ledger(protocol, altered(two_sources, text_escaped=text))


def test_a_protocol_without_an_official_boundary_has_no_eos_text(protocol):
    """The EOS text is registered, never guessed."""
    others = tuple(boundary for boundary in protocol.boundaries if boundary.name != "eos")
    with pytest.raises(ProtocolError, match="boundaries: expected one named eos"):
        eos_text(msgspec.structs.replace(protocol, boundaries=others))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "other"}, "^run record: protocol: expected nano-behavior, found other"),
        ({"grid": "other"}, "^run record: grid: expected one of"),
        ({"domains": ("code", "poetry")}, "^run record: domains: expected different ones of"),
        ({"domains": ("code", "code")}, "^run record: domains: expected different ones of"),
        ({"domains": ("code",)}, r"units of grid smoke: expected 1 units.*foreign \[\('math', 0, 'greedy'\)\]"),
        ({"domains": ("code", "math", "english")}, r"expected 3 units.*missing \[\('english', 0, 'greedy'\)\]"),
        ({"grid": "formal"}, "units of grid formal: expected 8 units, each once, found 2"),
    ],
)
def test_a_run_of_something_else_is_refused(protocol, two_sources, changes, message):
    """Another protocol, grid or set of domains than the units', or one that isn't registered, has no ledger."""
    with pytest.raises(JournalError, match=message):
        ledger(protocol, msgspec.structs.replace(two_sources, **changes))


def test_a_doubled_unit_is_refused(protocol, two_sources):
    """The same unit twice isn't more evidence."""
    twice = msgspec.structs.replace(two_sources, units=(*two_sources.units, two_sources.units[0]))
    with pytest.raises(JournalError, match="expected 2 units, each once, found 3, 2 of them different"):
        ledger(protocol, twice)


def test_a_lost_unit_is_refused(protocol, two_sources):
    """A missing unit is no smaller denominator."""
    lost = msgspec.structs.replace(two_sources, units=two_sources.units[:1])
    with pytest.raises(JournalError, match=r"missing \[\('math', 0, 'greedy'\)\], foreign \[\]"):
        ledger(protocol, lost)


def test_order_of_units_and_rows_changes_no_row(protocol, two_sources, made):
    """Rows are joined by identity: units and cells in another order give the same rows in the same order."""
    units = [msgspec.structs.replace(unit, cells=unit.cells[::-1]) for unit in two_sources.units[::-1]]
    other = ledger(protocol, msgspec.structs.replace(two_sources, units=tuple(units), domains=("math", "code")))
    assert (other.cells, other.edges, other.domains) == (made.cells, made.edges, made.domains)
    assert other.run_sha256 != made.run_sha256


def test_replicates_are_units_of_their_own(builder, say):
    """A source with two replicates has two rows a condition, told apart by replicate."""
    two = builder.with_grid("smoke", per_domain=1, replicates=("r0", "r1"))
    units = [two.unit("math", 0, {"*": say(text)}, replicate=name) for name, text in (("r1", "1"), ("r0", "0"))]
    made = ledger(two.protocol, two.run(tuple(units), domains=("math",), gold={"math/0000": "0"}))
    found = {(each.replicate, each.number.comparison.last_number_match) for each in made.cells}
    assert found == {("r0", True), ("r1", False)}
    assert [each.replicate for each in made.edges] == ["r0"] * 10 + ["r1"] * 10


@pytest.mark.parametrize("kind", [Ledger, Statistics])
def test_records_survive_their_canonical_bytes(protocol, made, kind):
    """Reading the canonical bytes gives the record back, and writing it again gives the bytes."""
    record = made if kind is Ledger else statistics(protocol, made)
    again = decode_json(canonical_bytes(record), kind, where="test", error=JournalError, todo="")
    assert (again, canonical_bytes(again)) == (record, canonical_bytes(record))


def test_the_ledger_is_regenerated_from_bytes(protocol, two_sources, made):
    """run.json read back gives the ledger byte for byte."""
    run = decode_json(canonical_bytes(two_sources), Run, where="run.json", error=JournalError, todo="")
    assert canonical_bytes(ledger(protocol, run)) == canonical_bytes(made)


CHILD = """
import sys
for name in ("torch", "transformers", "docker", "tokenizers", "numpy", "pyarrow", "accelerate", "pytest", "socket"):
    sys.modules[name] = None
import msgspec
from harness.canon import digest
from harness.ledgers.behavior import ledger
from harness.ledgers.statistics import statistics
from harness.records.protocol import AnyProtocol
from harness.records.run import Run
protocol = msgspec.json.decode(open(sys.argv[1], "rb").read(), type=AnyProtocol)
made = ledger(protocol, msgspec.json.decode(open(sys.argv[2], "rb").read(), type=Run))
print(digest(made), digest(statistics(protocol, made)))
"""


@pytest.mark.parametrize("seed", ["0", "1"])
def test_below_the_waist_nothing_above_it_is_needed(protocol, two_sources, made, tmp_path, seed):
    """With torch, transformers, docker and tokenizers unimportable, and any hash seed, the same bytes come out."""
    files = {"protocol.json": protocol, "run.json": two_sources}
    for name, record in files.items():
        (tmp_path / name).write_bytes(canonical_bytes(record))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *(str(tmp_path / name) for name in files)],
        capture_output=True, text=True, check=False, env={"PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [digest(made), digest(statistics(protocol, made))]


def keys(value):
    """Every key in plain data."""
    if isinstance(value, dict):
        return set(value) | {key for each in value.values() for key in keys(each)}
    return {key for each in value for key in keys(each)} if isinstance(value, list) else set()


def test_no_field_is_an_accuracy_an_interval_or_a_percentage(protocol, made):
    """Round 04 counts; it names neither an accuracy nor a success."""
    plain = [json.loads(canonical_bytes(record)) for record in (made, statistics(protocol, made))]
    words = ("accura", "percent", "interval", "score", "success", "correct", "rate", "p_value")
    assert [key for key in keys(plain) if any(word in key.replace("generated", "") for word in words)] == []
