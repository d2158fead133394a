"""Hand-made runs over the nano protocols: their builders are in `tests/support/books.py`."""

import pytest
from pregate_support.books import PROTOCOLS, Builder, CompletionBuilder, DepthBuilder, Said

from harness.protocols.load import read_protocol
from harness.records.protocol import BehaviorProtocol, CompletionProtocol, DepthProtocol
from harness.records.run import Run


@pytest.fixture(scope="session")
def protocol() -> BehaviorProtocol:
    """The nano protocol as its file has it (digests aren't this folder's business)."""
    return read_protocol(PROTOCOLS / "nano-behavior" / "protocol.toml")


@pytest.fixture(scope="session")
def builder(protocol) -> Builder:
    """A builder for the nano protocol."""
    return Builder(protocol)


@pytest.fixture(scope="session")
def say():
    """Said, for tests that can't import this file."""
    return Said


@pytest.fixture(scope="session")
def two_sources(builder, say) -> Run:
    """A hand-made smoke run of two sources, one of mathematics and one of code; the values are in the tests."""
    math = builder.unit(
        "math", 0,
        {
            "*": say("so 12"),
            "s0_eos": say("so 1,234.50"),
            "s1_eos": say("so 1234.5", eos=False),
            "s0_bos": say("none"),
        },
    )  # fmt: skip
    code = builder.unit(
        "code", 0,
        {
            "*": say("```python\ndef f():\n    return 1\n```"),
            "s0_x": say("def f():\n    return 1"),
            "s1_x": say("```python\ndef f():", eos=False),
            "s0_period": say(""),
            "s1_period": say("-" * 400 + "1"),
        },
    )  # fmt: skip
    return builder.run((code, math), domains=("code", "math"), gold={"math/0000": "1,234.50"})


@pytest.fixture(scope="session")
def completion() -> CompletionProtocol:
    """The nano completion protocol as its file has it."""
    return read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml")


@pytest.fixture(scope="session")
def books(completion) -> CompletionBuilder:
    """A builder for it, with one source a domain in the formal grid, where programs are executed."""
    return CompletionBuilder(completion).with_grid("formal", per_domain=1)


@pytest.fixture(scope="session")
def depth() -> DepthProtocol:
    """The nano depth protocol as its file has it."""
    return read_protocol(PROTOCOLS / "nano-depth" / "protocol.toml")


@pytest.fixture(scope="session")
def traces(depth) -> DepthBuilder:
    """A builder for it, of a model with five stages and two gates, with two sources a domain in the smoke grid."""
    return DepthBuilder(depth).with_grid("smoke", per_domain=2, replicates=("forward",))
