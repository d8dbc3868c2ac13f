"""The fault kit: what the crash, power cut and disk tests are built from.

The oracle of every tier is owned by the test's own process: it decides beforehand what a writer is to do (``script``),
the writer only says how far it got (``nursery``), and what may then be found is worked out from those two (``script``
again), never from what the writer kept. ``aftermath`` looks at a workspace after a fault. ``places`` makes file systems
that fail, ``tracing`` injects into system calls, ``broken`` holds the deliberately broken variants of memfs that each
tier must catch, and ``figures`` collects what was tried.
"""
