"""What the README's figures come from: Regard and its peers, side by side on the same machine."""
