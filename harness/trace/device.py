"""Sums over the columns of a stage, made where the stage is: a CUDA device has them before the host has the numbers.

The same quantities as `harness.trace.encoding.row_moments` and `harness.trace.edges.compare_rows`, in float64; the
order in which a row's columns are added is the device's own. Sums over rows are the host's, and so are all digests.
"""

from collections.abc import Sequence

import torch

# Float64 numbers of an edge's products that are held at a time: 64 MiB.
AT_ONCE = 1 << 23
BITS = {2: torch.int16, 4: torch.int32}

Pairs = Sequence[tuple[int, int]]


def row_moments(rows: torch.Tensor) -> torch.Tensor:
    """Float64 [4, rows]: mean, sum of squared deviations from it, smallest and largest number of each row."""
    numbers = rows.double()
    mean = numbers.sum(dim=1) / rows.shape[1]
    deviations = (numbers - mean[:, None]).square_().sum(dim=1)
    return torch.stack([mean, deviations, rows.amin(dim=1).double(), rows.amax(dim=1).double()])


def compare_rows(
    rows: torch.Tensor, targets: Sequence[tuple[int, int]], pairs: Pairs
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of edges between cells whose target rows are [start, end): float64 [4, edges, rows], bool [edges, rows].

    The four: dot product, squared norm of the left and of the right row, squared norm of their difference. The flags:
    rows that are equal bit by bit.
    """
    cells = torch.stack([rows[start:end] for start, end in targets])
    bits, numbers = cells.view(BITS[cells.element_size()]), cells.double()
    norms = numbers.square().sum(dim=-1)
    left, right = (torch.tensor(side, device=rows.device) for side in zip(*pairs, strict=True))
    step = max(1, AT_ONCE // max(1, numbers[0].numel()))
    parts = []
    for start in range(0, len(pairs), step):
        one, other = left[start : start + step], right[start : start + step]
        dot = (numbers[one] * numbers[other]).sum(dim=-1)
        difference = (numbers[other] - numbers[one]).square_().sum(dim=-1)
        parts.append((torch.stack([dot, norms[one], norms[other], difference]), (bits[one] == bits[other]).all(dim=-1)))
    return torch.cat([sums for sums, _ in parts], dim=1), torch.cat([exact for _, exact in parts])
