"""Learning which path is best where many transfers go: trying paths that may be better.

:class:`.outcome.Outcome` is what a past transfer had, :class:`.choice.Belief` what outcomes say of
a path's rate now, and :func:`.choice.choose` weighs trying a path against what that is expected to
cost.
Nothing is kept between questions: whoever asks keeps the outcomes.
"""
