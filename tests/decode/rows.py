"""Real prompts of nano-behavior as rows, and an eye on what a model's forward is given."""

from harness.decode.loop import LoopContract, choose_argmax, decode_rows

SMOKE = ("nano-english/003", "nano-chinese/001", "nano-code/004", "nano-math/0128")
# Sources whose official cell ends at this length under argmax within 128 tokens; the last one is cut.
MIXED = {"nano-english/016": 27, "nano-chinese/001": 39, "nano-code/004": 72, "nano-math/0128": 128}


def ignore(step):
    """A tick that nobody watches."""


def decode(model, loaded, rows, budget, choose=choose_argmax, tick=ignore):
    """Rows through the loop under nano's IDs."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=budget)
    return decode_rows(model, rows, contract=contract, choose=choose, tick=tick)


def mixed_rows(batches, pad):
    """The s0_eos cells of the mixed sources as one left-padded batch: IDs and mask."""
    cells = [next(cell for cell in batches[source].cells if cell.condition == "s0_eos").ids for source in MIXED]
    width = max(map(len, cells))
    return (
        tuple((pad,) * (width - len(cell)) + cell for cell in cells),
        tuple((0,) * (width - len(cell)) + (1,) * len(cell) for cell in cells),
    )


class Spy:
    """Keeps the keyword arguments of every forward of a model while it is open."""

    def __init__(self, model):
        self._model, self.calls = model, []

    def _note(self, module, inputs, arguments):
        del module, inputs
        kept = {name: arguments[name] for name in ("input_ids", "attention_mask", "position_ids", "logits_to_keep")}
        self.calls.append({name: value.clone() if hasattr(value, "clone") else value for name, value in kept.items()})

    def __enter__(self):
        self._handle = self._model.register_forward_pre_hook(self._note, with_kwargs=True)
        return self

    def __exit__(self, *_):
        self._handle.remove()
