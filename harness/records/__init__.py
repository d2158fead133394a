"""Frozen, strict records: every stage takes records and gives records. No behaviour lives here."""
