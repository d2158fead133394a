"""The protocols on a trained model: what they share with the registered series, and what they register otherwise."""

import pytest

from harness.protocols.load import load_protocol

FAMILIES = ("behavior", "completion", "task-crn")
BOUNDARIES = {"eos": ("<|im_end|>", 2), "bos": ("<|im_start|>", 1), "x": ("x", 104), "period": (".", 30)}


@pytest.fixture(params=FAMILIES)
def pair(request):
    """The protocol on SmolLM2 and the registered one of its family."""
    return tuple(load_protocol(f"{model}-{request.param}") for model in ("smollm2", "deepseek"))


def sources(loaded, domain):
    """A domain's source IDs and text hashes in rank order."""
    return [(one.source_id, one.text_sha256) for one in loaded.manifest.sources if one.domain == domain]


def test_sources_are_the_registered_ones(pair):
    """The same salt over the same files, and every one of them frozen; nothing takes the Chinese input's place."""
    ours, registered = pair
    assert ours.unfrozen == ()
    assert ours.domains == tuple(name for name in registered.domains if name != "chinese")
    for domain in ours.domains:
        assert sources(ours, domain) == sources(registered, domain)


def test_texts_are_the_registered_designs_texts(pair):
    """System text, one shot and the wording around a source; the edited place is another, since the template is."""
    ours, registered = (one.protocol for one in pair)
    for name in ("system_text", "one_shot_question", "one_shot_answer"):
        assert getattr(ours.prompt, name) == getattr(registered.prompt, name)
    wording = {one.name: one.content for one in registered.domains}
    assert {one.name: one.content for one in ours.domains}.items() <= wording.items()
    edited = (ours.prompt.edited_boundary, registered.prompt.edited_boundary)
    assert edited == ("assistant_turn_end", "assistant_history_end")


def test_conditions_and_edges_are_the_designs(pair):
    """The same factorial under this tokenizer's IDs."""
    ours, registered = (one.protocol for one in pair)
    assert (ours.conditions, ours.edges) == (registered.conditions, registered.edges)
    found = {one.name: (one.token, one.id) for one in ours.boundaries}
    assert found == {one.name: BOUNDARIES[one.name] for one in registered.boundaries}


def test_every_file_of_the_checkpoint_is_frozen(pair):
    """A conversion has no digest of its own to offer."""
    assert {file.digest.__class__.__name__ for file in pair[0].profile.files} == {"Frozen"}


def test_what_a_level_without_system_message_holds_is_said(pair):
    """The template's own text stands there: a reader of the protocol must not have to find out."""
    assert any("system false" in one and "inserts its own" in one for one in pair[0].protocol.ours)


def test_the_completion_protocol_is_held_against_the_behaviour_run():
    """By digest: the protocol that the baseline was made under is the one that is here."""
    completion, behavior = (load_protocol(f"smollm2-{name}") for name in ("completion", "behavior"))
    assert completion.protocol.baseline.protocol_digest == behavior.digest
