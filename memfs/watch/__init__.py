"""Watching: hearing of changed files while nobody asks.

``watcher`` keeps the index in step behind the scenes, ``hearing`` asks the operating system for events through
watchdog, ``coverage`` checks with the system that every folder is really watched, and ``notes`` tells other processes
how it goes.
"""

from memfs.watch.notes import notes_folder
from memfs.watch.watcher import Noticed, Watcher

__all__ = ["Noticed", "Watcher", "notes_folder"]
