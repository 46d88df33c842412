"""The linear program of a schedule over slots of time.

:mod:`.slot_program` has its variables and rows, :mod:`.slot_storage` those of what relays store,
:mod:`.slot_solver` solves it, adding relays that pay, and :mod:`.program` has what a schedule asks.
"""
