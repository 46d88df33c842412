"""The vocabulary of all questions: units, errors, regions and catalogue, prices, and the network.

:mod:`.network` is the graph of estimates that every question is answered on, :mod:`.catalogue` says
what regions, VM types and fees exist, and :mod:`.baseline` what to expect where nothing has been
measured.
"""
