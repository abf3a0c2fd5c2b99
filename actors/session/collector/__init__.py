"""Lanes and output to batches: the session's data side."""

from actors.session.collector.collector import Collector

__all__ = ["Collector"]
