"""From source texts to checked token IDs. Knows the tokenizer and its template; knows no model and no gold answer."""
