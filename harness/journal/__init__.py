"""The waist: run folders and what lies in them. Writes and reads records; knows no model and no verdict."""
