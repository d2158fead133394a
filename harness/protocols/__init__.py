"""Loading, checking and freezing protocols. Knows no model, no tokenizer and no run."""
