"""Clients of the service, with the methods, answers and errors of a local store.

:class:`~relayd.client.asynchronous.AsyncWan` for asyncio,
:class:`~relayd.client.blocking.RemoteWan` (what ``relayd.open("http://...")`` returns) for other
programs, and :class:`~relayd.sources.mirror.MirroredWan` for those that can't afford a round trip
per question.
"""
