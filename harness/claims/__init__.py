"""Claims as an account: what a judged run supports, and whether a write-up says more. No model, no engine, no clock."""
