"""The engine on the Whoosh package; only modules here import it, and only when it is chosen.

Whoosh keeps the postings: one field of terms with their weights, cut by our analyzer. Everything else about a document
lies in ``Columns`` beside it, aligned by document number, and is what filters and answers are made of. Only what is
right in every distribution of Whoosh is used: one writer, deletion by document number, an ``Or`` of ``Term``s. Scoring
normally reads whole posting blocks; where Whoosh's insides are not as expected its own search gives the same scores.

Whoosh unpickles what it opens: this engine is only ever given folders that ``memfs.index.generations`` has verified.
"""

from memfs.index.whoosh.engine import WhooshIndex

__all__ = ["WhooshIndex"]
