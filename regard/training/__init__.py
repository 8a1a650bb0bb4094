"""Objectives, exposure, schedules, the loop, checkpoints."""
