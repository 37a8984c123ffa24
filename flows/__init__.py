"""Whole jobs: from input to store, picture and report, with or without Prefect.

``models`` says what a job may be told, ``configuration`` reads it, ``steps`` does the work in
plain functions. Only ``embed_corpus``, ``amds`` and ``prefect_side`` know Prefect.
"""
