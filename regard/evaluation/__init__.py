"""How good is the text: metrics with their signatures."""
