"""What a study under tapes registers, and what it may not say: one field at a time, and it doesn't load."""

import json
import re
import shutil

import msgspec
import pytest

from harness.authoring.answers import SamplingAnswer, sampling_of
from harness.errors import ModelError, ProtocolError
from harness.model.official import official_sampling
from harness.protocols.check import check_protocol
from harness.protocols.check_taped_study import CROSS_PROCESS, SAME_PROCESS
from harness.protocols.load import read_protocol
from harness.protocols.study_gates import check_study_gates
from harness.records.kinds import journal_type, run_type
from harness.records.protocol import TapedStudyProtocol
from harness.records.taped_study import TapedStudyJournal, TapedStudyRun

from .conftest import TAPES, freeze_study, write_study

replace = msgspec.structs.replace
GATES = ("taped_contract", "tape_account", "shared_uniforms", "finished_rows", "taped_steps", "tapes_part")
APART = ("synthetic_cdf", "same_process_replay", "loop_recorded", "loop_equivalence")


@pytest.fixture(scope="module")
def protocol(drawn):
    """The study of the tiny Llama, as it was written."""
    return read_protocol(drawn("llama") / "protocol.toml")


def test_what_init_writes_is_a_study_under_its_own_tapes(protocol):
    """Labels, digests by rule, the author's numbers, and grids that name tapes."""
    assert isinstance(protocol, TapedStudyProtocol)
    check_protocol(protocol)
    check_study_gates(protocol, "here")
    assert (journal_type(protocol), run_type(protocol)) == (TapedStudyJournal, TapedStudyRun)
    assert [one.label for one in protocol.decode.register.tapes] == ["T0", "T1", "T2"]
    assert (protocol.decode.sampler.temperature, protocol.decode.sampler.top_p) == (0.9, 0.9)
    replicates = {name: grid.replicates for name, grid in protocol.grids.items()}
    few = ("T0", "T1")
    assert replicates == {"smoke": few, "formal": ("T0", "T1", "T2"), "independent": few, "smoke_again": ("T0",)}
    assert protocol.loop_equivalence == "required"
    assert {*GATES, *APART} <= {gate.id for gate in protocol.gates}
    assert "greedy_steps" not in {gate.id for gate in protocol.gates}


def test_fields_that_are_compared_are_those_that_a_taped_cell_has():
    """What two draws must be compared over is all that the document compares, and what the check can read."""
    drawn = ("tape", "prompt_sha256", "uniforms_sha256", "generated_ids", "text", "eos", "truncated")
    whole = ("protocol", "model_revision", "generation_contract", *drawn, "rng_before")
    assert (drawn, whole) == (SAME_PROCESS, CROSS_PROCESS)


def tapes(protocol, **fields):
    """The study with its first tape changed."""
    first, *others = protocol.decode.register.tapes
    register = replace(protocol.decode.register, tapes=(replace(first, **fields), *others))
    return replace(protocol, decode=replace(protocol.decode, register=register))


def sampler(protocol, **fields):
    """The study with another sampler."""
    return replace(protocol, decode=replace(protocol.decode, sampler=replace(protocol.decode.sampler, **fields)))


def grid(protocol, name, **fields):
    """The study with one grid changed."""
    return replace(protocol, grids=protocol.grids | {name: replace(protocol.grids[name], **fields)})


def rule(protocol, name, **fields):
    """The study with one of its rules changed."""
    return replace(protocol, **{name: replace(getattr(protocol, name), **fields)})


def bfloat16(protocol):
    """The study in another precision."""
    return replace(protocol, execution=replace(protocol.execution, dtype="bfloat16"))


def official(protocol, **fields):
    """The study with other fields of its decoding contract."""
    return replace(protocol, decode=replace(protocol.decode, **fields))


def tiers(protocol, **named):
    """The study with other grids for its tiers."""
    return replace(protocol, tier_grids=protocol.tier_grids | named)


def origin(protocol, word):
    """The study whose tapes are said to be from elsewhere."""
    return official(protocol, register=replace(protocol.decode.register, origin=word))


WRONG = {
    "a chosen tape": (lambda p: tapes(p, sha256="0" * 64), "tape T0.sha256: expected"),
    "a chosen seed": (lambda p: tapes(p, display_seed=1), "tape T0.display_seed: expected"),
    "a tape's name": (lambda p: tapes(p, label="T9"), "decode.register.tapes: expected ['T0', 'T1', 'T2']"),
    "tapes by a word of its own": (
        lambda p: replace(p, registered_id="grinding-17"),
        "registered_id: expected llama-drawn-v1, found grinding-17",
    ),
    "published tapes": (lambda p: origin(p, "published"), "decode.register.origin: expected ours, found published"),
    "no temperature": (lambda p: sampler(p, temperature=0.0), "decode.sampler.temperature: expected above 0"),
    "next to none": (lambda p: sampler(p, temperature=1e-9), "decode.sampler.temperature: expected from 0.01 to 100"),
    "one without end": (lambda p: sampler(p, temperature=float("inf")), "decode.sampler.temperature: expected above 0"),
    "a nucleus above all": (lambda p: sampler(p, top_p=1.5), "decode.sampler.top_p: expected above 0, at most 1.0"),
    "nothing kept": (lambda p: sampler(p, min_tokens_to_keep=0), "decode.sampler.min_tokens_to_keep: expected 1"),
    "another device": (lambda p: sampler(p, device="cuda"), "decode.sampler.device: expected cpu, found cuda"),
    "another rule's name": (lambda p: replace(p, sampler="greedy-argmax"), ": sampler: expected icdf-v1"),
    "the published rule": (
        lambda p: replace(sampler(p, rule="icdf-r08"), sampler="icdf-r08"),
        "decode.sampler.rule: expected icdf-v1, found icdf-r08",
    ),
    "a fixed cache": (lambda p: official(p, cache="fixed"), "decode.cache: expected dynamic, found fixed"),
    "a seed below 0": (lambda p: official(p, generator_seed=-7), "decode.generator_seed: expected from 0 to 2**32 - 1"),
    "a seed too long": (lambda p: official(p, generator_seed=2**63), "decode.generator_seed: expected from 0"),
    "official numbers that are none": (
        lambda p: official(p, official_temperature=float("nan")),
        "decode.official_temperature: expected a finite number",
    ),
    "greedy replicates": (lambda p: grid(p, "formal", replicates=("greedy",)), "found greedy"),
    "a tape twice": (
        lambda p: grid(p, "formal", replicates=("T0", "T0", "T1")),
        "grids.formal.replicates: expected ('T0', 'T1', 'T2')",
    ),
    "a formal tape left out": (
        lambda p: grid(p, "formal", replicates=("T0", "T1")),
        "grids.formal.replicates: expected ('T0', 'T1', 'T2'), found ('T0', 'T1')",
    ),
    "formal tapes in another order": (
        lambda p: grid(p, "formal", replicates=("T2", "T1", "T0")),
        "grids.formal.replicates: expected ('T0', 'T1', 'T2')",
    ),
    "other smoke tapes": (
        lambda p: grid(p, "smoke", replicates=("T1", "T2")),
        "grids.smoke.replicates: expected ('T0', 'T1'), found ('T1', 'T2')",
    ),
    "one smoke tape": (
        lambda p: grid(p, "smoke", replicates=("T0",)),
        "grids.smoke.replicates: expected 2 tapes or more, found 1",
    ),
    "a replay under fewer tapes": (
        lambda p: grid(p, "independent", replicates=("T0",)),
        "grids.independent.replicates: expected 2 tapes or more, as in smoke, found 1",
    ),
    "more smoke sources": (
        lambda p: grid(p, "smoke", per_domain=3),
        "grids.smoke.per_domain: expected from 1 to 2, the formal grid's, found 3",
    ),
    "more replayed sources": (lambda p: grid(p, "independent", per_domain=3), "grids.independent.per_domain: expected"),
    "a longer smoke": (
        lambda p: grid(p, "smoke", max_new_tokens=10),
        "grids.smoke.max_new_tokens: expected from 1 to 9, the formal grid's, found 10",
    ),
    "a replay of another grid": (
        lambda p: tiers(p, replay="smoke_again"),
        "tier_grids.replay: expected independent, independent_replay's, found smoke_again",
    ),
    "a tier of no grid": (lambda p: tiers(p, formal="nope"), "tier_grids.formal: expected one of"),
    "no smoke": (
        lambda p: replace(p, tier_grids={"formal": "formal", "replay": "independent"}),
        "tier_grids.smoke: expected one of",
    ),
    "a record where a gate is owed": (
        lambda p: replace(p, loop_equivalence="recorded"),
        "loop_equivalence: expected required, found recorded",
    ),
    "another budget drawn again": (
        lambda p: grid(p, "smoke_again", max_new_tokens=4),
        "same_process_replay.grid: expected (1, ('T0',), 5)",
    ),
    "a tape drawn again that smoke lacks": (
        lambda p: rule(p, "same_process_replay", replicate="T2"),
        "same_process_replay.replicate: expected one of ['T0', 'T1'], found T2",
    ),
    "tokens not compared": (
        lambda p: rule(p, "same_process_replay", fields=SAME_PROCESS[:3]),
        "same_process_replay.fields: expected",
    ),
    "states not compared": (
        lambda p: rule(p, "independent_replay", fields=CROSS_PROCESS[:-1]),
        "found no rng_before",
    ),
    "a field that no cell has": (
        lambda p: rule(p, "placement_equivalence", fields=(*SAME_PROCESS, "mood")),
        "placement_equivalence.fields: expected of protocol",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_study_under_tapes_may_not_say(protocol, name):
    """One field at a time, and it doesn't load."""
    change, words = WRONG[name]
    with pytest.raises(ProtocolError, match=re.escape(words)):
        check_protocol(change(protocol))


def test_in_another_precision_the_loop_may_be_recorded_alone(protocol):
    """And then its gate isn't one of the study's."""
    changed = replace(bfloat16(protocol), loop_equivalence="recorded")
    check_protocol(changed)
    with pytest.raises(ProtocolError, match="gates: expected"):
        check_study_gates(changed, "here")
    gates = tuple(gate for gate in changed.gates if gate.id != "loop_equivalence")
    check_study_gates(replace(changed, gates=gates), "here")


@pytest.mark.parametrize("name", [*GATES, *APART])
def test_no_gate_of_the_draws_may_be_left_out(protocol, name):
    """A passed run of a study under tapes means the same of all."""
    gates = tuple(gate for gate in protocol.gates if gate.id != name)
    with pytest.raises(ProtocolError, match="gates: expected"):
        check_study_gates(replace(protocol, gates=gates), "here")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((1, None, None), "--tapes: expected 2 or more, or 0 for greedy decoding, found 1"),
        ((0, 0.5, None), "--temperature: expected --tapes N beside it"),
        ((0, None, 0.5), "--top-p: expected --tapes N beside it"),
        ((2, 0.0, None), "--temperature: expected from 0.01 to 100.0, found 0.0"),
        ((2, float("inf"), None), "--temperature: expected from 0.01 to 100.0, found inf"),
        ((2, None, 1.1), "--top-p: expected above 0, at most 1, found 1.1"),
        ((2, float("nan"), None), "--temperature: expected from 0.01 to 100.0, found nan"),
    ],
)
def test_what_may_not_be_answered(words, found):
    """Tapes, temperature and top-p that mean nothing, before anything is read."""
    with pytest.raises(ProtocolError, match=re.escape(found)):
        sampling_of(*words)
    assert sampling_of(0, None, None) is None
    assert sampling_of(2, None, 1.0) == SamplingAnswer(2, None, 1.0)


def test_what_no_flag_gives_is_the_models_own(tmp_path):
    """generation_config.json, the neutral numbers where it says nothing, and a refusal of what is no number."""
    found = official_sampling(tmp_path)
    assert (found.temperature, found.top_p) == (1.0, 1.0)
    path = tmp_path / "generation_config.json"
    path.write_text('{"temperature": 0.3, "top_p": null}', encoding="utf-8")
    found = official_sampling(tmp_path)
    assert (found.temperature, found.top_p) == (0.3, 1.0)
    for said in ('"warm"', "NaN", "true"):
        path.write_text(f'{{"temperature": {said}}}', encoding="utf-8")
        with pytest.raises(ModelError, match="temperature: expected a finite number"):
            official_sampling(tmp_path)


def test_a_models_own_number_that_nothing_can_be_drawn_with_names_its_flag(answers_for, checkpoints, tmp_path):
    """A publisher who recommends a temperature of 0: the flag that says another, and nothing is written."""
    own = tmp_path / "model"
    shutil.copytree(checkpoints["llama"], own)
    config = json.loads((own / "generation_config.json").read_text(encoding="utf-8"))
    (own / "generation_config.json").write_text(json.dumps(config | {"temperature": 0.0}), encoding="utf-8")
    drawn = {"id": "cold-study", "checkpoint": own}
    with pytest.raises(ProtocolError, match=r"--temperature, by the model's .*: expected from 0\.01"):
        write_study(tmp_path, answers_for("llama", sampling=SamplingAnswer(2, None, None), **drawn))
    folder = write_study(tmp_path / "warm", answers_for("llama", sampling=TAPES, **drawn))
    assert read_protocol(folder / "protocol.toml").decode.official_temperature == 0.0
    text = (folder / "protocol.toml").read_text(encoding="utf-8")
    (folder / "protocol.toml").write_text(
        text.replace("official_top_p = 1.0", "official_top_p = 0.5"), encoding="utf-8"
    )
    with pytest.raises(ProtocolError, match=r"official_top_p: expected 1\.0, found 0\.5"):
        freeze_study(folder)
