"""The columns, in order: name, type, and where the value is from. docs/export.md says what each one means."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["string", "bool", "int32", "int64", "list<int32>"]
Cell = str | bool | int | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a 64-bit integer of a record is a string of hex digits there and here."""

    name: str
    kind: Kind


def _columns(kind: Kind, names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names.split())


COLUMNS: tuple[Column, ...] = (
    *_columns("string", "protocol registered_id protocol_digest result_name run_id run_sha256 tier grid"),
    *_columns("bool", "port"),
    *_columns("string", "domain"),
    *_columns("int32", "index"),
    *_columns("string", "source_id replicate condition"),
    *_columns("bool", "system"),
    *_columns("string", "boundary source_text_sha256 prompt_sha256"),
    *_columns("int32", "prompt_tokens"),
    *_columns("list<int32>", "prompt_ids edit_positions edit_official_ids edit_replaced_ids"),
    *_columns("int32", "target_start target_end crossing_tokens route_decisions"),
    *_columns("string", "generated_sha256"),
    *_columns("list<int32>", "generated_ids"),
    *_columns("int32", "length"),
    *_columns("string", "text_escaped text_sha256 stop"),
    *_columns("bool", "natural_eos truncated"),
    *_columns("string", "completion"),
    *_columns("bool", "terminal_explicit terminal_reached"),
    *_columns("string", "number_rule number_method number"),
    *_columns("bool", "number_marker"),
    *_columns("int32", "number_start number_end"),
    *_columns("string", "gold numeric_result"),
    *_columns("bool", "evaluable"),
    *_columns("string", "program_rule program_method program_sha256"),
    *_columns("int32", "program_start program_end"),
    *_columns("string", "outcome verdict execution_sha256"),
    *_columns("bool", "ast_parses executed"),
    *_columns("bool", "fixed_budget_success strict_complete_success diagnostic_fallback_exact"),
    *_columns("string", "judge judge_outcome judge_value"),
    *_columns("string", "baseline_stop"),
    *_columns("int32", "baseline_length baseline_compared_tokens"),
    *_columns("bool", "baseline_prefix_exact"),
    *_columns("int64", "base_seed"),
    *_columns("string", "run_seed tape_sha256 block"),
    *_columns("int32", "tape_consumed tape_gaps tape_boundary_ties"),
)
