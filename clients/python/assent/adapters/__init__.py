"""Adapters for frameworks. Each submits a call again when its framework resumes a run, and never trusts the framework's own approval."""
