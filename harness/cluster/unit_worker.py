"""A process that holds the model once and makes units on demand, in a folder of its own that nobody else reads.

Knows no cluster. What was written since the last answer is the answer: paths relative to a run folder, and bytes.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.canon import sha256_hex
from harness.cluster.apart import inside
from harness.errors import HarnessError, words
from harness.files import read_bytes
from harness.journal.folder import RunFolder
from harness.model.process import set_before_torch, steer_as
from harness.protocols.grids import UnitKey
from harness.run.code import code_sha256
from harness.run.request import Request, loaded_for

if TYPE_CHECKING:
    from harness.run.produce import Work

LOCKS = "locks"


@dataclass(frozen=True, slots=True)
class Landed:
    """Files of a run folder, by relative path; `refusal`: what stopped the worker, empty where nothing did."""

    files: dict[str, bytes]
    refusal: str


class UnitWorker:
    """One model, loaded by `begin`; then units; then `end`. After a refusal it does nothing more.

    `steering`: the variables that steer kernels, as the driver has them (`harness.model.process.steering`). `code`: the
    driver's own (`code_sha256`); a worker of other code begins nothing. `apart`: the name of the run's folder for all
    that its workers write (`harness.cluster.apart`).
    """

    def __init__(self, request: Request, protocol_digest: str, steering: dict[str, str], code: str, apart: str) -> None:
        self._request, self._digest, self._steering, self._code = request, protocol_digest, steering, code
        self._apart = apart
        self._stack = ExitStack()
        self._folder: RunFolder | None = None
        self._work: Work | None = None
        self._sent: dict[str, str] = {}

    def begin(self) -> Landed:
        """Load the model; what the run is: spec.json, environment.json, placement.json and what else precedes units."""
        return self._answered(self._begin)

    def land(self, key: UnitKey) -> Landed:
        """The unit's journal, its replay where the same process draws it again, and what the process noted of itself.

        Of what failed, its records.
        """
        return self._answered(lambda: self._land(key))

    def end(self) -> Landed:
        """Nothing more is asked; the model is released and the folder removed."""
        self._stack.close()
        return Landed({}, "")

    def _begin(self) -> None:
        if (own := code_sha256()) != self._code:
            raise RuntimeError(f"the project's code has digest {own} here, not {self._code}")
        loaded = loaded_for(self._request)
        if loaded.digest != self._digest:
            raise RuntimeError(f"protocol {loaded.protocol.id} has digest {loaded.digest} here, not {self._digest}")
        self._stack.enter_context(inside(self._apart))  # a model that is offloaded to disk has its folder there too
        self._folder = RunFolder(Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pregate-units-"))))
        steer_as(self._steering)  # what started this process may have set its own
        set_before_torch(self._request.execution, self._request.placement)
        from harness.run.produce import at_work  # noqa: PLC0415 - loads torch

        self._work = self._stack.enter_context(at_work(loaded, self._request, self._folder))

    def _land(self, key: UnitKey) -> None:
        from harness.run.produce import land  # noqa: PLC0415 - loads torch

        land(self._at_work(), key)

    def _at_work(self) -> "Work":
        if self._work is None:
            raise RuntimeError("the worker has not begun")
        return self._work

    def _answered(self, step: Callable[[], None]) -> Landed:
        refusal = ""
        try:
            step()
        except HarnessError as error:
            refusal = str(error)
        except Exception as error:  # noqa: BLE001  the driver says it: it has the run, this process only a copy of a part
            refusal = words(f"{type(error).__name__}: {error}")
        files = self._new_files()
        if refusal:  # nobody asks again: the model and the folder go, what failed is in the answer
            self._work, self._folder = None, None
            self._stack.close()
        return Landed(files, refusal)

    def _new_files(self) -> dict[str, bytes]:
        if self._folder is None:
            return {}
        found = {}
        for path in sorted(self._folder.path.rglob("*")):
            name = path.relative_to(self._folder.path).as_posix()
            if not path.is_file() or LOCKS in path.relative_to(self._folder.path).parts:
                continue
            data = read_bytes(path, what="file of a worker's folder")
            if self._sent.get(name) != (sent := sha256_hex(data)):
                found[name], self._sent[name] = data, sent
        return found
