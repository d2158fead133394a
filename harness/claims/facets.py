"""What a figure is about, by the words around it and by its place in a record: one closed table for both.

Four kinds: `apart` (what was made again: only its own figures may be quoted), `measure`, `domain`, `condition`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.records.protocol import Protocol

APART: Mapping[str, str] = {
    "replay": r"re-?play|reproduc|re-?run\b|repeated|regenerat|replicat(ion|ed)\b|(second|fresh) process"
    r"|independent(ly)? (sub|run|process)|复现|复跑|重放|重跑|再现|重新(运行|生成)",
    "placement": r"placement|offload|放置",
    "determinism": r"thread|worker|线程|进程数",
    "any_pass": r"any.pass|任一通过|至少一次通过",
    "conditioned": r"completion.conditioned|among (the )?(completed|finished)|conditioned on|条件准确率|完成条件"
    r"|已完成的?格",
    "any_frozen": r"snapshot|frozen result|快照",
}
MEASURES: Mapping[str, str] = {
    "natural_eos": r"\bEOS\b(?! ?(state|状态))|natural|ended by (itself|themselves)|自然",
    "truncated": r"truncat|\bcut\b|cut off|budget.?(truncat|stop)|截断",
    "other_stop": r"(stop|end)(s|ped|ed)? otherwise|other stop|其他停止|其它停止",
    "strict": r"strict|严格",
    "fixed_budget": r"fixed.budget|within the budget|固定预算",
    "terminal": r"terminal|终点",
    "evaluable": r"evaluable|coverage|可评测|覆盖[率度]",
    "prompts": r"prompt",
    "prefix": r"prefix|前缀",
    "ids_exact": r"equal tokens|token.?IDs? (are )?(exact|equal)|comparisons?|比较",
    "passed": r"(?<!replay )\bpass(ed|es)?\b|\bcorrect\b|\bsolved\b|accuracy|通过|正确(?!性)|准确率",
    "exact": r"numeric|\bcorrect\b|\bsolved\b|accuracy|数值|正确(?!性)|准确率",
    "parses": r"\bAST\b|parse|语法",
    "embedding": r"embedding|嵌入",
    "hidden": r"hidden|隐藏",
    "routes": r"rout(e|es|ing)|路由|\bgates?\b(?! holds?\b)",
    "sandbox": r"sandbox|container|沙箱|容器",
    "diverged": r"diverg|分叉",
    "trajectories": r"unique|trajector|轨迹",
}
DOMAINS: Mapping[str, str] = {
    "english": r"english|wikitext|英文|英语",
    "chinese": r"chinese|tnews|中文",
    "code": r"\bcode\b|humaneval|programs?\b|代码|程序",
    "math": r"\bmath|gsm8k|数学",
}
# Where a count stands in a record -> what it is about. A field that isn't here is about its group alone.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "natural_eos": ("natural_eos",), "truncated": ("truncated",), "budget_truncated": ("truncated",),
    "other_stop": ("other_stop",),
    "newly_ended": ("natural_eos",), "baseline_natural_eos": ("natural_eos",),
    "natural_eos_rate": ("natural_eos",),
    "succeeded": ("fixed_budget", "passed", "exact"),
    "explicit_terminal": ("terminal",), "evaluable": ("evaluable",), "executed": ("sandbox", "evaluable"),
    "strict_complete_exact": ("strict", "exact", "math"), "strict_marker_only_exact": ("strict", "exact", "math"),
    "fixed_budget_exact": ("fixed_budget", "exact", "math"), "last_number_match": ("exact", "math"),
    "fixed_budget_passed": ("fixed_budget", "passed", "code"), "passed": ("passed", "code"),
    "strict_complete_passed": ("strict", "passed", "code"), "fixed_budget_success": ("fixed_budget", "passed", "exact"),
    "strict_complete_success": ("strict", "passed", "exact"), "ast_parses": ("parses", "code"),
    "prefix_exact": ("prefix",), "ids_exact": ("ids_exact",), "output_ids_exact": ("ids_exact",),
    "embedding_exact_rows": ("embedding",), "exact_rows": ("hidden",), "ordered_exact": ("routes",),
    "set_exact": ("routes",), "unique_trajectories": ("trajectories",),
    "observed_any_pass": ("any_pass", "passed", "code"),
    "completion_conditioned_numeric_exact": ("conditioned", "exact", "math"),
    "completion_conditioned_code_passed": ("conditioned", "passed", "code"),
    "fallback_exact": ("conditioned", "exact", "math"), "NATURAL_EOS": ("natural_eos",),
    "outcomes": ("sandbox", "code"), "success": ("fixed_budget", "passed", "exact"), "diverged": ("diverged",),
    "strict_complete": ("strict", "passed", "exact"),
    "prompt_hashes": ("prompts",), "baseline_prompts": ("prompts",), "baseline_prefix": ("prefix",),
    "generation_join": ("prompts",), "independent_replay": ("replay",), "replay_sources": ("replay",),
    "replay_hidden": ("replay", "hidden"), "replay_routes": ("replay", "routes"),
    "replay_weights": ("replay", "routes"),
    "same_process_replay": ("replay",), "placement_equivalence": ("placement",), "row_determinism": ("determinism",),
    "frozen_snapshots": ("any_frozen",), "frozen_verdicts": ("any_frozen",), "frozen_tensors": ("any_frozen",),
    "sandbox_verdicts": ("sandbox", "code"), "embedding_identity": ("embedding",), "edge_trace": ("ids_exact",),
    "paired_comparison": ("ids_exact",), "numeric_strict": ("strict", "exact", "math"),
    "numeric_fixed_budget": ("fixed_budget", "exact", "math"), "code_strict": ("strict", "passed", "code"),
    "code_fixed_budget": ("fixed_budget", "passed", "code"), "conditioned_numeric": ("conditioned", "exact", "math"),
    "conditioned_code": ("conditioned", "passed", "code"),
}  # fmt: skip
_KINDS = {"apart": APART, "measure": MEASURES, "domain": DOMAINS}
_WORDS = {
    kind: {name: re.compile(words, re.IGNORECASE) for name, words in table.items()} for kind, table in _KINDS.items()
}


@dataclass(frozen=True, slots=True)
class Facets:
    """What a clause or a figure is about."""

    apart: frozenset[str] = frozenset()
    measure: frozenset[str] = frozenset()
    domain: frozenset[str] = frozenset()
    condition: frozenset[str] = frozenset()

    def __or__(self, other: "Facets") -> "Facets":
        return Facets(
            self.apart | other.apart,
            self.measure | other.measure,
            self.domain | other.domain,
            self.condition | other.condition,
        )

    def __bool__(self) -> bool:
        return bool(self.apart or self.measure or self.domain or self.condition)

    def covers(self, said: "Facets") -> bool:
        """Whether a figure with these facets may be quoted in a clause about `said`.

        What was made again has figures of its own, so every such word must be the figure's; of the others one must.
        """
        shared = ((self.measure, said.measure), (self.domain, said.domain), (self.condition, said.condition))
        return said.apart <= self.apart and all(not there or there & own for own, there in shared)

    def within(self, said: "Facets") -> bool:
        """Whether it is of no condition, and of nothing made apart, that isn't named."""
        return self.apart <= said.apart and self.condition <= said.condition


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Names of a protocol's own: all of its conditions, and the domains that no word of DOMAINS stands for."""

    conditions: tuple[str, ...]
    domains: tuple[str, ...]


def own_names(protocol: Protocol) -> OwnNames:
    """The names that a write-up may use of this protocol's conditions and domains."""
    domains = tuple(domain.name for domain in protocol.domains if domain.name not in DOMAINS)
    return OwnNames(tuple(condition.id for condition in protocol.conditions), domains)


def facets_in(text: str, own: OwnNames) -> Facets:
    """What the words of a text are about."""
    found = {
        kind: frozenset(name for name, words in table.items() if words.search(text)) for kind, table in _WORDS.items()
    }
    named = [name for name in own.conditions if re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?!\w)", text)]
    lower = text.lower()
    domains = [one for one in own.domains if re.search(rf"(?<![\w'’.-]){re.escape(one.lower())}(?![\w-])", lower)]
    return Facets(found["apart"], found["measure"], found["domain"] | {*domains}, frozenset(named))


def facets_of(names: Iterable[str], own: OwnNames) -> Facets:
    """What a count is about whose place in a record goes through these fields, domains and conditions."""
    given = list(names)
    listed = [facet for name in given for facet in FIELDS.get(name, (name,))]
    return Facets(
        frozenset(listed) & {*APART},
        frozenset(listed) & {*MEASURES},
        (frozenset(listed) & {*DOMAINS}) | (frozenset(given) & {*own.domains}),
        frozenset(name for name in listed if re.fullmatch(r"s\d_\w+", name)) | (frozenset(given) & {*own.conditions}),
    )


def facets_of_source(source: str, own: OwnNames) -> Facets:
    """What a figure of a claim is about, by its source's name: the measure, a domain, a condition."""
    measure, _, rest = source.partition(".")[2].partition(".")
    parts = [name for name in (*own.conditions, *own.domains, *DOMAINS) if f".{name}." in f".{rest}."]
    return facets_of([measure, *parts, *(("replay",) if source.startswith("replay.") else ())], own)
