"""Tests of promises that hold across modules: architecture, packaging, every plug-in of a kind."""
