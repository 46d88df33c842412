"""An independent referee: the formulas of docs/, solved by HiGHS, held against relayd's answers.

Nothing here imports ``planner``; networks are opened and questions asked as any user would.
"""
