"""Pure evaluators of text, named by version. They know no model, no run and no protocol, and execute nothing."""
