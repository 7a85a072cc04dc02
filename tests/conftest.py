"""Settings that hold for every test."""
