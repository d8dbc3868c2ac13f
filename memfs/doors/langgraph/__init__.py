"""What a LangGraph graph remembers, kept as files in git: a store (``MemfsStore``) and a checkpointer (``MemfsSaver``).

Needs ``pip install 'gitmemfs[langgraph]'``.
"""

from memfs.errors import ExtraMissing

try:
    from memfs.doors.langgraph.saver import MemfsSaver
    from memfs.doors.langgraph.store import MemfsStore
except ImportError as error:
    framework = ("langchain_core", "langgraph", "ormsgpack")
    raise ExtraMissing.of("LangGraph's store or saver", "langgraph", framework, error) from error

__all__ = ["MemfsSaver", "MemfsStore"]
