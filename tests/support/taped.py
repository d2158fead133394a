"""A unit under a tape by hand: rows of given lengths whose accounts agree with tape, source and steps."""

from collections.abc import Sequence

from harness.canon import escaped, ids_sha256, text_sha256
from harness.protocols.generators import seeded_states
from harness.records.run import CellRecord, StepChecks
from harness.records.taped import TapedBatch, TapedContract, TapedEvidence, TapeRegister
from harness.records.tapes import EdgeDistance, Finished, NotFinished, RowTape, SamplerContract
from harness.tapes.account import attended_columns
from harness.tapes.consumed import registered_consumption
from harness.tapes.tape import Tape

COLUMNS, EOS, BUDGET = 2048, 1, 6
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")
SOURCE, REGISTERED = "code/0000", "pregate-tests-v1"
TAPE = Tape(REGISTERED, "T0")
SAMPLER = SamplerContract(rule="icdf-r08", temperature=0.3, top_p=0.95, min_tokens_to_keep=1, device="cpu")
CONTRACT = TapedContract(
    strategy="tape",
    pairing="shared uniform numbers",
    finished_rows="pad_masked",
    use_cache=True,
    cache="dynamic",
    rows_per_batch=4,
    sampler=SAMPLER,
    register=TapeRegister(rule="tape-r08", origin="ours", tapes=()),
    generator_seed=0,
    official_temperature=0.3,
    official_top_p=0.95,
)


def ids_of(length: int, first: int) -> tuple[int, ...]:
    """Generated IDs: ended by EOS where shorter than the budget, cut where as long."""
    body = tuple(range(first, first + length))
    return (*body[:-1], EOS) if length < BUDGET else body


def taped_unit(lengths: Sequence[int] = (6, 3, 5, 1), *, label: str = "T0", first: int = 300) -> TapedEvidence:
    """A unit of four rows; those shorter than the budget ended by EOS."""
    tape, steps = Tape(REGISTERED, label), max(lengths)
    states = seeded_states(0, gpus=0)
    cells = tuple(
        _cell(condition, ids_of(length, first + 10 * place), place)
        for place, (condition, length) in enumerate(zip(CONDITIONS, lengths, strict=True))
    )
    rows = tuple(
        RowTape(
            condition=cell.condition,
            tape=tape.label,
            tape_sha256=tape.sha256,
            sampler=SAMPLER,
            consumed=registered_consumption(tape, SOURCE, cell.length),
            gaps=0,
            gap_steps=(),
            boundary_ties=0,
            nearest_edge=EdgeDistance(distance=0.25),
            finish=Finished(step=cell.length - 1) if cell.eos else NotFinished(),
            attended=attended_columns(prompt=len(cell.prompt_ids), length=cell.length, steps=steps),
        )
        for cell in cells
    )
    emitted, width = sum(lengths), max(len(cell.prompt_ids) for cell in cells)
    return TapedEvidence(
        protocol_digest="d" * 64,
        environment_sha256="e" * 64,
        placement_sha256="f" * 64,
        grid="smoke",
        domain="code",
        index=0,
        source_id=SOURCE,
        source_text_sha256="0" * 64,
        replicate=label,
        rng_before=states,
        rng_after=states,
        max_new_tokens=BUDGET,
        cells=cells,
        checks=StepChecks(steps=steps, rows_checked=emitted, finite=emitted, argmax=0),
        tape=TapedBatch(
            label=tape.label,
            sha256=tape.sha256,
            sampler=SAMPLER,
            columns=COLUMNS,
            cache="DynamicCache",
            cached=width + steps - 1,
            rows=rows,
        ),
    )


def _cell(condition: str, ids: tuple[int, ...], place: int) -> CellRecord:
    prompt = tuple(range(10, 10 + 5 + place))
    text = " ".join(map(str, ids))
    return CellRecord(
        condition=condition,
        prompt_ids=prompt,
        prompt_sha256=ids_sha256(prompt),
        left_padding=3 - place,
        edits=(),
        generated_ids=ids,
        generated_sha256=ids_sha256(ids),
        text_escaped=escaped(text),
        text_sha256=text_sha256(text),
        eos=ids[-1] == EOS,
        truncated=ids[-1] != EOS,
        length=len(ids),
    )
