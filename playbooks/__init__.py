"""Playbooks: their schema, their language, and the ones that come with sleuth."""
