"""Endpoint: models behind an OpenAI-compatible service.

Owns asking one: the address, the key, deadlines, retries, and what counts as a usable answer. Knows nothing of
memories, nor of what is asked. ``httpx`` is imported with the first call, in ``wire``.
"""

from memfs.endpoint.endpoint import EMBEDDING_KEY, REVIEW_KEY, Endpoint, key_of

__all__ = ["EMBEDDING_KEY", "REVIEW_KEY", "Endpoint", "key_of"]
