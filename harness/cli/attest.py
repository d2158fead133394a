"""`attest RUN`: the in-toto statement over a run that verifies, for somebody to sign with tools of their own."""

import shlex

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Json, Judged
from harness.cli.working import working
from harness.snapshots.store import ATTESTATION
from harness.verify.attest import attest as attest_run
from harness.verify.attestation import NAMESPACE, said_of


def attest(run: Judged, *, json: Json = False) -> None:
    """Write RUN/attestation.json, an in-toto statement over a run that verifies, and say how it is signed.

    Exit 0: written, or there with the same bytes; 1: refused.
    """
    with errors_to_stderr(), working("attest") as note:
        statement = attest_run(run, note=note)
    if json:
        show.document(statement)
        return
    about = statement.predicate.pregate
    path = run / ATTESTATION
    show.line(f"{path}: {len(statement.subject)} subjects, {statement.predicate.result}, {said_of(run)}")
    for one in about.not_checkable:
        show.line(f"not checkable, and said in the statement: {one}")
    show.line(f"Sign it: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {shlex.quote(str(path))}")
