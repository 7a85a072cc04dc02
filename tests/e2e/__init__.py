"""Tests that run `sleuth` as a user does."""
