"""Two sides, each one report or several: what is exactly equal, what takes longer, where the difference went.

Which function makes which number, by the words on the screen:

    compare: first line                 compare.comparison:headlines
    compare: exact quantities           compare.exact:quantities
    compare: base, head, change         compare.timed:timed_rows
    compare: 95 % interval, p           compare.significance:run_difference
    compare: where the difference went  compare.balance:window_balance
    compare: kernels or overlap decide  compare.balance:overlap
"""
