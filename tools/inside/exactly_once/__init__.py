"""The static instrument: abstract interpretation of a forward pass that counts how often a factor is applied."""
