"""Tools: one file each, and the one function that calls them."""
