"""protocol.toml of a study as plain data, from an author's answers, the model's profile and the files' digests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.authoring.answers import Answers, SourceAnswer
from harness.authoring.claims import permitted_conclusions, prohibited_conclusions
from harness.authoring.decoding import decoding_content, grids_content
from harness.authoring.gates import study_gates
from harness.canon import digest
from harness.errors import ProtocolError
from harness.files import file_sha256
from harness.model.official import Official
from harness.places import Places
from harness.protocols.check_study import salt_named_by
from harness.protocols.check_taped_study import RULE, tapes_named_by
from harness.protocols.load import read_protocol
from harness.protocols.modules import module_file
from harness.records.base import convert
from harness.records.profile import Profile, Shape
from harness.records.protocol import GreedyStudyProtocol, JudgedProtocol, RegisteredStudy, TapedStudyProtocol

FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".gz": "jsonl.gz"}
SANDBOX_OF = "nano-completion"  # the contract that the embedded programs run under
POOLS = "nano-behavior"  # where the embedded pools are registered
TIMEOUT_MS = 2000
CONTENT = "{content}"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a draft needs to know of a model. `tokens`: the IDs of the tokens that edits name, by their texts."""

    profile: Profile
    tokens: Mapping[str, int]
    official: Official


def study_content(answers: Answers, model: ModelFacts, folder: Path, tree: Places) -> dict[str, Any]:
    """The whole protocol, for a model of these facts; `folder`: where it will lie.

    ProtocolError where the answers don't make a study.
    """
    profile, prompts = model.profile, _prompts(answers, model.tokens)
    decoding = decoding_content(answers, model.official, len(prompts["conditions"]))
    content = _head(answers) | _model(answers, profile) | decoding | prompts
    content |= _data(answers, tree) | _runs(answers, profile.shape)
    content |= {"evaluators": _evaluators(answers, folder), "sandbox": _sandbox(tree)}
    content |= {"permitted": permitted_conclusions(answers), "prohibited": prohibited_conclusions(answers, tree)}
    bare = {**content, "gates": []}
    todo = "See docs/authoring.md; nothing was written."
    kind: type[RegisteredStudy] = GreedyStudyProtocol if answers.sampling is None else TapedStudyProtocol
    protocol = convert(bare, kind, where="init", error=ProtocolError, todo=todo)
    content["gates"] = study_gates(protocol, profile)
    return content


def _head(answers: Answers) -> dict[str, Any]:
    return {
        "kind": "study" if answers.sampling is None else "study_crn",
        "schema": 1,
        "id": answers.id,
        "registered_id": tapes_named_by(answers.id),
        "title": answers.title,
        "document": f"{answers.id}/protocol.toml",
        "result_name": "fixed-budget account of a study",
        "ours": ["the whole protocol: sources, conditions, sizes and claims are its author's"],
        "published": [],
        "placement": "resident",
        "resume": True,
        "execution_cache": False,
        "sampler": "greedy-argmax" if answers.sampling is None else RULE,
    }


def _model(answers: Answers, profile: Profile) -> dict[str, Any]:
    experts = "grouped_mm" if profile.shape.routed_experts else "none"
    return {
        "model": {"profile": profile.id, "profile_sha256": digest(profile)},
        "execution": {
            "device": answers.device,
            "dtype": answers.dtype,
            "attention": "eager",
            "experts": experts,
            "threads": 1,
            "deterministic_algorithms": True,
            "float32_matmul_precision": "highest",
        },
        "software": {"policy": "recorded", "packages": {}},
    }


def _prompts(answers: Answers, tokens: Mapping[str, int]) -> dict[str, Any]:
    conditions, edges = _conditions(answers)
    names = {"eos": next(iter(tokens))} | answers.edits
    return {
        "prompt": {"template": "tokenizer_config", "padding_side": "left"},
        "boundaries": [{"name": name, "token": text, "id": tokens[text]} for name, text in names.items()],
        "conditions": conditions,
        "edges": edges,
    }


def _conditions(answers: Answers) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The plain prompt, the same with a system text, and of each the same with one token put at the history's end."""
    shot = [("user", answers.shot[0]), ("assistant", answers.shot[1])] if answers.shot else []
    levels = {"plain": [*shot, ("user", CONTENT)]}
    if answers.system:
        levels["system"] = [("system", answers.system), *levels["plain"]]
    conditions, edges = [], []
    for level, messages in levels.items():
        listed = [{"role": role, "content": content} for role, content in messages]
        conditions.append({"id": level, "messages": listed, "edits": []})
        for name in answers.edits:
            edit = {"at": {"place": "history_end"}, "official": ["eos"], "put": [name]}
            conditions.append({"id": f"{level}_{name}", "messages": listed, "edits": [edit]})
            edges.append({"id": f"{name}_{level}", "kind": "direct", "left": level, "right": f"{level}_{name}"})
    suffixes = ("", *(f"_{name}" for name in answers.edits)) if answers.system else ()
    edges += [
        {"id": f"system_text{one}", "kind": "system", "left": f"plain{one}", "right": f"system{one}"}
        for one in suffixes
    ]
    return conditions, edges


def _data(answers: Answers, tree: Places) -> dict[str, Any]:
    return {
        "inputs": [_input(source, tree) for source in answers.sources],
        "selection": {"rule": "sha256-salt-domain-source", "salt": salt_named_by(answers.id)},
        "domains": [_domain(source) for source in answers.sources],
    }


def _input(source: SourceAnswer, tree: Places) -> dict[str, Any]:
    if source.file is None:
        registered = read_protocol(tree.protocols / POOLS / "protocol.toml")
        pool = next(one for one in registered.inputs if one.file_name == f"{source.name}.jsonl")
        plain: dict[str, Any] = msgspec.to_builtins(pool)
        return plain
    suffix = source.file.suffix.lower()
    if suffix not in FORMATS:
        where, expected = f"init: {source.file.name}", f"a file {', '.join(FORMATS)}"
        raise ProtocolError(where, expected=expected, found=suffix or "none", todo="Convert it.")
    return {
        "name": source.name,
        "file_name": source.file.name,
        "format": FORMATS[suffix],
        "digest": {"state": "frozen", "sha256": file_sha256(source.file, what="input file")},
        "location": f"inputs/{source.file.name} beside protocol.toml",
        "licence": "its author's to say",
        "archives": [],
    }


def _domain(source: SourceAnswer) -> dict[str, Any]:
    embedded = source.file is None
    source_id = f"nano-{source.name}/{{n:04d}}" if source.id == "n" else f"{{{source.id}}}"
    return {
        "name": source.name,
        "input": f"nano-{source.name}" if embedded else source.name,
        "source_id": source_id,
        "text_field": source.text,
        "gold": list(source.gold),
        "minimum_tokens": 0,
        "content": source.content,
    }


def _runs(answers: Answers, shape: Shape) -> dict[str, Any]:
    away = [f"model.layers.{layer}" for layer in range(shape.layers * 2 // 3, shape.layers)] + ["model.norm"]
    layers = [f"model.layers.{layer}" for layer in range(shape.layers * 2 // 3)]
    placement = {"gpu_memory": "none", "cpu_memory": "none", "allocator": ""}
    single: dict[str, Any] = {
        "id": "resident",
        "device_map": "single",
        "offload_device": "none",
        "resident": [],
        "offloaded": [],
    }
    apart = "cpu" if answers.device == "cuda" else "disk"
    explicit: dict[str, Any] = {"id": "offloaded", "device_map": "explicit", "offload_device": apart}
    explicit |= {"resident": ["model.embed_tokens", "model.rotary_emb", *layers, "lm_head"], "offloaded": away}
    return {
        "placements": [single | placement, explicit | placement],
        **grids_content(answers),
    }


def _evaluators(answers: Answers, folder: Path) -> dict[str, Any]:
    judges = [_judge(source, folder) for source in answers.sources if source.judge != "none"]
    return {
        "numeric": "numeric-v1",
        "code": "code-v1",
        "terminal": "terminal-r05",
        "similarity": "levenshtein-max",
        "judges": judges,
    }


def _judge(source: SourceAnswer, folder: Path) -> dict[str, Any]:
    head: dict[str, Any] = {"judge": source.judge, "domain": source.name}
    field = source.gold[0] if source.gold else ""
    match source.judge:
        case "number":
            return head | {"field": field}
        case "exact":
            return head | {"field": field, "compare": "stripped_casefold"}
        case "regex":
            return head | {"pattern": source.pattern, "field": field}
        case "function":
            module, _, name = source.function.partition(":")
            sha256 = file_sha256(module_file(folder, module), what="module of the function")
            return head | {"module": module, "function": name, "source_sha256": sha256, "timeout_ms": TIMEOUT_MS}
    return head


def _sandbox(tree: Places) -> dict[str, Any]:
    registered = read_protocol(tree.protocols / SANDBOX_OF / "protocol.toml")
    if not isinstance(registered, JudgedProtocol):
        raise RuntimeError(f"{SANDBOX_OF} registers no sandbox")
    plain: dict[str, Any] = msgspec.to_builtins(registered.sandbox)
    return plain
