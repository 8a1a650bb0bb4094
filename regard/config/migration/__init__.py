"""Converts configurations of fairseq, OpenNMT-py and JoeyNMT into configurations of Regard."""
