"""The investigation: graph, policies, case file, gate, exports, command line."""
