"""What a figure is about, by the words around it and by its place in a record: one closed table for both.

Kinds: `apart` (what was made again: only its own figures may be quoted), `measure`, `domain`, `condition`; of
comparisons `edge` and `sides` (which side succeeds); `tape`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from harness.records.protocol import Protocol, TapedStudyProtocol

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
_SUCCESS = (
    r"\bsucce(eds?|eded|eding|ss(es)?)\b|\b(correct|right)ly\b|\b(is|are|was|were|be) right\b"
    r"|成功(?!地|复|重|再|返回|生成|运行|执行)"
)
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
    "passed": rf"(?<!replay )\bpass(ed|es)?\b|\bcorrect\b|\bsolved\b|accuracy|通过|正确(?!性)|准确率|{_SUCCESS}",
    "exact": rf"numeric|\bcorrect\b|\bsolved\b|accuracy|数值|正确(?!性)|准确率|{_SUCCESS}",
    "parses": r"\bAST\b|parse|语法",
    "embedding": r"embedding|嵌入",
    "hidden": r"hidden|隐藏",
    "routes": r"rout(e|es|ing)|路由|\bgates?\b(?! holds?\b)",
    "sandbox": r"sandbox|container|沙箱|容器",
    "diverged": r"diverg|分叉",
    "trajectories": r"unique|trajector|轨迹",
}
_ALONE = r"(?:[a-z'’-]{2,14} ){0,2}(alone|only)"
SIDES: Mapping[str, str] = {
    "both": r"\bboth( of the)? (sides|cells|conditions)\b|两(侧|边)(均|都)",
    "left_only": rf"\bleft {_ALONE}\b|\b(only|alone) (on )?the left\b|(仅|只有|单独)左(侧|边)|左(侧|边)(单独|独)",
    "right_only": rf"\bright {_ALONE}\b|\b(only|alone) (on )?the right\b|(仅|只有|单独)右(侧|边)|右(侧|边)(单独|独)",
    "neither": r"\bneither( of the)?( side| cell| condition)?s?\b|两(侧|边)(均|都)(不|未|没)",
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
    "code.outcomes": ("sandbox", "code"), "success": ("fixed_budget", "passed", "exact"), "diverged": ("diverged",),
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
_KINDS = {"apart": APART, "measure": MEASURES, "domain": DOMAINS, "sides": SIDES}
_TAPE = re.compile(r"(?<![A-Za-z0-9_])T\d{1,4}(?!\w)")
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
    edge: frozenset[str] = frozenset()
    sides: frozenset[str] = frozenset()
    tape: frozenset[str] = frozenset()

    def __or__(self, other: "Facets") -> "Facets":
        return Facets(**{name: getattr(self, name) | getattr(other, name) for name in Facets.__slots__})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in Facets.__slots__)

    def covers(self, said: "Facets") -> bool:
        """Whether a figure with these facets may be quoted in a clause about `said`.

        What was made again has figures of its own, so every such word must be the figure's; of the others one must. A
        figure of one edge is of no other, and of one side of it only where that is said. One tape's are its alone.
        """
        shared = ((self.measure, said.measure), (self.domain, said.domain), (self.edge, said.edge))
        sides = bool(self.sides & said.sides) if said.sides else not self.sides
        apart = said.apart <= self.apart and sides and (len(said.tape) != 1 or said.tape == self.tape)
        return apart and self._of_conditions(said) and all(not there or there & own for own, there in shared)

    def _of_conditions(self, said: "Facets") -> bool:
        """A comparison is of its two conditions together; anything else of one of those that are named."""
        if self.edge:
            return said.condition in ({*()}, self.condition) or (bool(said.edge) and said.condition <= self.condition)
        return not said.condition or bool(self.condition & said.condition)

    def within(self, said: "Facets") -> bool:
        """Whether it is of no condition, and of nothing made apart, that isn't named."""
        return self.apart <= said.apart and (self.condition <= said.condition or bool(self.edge))


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Names of a protocol's own: all of its conditions, the domains that no word of DOMAINS stands for, and its edges,
    each with its two conditions. `tapes`: whether a `T0` in a text is one of its tapes, of which no figure is.
    """

    conditions: tuple[str, ...]
    domains: tuple[str, ...]
    edges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    tapes: bool = False


def own_names(protocol: Protocol) -> OwnNames:
    """The names that a write-up may use of this protocol's conditions, domains, edges and tapes."""
    domains = tuple(domain.name for domain in protocol.domains if domain.name not in DOMAINS)
    conditions = tuple(condition.id for condition in protocol.conditions)
    edges = {edge.id: (edge.left, edge.right) for edge in protocol.edges}
    return OwnNames(conditions, domains, edges, isinstance(protocol, TapedStudyProtocol))


def facets_in(text: str, own: OwnNames) -> Facets:
    """What the words of a text are about. A longer name is no mention of a shorter one that it holds."""
    found = {
        kind: frozenset(name for name, words in table.items() if words.search(text)) for kind, table in _WORDS.items()
    }
    left, named = text, set()
    for name in sorted({*own.conditions, *own.edges}, key=len, reverse=True):
        left, times = re.subn(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?!\w)", " ", left)
        named |= {name} if times else set()
    lower = text.lower()
    domains = [one for one in own.domains if re.search(rf"(?<![\w'’.-]){re.escape(one.lower())}(?![\w-])", lower)]
    return Facets(
        apart=found["apart"],
        measure=found["measure"],
        domain=found["domain"] | {*domains},
        condition=frozenset(named & {*own.conditions}),
        edge=frozenset(named & {*own.edges}),
        sides=found["sides"],
        tape=frozenset(_TAPE.findall(text)) if own.tapes else frozenset(),
    )


def facets_of(fields: Iterable[str], own: OwnNames, groups: Iterable[str] = ()) -> Facets:
    """What a count is about whose place in a record goes through these fields, in these groups.

    A group is a domain, condition or edge by its name: whatever it is called, it is no field.
    """
    path, given = list(fields), list(groups)
    joined = [f"{one}.{other}" for one, other in pairwise(path)]
    listed = [facet for name in (*path, *joined) for facet in FIELDS.get(name, (name,))]
    edges = [name for name in given if name in own.edges]
    both = [side for name in edges for side in own.edges[name]]
    return Facets(
        apart=frozenset(listed) & {*APART},
        measure=frozenset(listed) & {*MEASURES},
        domain=(frozenset([*listed, *given]) & {*DOMAINS}) | (frozenset(given) & {*own.domains}),
        condition=(frozenset(given) & {*own.conditions}) | frozenset(both),
        edge=frozenset(edges),
        sides=frozenset(path) & {*SIDES},
    )


def facets_of_source(source: str, own: OwnNames) -> Facets:
    """What a figure of a claim is about, by its source's name: the measure, a domain, a condition, an edge."""
    measure, _, rest = source.partition(".")[2].partition(".")
    parts = [name for name in (*own.conditions, *own.domains, *own.edges, *DOMAINS) if f".{name}." in f".{rest}."]
    succeeded = ("succeeded",) if measure in SIDES else ()
    return facets_of([measure, *succeeded, *(("replay",) if source.startswith("replay.") else ())], own, parts)
