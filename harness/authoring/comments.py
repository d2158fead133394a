"""What stands above the parts of the files that init writes: what a part decides, and how it may be changed by hand."""

from collections.abc import Mapping

HEAD = """A study of its author's own, written by `python -m harness init`. Every field that can change a token or a
count is here; none has a default. Edit it, then freeze it: `python -m harness freeze DIR` selects the sources, renders
every prompt and writes manifest and digests. A frozen protocol isn't edited: a change is a revision (amend).
docs/authoring.md explains each part, docs/protocol-files.md each field."""
CLAIM_HEAD = """What may be claimed from a run of this study, registered beside protocol.toml and apart from its digest.
Every number of a template is a figure or a word of the protocol. A threshold (whole, at_least) must be able to fail."""
PROFILE_HEAD = """The model's profile, made by `python -m harness init` from a checkpoint folder: the SHA-256 of every
file, the shape that its config shows, the IDs of its special tokens. protocol.toml pins this file by its content."""

COMMENTS: Mapping[str, str] = {
    "ours": "Choices that a reader should know of; the report lists them.",
    "published": "Digests that a document publishes for files that can't be had: references, never pins.",
    "placement": "Where the model lives in a run; one of [[placements]].",
    "resume": "Whether an interrupted run may go on. If not, one that dies keeps its journals and is never assembled.",
    "execution_cache": "Whether equal programs of one task share an execution.",
    "model": "The model, by its profile's digest: profile.toml beside this file, or the embedded one.",
    "execution": "How the forward pass is computed. One thread: the number of workers then can't change a token.",
    "software": "policy exact: `packages` are pins. recorded: versions are recorded and must match the smoke run's.",
    "decode": "Greedy decoding, passed explicitly and read back. rows_per_batch: all conditions of a source.",
    "decode.official_temperature": "What the model's own config says of sampling; recorded, not used.",
    "prompt": "The model's own chat template, through its hashed file.",
    "boundaries": "Tokens that edits may name: the text must be exactly one token, with this ID. `eos` is required.",
    "conditions": """One prompt of every source. `{content}` stands once, in one message, for the domain's content.
edits: from the place on stand the `official` tokens, which is checked, and those of `put` replace them. Places:
  { place = "prompt_start" }, { place = "message_end", message = 0 }, { place = "history_end" } (of the last assistant
  message), { place = "before_generation" }. An empty `official` inserts, an empty `put` removes.""",
    "edges": "Comparisons of two conditions within a source. kind is a word for tables: system or direct.",
    "inputs": "Files of sources, recognised by SHA-256 under any name, in inputs/ here or where --inputs says.",
    "selection": "Which sources: ascending SHA-256 of salt|domain|source ID, so that nobody picks them.",
    "domains": """A pool of sources. source_id is a format over a row's fields (`n`: its number from 0); text_field
alone reaches a prompt; gold names the fields that only judges may read; {text} stands once in content.""",
    "placements": "Two ways of placing the model that must give the same tokens; the second keeps layers elsewhere.",
    "grids": "So many sources of each domain in rank order x all conditions, each cut at max_new_tokens.",
    "tier_grids": "Which grid a tier generates.",
    "placement_equivalence": "Both placements, over the smoke grid.",
    "independent_replay": "A fresh process generates this grid again.",
    "evaluators": """How outputs are judged, one judge a domain at most. judge: number, program, exact, regex, function.
  { judge = "exact", domain = "qa", field = "answer", compare = "stripped_casefold" }
  { judge = "regex", domain = "qa", pattern = "Answer: (\\\\w+)", field = "answer" }
  { judge = "function", domain = "qa", module = "score", function = "f", source_sha256 = "...", timeout_ms = 2000 }""",
    "sandbox": "The container that programs run in; needed only where a domain has a program judge.",
    "gates": "What is judged in each tier, on which grid, out of how many rows: counts are checked when it loads.",
    "permitted": "What a passed run may be said to show; claims.toml says how each is computed.",
    "prohibited": "What no run of this study shows, whatever its counts.",
}
TAPED_COMMENTS: Mapping[str, str] = {
    "loop_equivalence": """required: with argmax in the sampler's place the loop's tokens must be `generate`'s. It is
required in float32; recorded: they are compared in loop.json.""",
    "decode": """Drawn under tapes by the project's own loop. A tape is a sequence of numbers in (0, 1) for each source:
all conditions of a source read the same number in the same step, each for its own distribution. No generator is
drawn from.""",
    "decode.sampler": "The inverse CDF by token ID, after temperature and top-p, in float32 on the CPU.",
    "decode.register": "Each tape's digest and display seed follow from registered_id and label.",
    "grids": "So many sources of each domain in rank order x all conditions x tapes, each cut at max_new_tokens.",
    "same_process_replay": "The process that drew smoke's cells under this tape draws them again.",
}
CLAIM_COMMENTS: Mapping[str, str] = {
    "bands": "Names under which an interval may be printed: none.",
    "permitted": "status SUPPORTED only where every gate is whole and every threshold is met.",
    "prohibited": "Patterns that recognise a conclusion in a write-up; they are tried on the sentences at every load.",
}
