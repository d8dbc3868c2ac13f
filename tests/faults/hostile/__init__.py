"""Hostile things: what somebody who means harm puts in front of memfs.

``content`` is a table of files, by the row of the list of faults; ``canaries`` makes a repository whose every part
would leave a mark if it were run; ``planted`` writes records where memfs keeps its own; ``swapping`` trades a folder
for a link while memfs works in it.
"""
