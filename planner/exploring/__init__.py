"""Learning which path is best between regions with many transfers, by trying others.

:class:`.outcome.Outcome` is the result of a past transfer, :class:`.choice.Belief` the estimate of
a path's rate now, and :func:`.choice.choose` weighs trying a path against its expected cost.
Nothing is kept between questions: callers keep the outcomes.
"""
