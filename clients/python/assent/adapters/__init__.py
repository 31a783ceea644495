"""Adapters of frameworks: each asks again whenever its framework resumes, and never takes the framework's word for an approval."""
