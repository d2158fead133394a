"""Faults of a depth run's edges, each against the two cells that it stands between. {0} is the code source."""

from .planting import Fault, in_unit
from .planting_depth import (
    EDGE,
    EDGES,
    OTHER,
    in_edge,
    in_facts,
    on_edge,
    one_ulp,
    same_digests,
    same_routes,
    swapped_names,
)

EMBEDDING = (
    *(
        Fault("embedding_identity", name, on_edge("stages", "embedding", **changes), EDGE, words)
        for name, changes, words in (
            ("a row less exact", {"exact_rows": 64}, ("exact rows of the embedding: expected 65, found 64",)),
            ("fewer rows", {"rows": 64, "exact_rows": 64}, ("rows of the embedding: expected 65, found 64",)),
            ("a difference", {"difference_squared": 0.5}, ("difference of the embedding: expected 0.0, found 0.5",)),
        )
    ),
    *(
        Fault("embedding_identity", name, in_edge(change), EDGE, words)
        for name, change, words in (
            ("no embedding", lambda edge: edge["stages"].pop(0), ("embedding: expected one stage, found 0",)),
            (
                "the embedding twice",
                lambda edge: edge["stages"].insert(0, edge["stages"][0]),
                ("embedding: expected one stage, found 2",),
            ),
        )
    ),
    Fault(
        "embedding_identity",
        "another digest of one side",
        in_facts("hidden", "embedding", "target", sha256=OTHER),
        EDGES,
        ("digest of the embedding over the target: expected", OTHER),
    ),
)
ON_STAGES = tuple(
    Fault("edge_trace", name, on_edge("stages", "layer_02", **changes), EDGE, (words,))
    for name, changes, words in (
        ("fewer rows", {"rows": 64}, "layer_02 rows: expected 65, found 64"),
        ("more exact rows than rows", {"exact_rows": 66}, "layer_02 exact rows within their bounds"),
        ("every row exact", {"exact_rows": 65}, "layer_02 every row exact where the digests are equal: expected False"),
        ("a cosine", {"cosine": 0.5}, "layer_02 cosine: expected"),
        ("a cosine above 1", {"cosine": 1.5, "cosine_sum": 97.5}, "layer_02 cosine within its bounds"),
        ("a sum of cosines", {"cosine_sum": lambda old: old - 1}, "layer_02 cosine: expected"),
        ("a cosine by one ulp", {"cosine": one_ulp}, "layer_02 cosine: expected"),
        ("a relative difference", {"relative_l2": lambda old: old * 2}, "layer_02 relative L2: expected"),
        ("a difference", {"difference_squared": lambda old: old * 2}, "layer_02 relative L2: expected"),
        ("a left side", {"left_squared": lambda old: old * 2}, "layer_02 relative L2: expected"),
    )
)
ON_GATES = tuple(
    Fault("edge_trace", name, on_edge("gates", "layer_02", **changes), EDGE, (words,))
    for name, changes, words in (
        ("fewer tokens", {"tokens": 64}, "layer_02 tokens: expected 65, found 64"),
        ("ordered beyond set", {"ordered_exact": 60, "set_exact": 50}, "layer_02 ordered within set within tokens"),
        ("set beyond tokens", {"set_exact": 66}, "layer_02 ordered within set within tokens"),
        ("every route exact", {"ordered_exact": 65, "set_exact": 65}, "layer_02 every ordered route exact"),
        ("a total variation above 1", {"load_total_variation": 1.5}, "layer_02 total variations within [0, 1]"),
        ("a load's total variation", {"load_total_variation": 0.5}, "layer_02 load total variation: expected 0.0"),
        ("a weighted one", {"weighted_load_total_variation": 0.5}, "layer_02 weighted load total variation: expected"),
    )
)
EDGE_LINES = tuple(
    Fault("edge_trace", name, plant, rows, words)
    for name, plant, rows, words in (
        ("a stage less", in_edge(lambda edge: edge["stages"].pop(3)), EDGE, ("stages: expected",)),
        (
            "a stage twice",
            in_edge(lambda edge: edge["stages"].insert(3, edge["stages"][3])),
            EDGE,
            ("'layer_02', 'layer_02'",),
        ),
        ("a gate less", in_edge(lambda edge: edge["gates"].pop(1)), EDGE, ("gates: expected",)),
        ("a gate twice", in_edge(lambda edge: edge["gates"].insert(1, edge["gates"][1])), EDGE, ("'layer_02', 'lay",)),
        ("the sides' names swapped", in_edge(swapped_names), EDGE, ("stages: expected", "found ()")),
        ("an edge less", in_unit(lambda unit: unit["edges"].pop(5)), EDGE, ("stages: expected", "found ()")),
        ("an edge twice", in_unit(lambda unit: unit["edges"].append(unit["edges"][5])), EDGE, ("found ()",)),
        ("one digest for two sides", same_digests, EDGE, ("digests are equal: expected True, found False",)),
        ("one route digest for two sides", same_routes, EDGE, ("digests are equal: expected True, found False",)),
        (
            "a flipped bit of one side",
            in_facts("hidden", "embedding", "target", sha256=OTHER),
            EDGES,
            ("embedding every row exact where the digests are equal: expected False, found True",),
        ),
        (
            "a load of one side",
            in_facts("gates", "layer_02", "target", load=lambda old: old[::-1]),
            EDGES,
            ("layer_02 load total variation: expected",),
        ),
        (
            "a weighted load of one side",
            in_facts("gates", "layer_02", "target", weighted_load=lambda old: [old[0] + 1, *old[1:]]),
            EDGES,
            ("layer_02 weighted load total variation: expected",),
        ),
    )
)
FAULTS = (*EMBEDDING, *ON_STAGES, *ON_GATES, *EDGE_LINES)
