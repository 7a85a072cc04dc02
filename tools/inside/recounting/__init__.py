"""Count once more, before a patch and after it: how often a factor or a reduction comes to bear, and what changed."""
