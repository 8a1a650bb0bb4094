"""The HTTP service: trained runs behind the LibreTranslate protocol and an API of its own.

A front process speaks HTTP (`app`), cuts requests into sentences and batches them across requests (`scheduler`); worker
processes hold the models (`worker`). `catalogue` knows which run translates between which languages.
"""
