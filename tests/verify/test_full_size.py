"""The whole folders of the full-size runs that docs/results keeps: they verify here, without model, GPU or engine."""

import tarfile
from pathlib import Path

import pytest
from pregate_support.mini import PROJECT

from harness.canon import sha256_hex
from harness.verify.run import verify

KEPT = PROJECT / "docs/results/full-size"
BEHAVIOR = "568ffe9971aa5d9e825baf9ca5e466b1682414a243bd293e85423591c1917e00"
COMPLETION = "12443e1fc869af1498544876f6703a58fcbab013280e2d179beaa69832350d58"
RUNS = {
    "deepseek-behavior/formal-20261201T130538-ce0683-port": BEHAVIOR,
    "deepseek-completion/formal-20261201T131427-f6dc08-port": COMPLETION,
}


@pytest.fixture(params=RUNS)
def unpacked(request, tmp_path: Path) -> tuple[Path, str]:
    """The run's folder as it was brought back, and the SHA-256 of its run.json on the page."""
    with tarfile.open(KEPT / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "reports" / request.param, RUNS[request.param]


def test_every_archive_has_its_test():
    """What is kept is what is verified."""
    assert {str(one.relative_to(KEPT)) for one in KEPT.rglob("*.tar.xz")} == {f"{name}.tar.xz" for name in RUNS}


def test_a_kept_run_verifies(unpacked):
    """Records follow from journals, parts were made apart, the smoke run is beside it; the page names its digest."""
    run, sha256 = unpacked
    result = verify(run)
    assert [line for line in result.lines if line.state == "fails"] == []
    assert sha256_hex((run / "run.json").read_bytes()) == sha256
    page = (KEPT / "README.md").read_text()
    assert sha256[:8] in page
    assert f"{run.parent.name}/{run.name}.tar.xz" in page


def test_one_other_token_is_found(unpacked):
    """One more token in a journal: the run is not what its records say."""
    run, _ = unpacked
    journal = sorted((run / "journal").glob("*.json"))[0]
    journal.write_bytes(journal.read_bytes().replace(b'"generated_ids":[', b'"generated_ids":[1,', 1))
    assert [line for line in verify(run).lines if line.state == "fails"]
