"""Suggested replies: three short, different, appropriate answers to a message, or none (Kannan et al., 2016)."""
