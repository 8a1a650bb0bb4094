"""Foundations: errors, durable files, devices, weights, progress. Imports nothing else of Regard."""
