"""The tokens of a finished behaviour run on the trained model, decoded again under whatever software is installed here.

A report, never a verdict: how many cells are the run's, and the first step at which another one parts. It needs no
tokenizer, so it also runs where the library is too old to read the tree's tokenizer files.
"""

import os
from pathlib import Path

import pytest
import torch
import transformers

from harness.compare import common_prefix
from harness.decode.greedy import adopt_contract, decode_greedy
from harness.journal.folder import RunFolder, journals, read_journal
from harness.model.load import load_model
from harness.protocols.load import load_protocol
from harness.records.run import Journal


def padded(cells, pad):
    """The prompts of a unit, left-padded, with their mask."""
    width = max(len(cell.prompt_ids) for cell in cells)
    ids = [[pad] * (width - len(cell.prompt_ids)) + list(cell.prompt_ids) for cell in cells]
    return ids, [[0] * (width - len(cell.prompt_ids)) + [1] * len(cell.prompt_ids) for cell in cells]


@pytest.mark.bench
@pytest.mark.smollm2
def test_the_tokens_of_a_run_under_this_software(capsys):
    """HARNESS_RUN names the run; its first unit of each domain is decoded."""
    loaded = load_protocol("smollm2-behavior")
    protocol, special = loaded.protocol, loaded.profile.special_ids
    placement = next(one for one in protocol.placements if one.id == protocol.placement)
    model = load_model(loaded.profile, protocol.execution, placement, Path(os.environ["HARNESS_SMOLLM2"]))
    adopt_contract(model, protocol.decode, special, protocol.grids["formal"].max_new_tokens)
    same, lines = [], []
    for path in journals(RunFolder(Path(os.environ["HARNESS_RUN"]))):
        unit = read_journal(path, Journal).evidence
        if unit.index != 0:
            continue
        ids, mask = padded(unit.cells, special.pad)
        rows = decode_greedy(model, ids, mask, eos=special.eos, tick=lambda step: None).rows
        for cell, row in zip(unit.cells, rows, strict=True):
            same.append(row == cell.generated_ids)
            if not same[-1]:
                parted = common_prefix(row, cell.generated_ids)
                lines.append(f"{unit.source_id} {cell.condition}: parts at step {parted} of {cell.length}")
    with capsys.disabled():
        print(
            f"\ntransformers {transformers.__version__}, torch {torch.__version__}: {sum(same)} of {len(same)} cells "
            f"have the run's tokens",
            *lines,
            sep="\n",
        )
