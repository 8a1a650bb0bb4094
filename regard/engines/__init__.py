"""Inference engines: CTranslate2."""
