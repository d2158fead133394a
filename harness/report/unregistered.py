"""What a page says of claims where a protocol has none registered: nothing is checked, and nothing is supported."""

from harness.claims.differences import differences
from harness.claims.judge import result_name
from harness.claims.view import RunView
from harness.records.claims import Claims, PermittedResult, ProhibitedResult

REASON = "no claims are registered beside this protocol"
NONE = "none"


def unregistered(view: RunView) -> Claims:
    """Every permitted conclusion NOT CHECKED, with the reason; every prohibited one; every deviation."""
    protocol, audit = view.loaded.protocol, view.audit
    permitted = (
        PermittedResult(
            id=one.id,
            text=one.text,
            heading="results",
            status="NOT CHECKED",
            statement="",
            why=(REASON,),
            figures=(),
            no_figures=(),
            gates=(),
            rests_on=(),
        )
        for one in protocol.permitted
    )
    return Claims(
        schema=1,
        protocol=protocol.id,
        registered_id=protocol.registered_id,
        protocol_digest=view.loaded.digest,
        claims_sha256=NONE,
        claims_registered="registered beside the protocol and apart from its digest",
        result_name=result_name(view),
        run_id=audit.run_id,
        tier=audit.tier,
        grid=view.spec.grid,
        port=view.spec.port,
        passed=audit.passed,
        frozen=audit.frozen,
        domains=view.spec.domains,
        bands=(),
        permitted=tuple(permitted),
        prohibited=tuple(ProhibitedResult(id=one.id, text=one.text) for one in protocol.prohibited),
        differences=differences(view),
        records={},
    )
