"""Places where a factor is used unlike in its siblings: the tree's own code is the judge of what is normal."""
