"""Power counting: run a tree's own functions on stand-ins and read off how often a factor was multiplied in."""
