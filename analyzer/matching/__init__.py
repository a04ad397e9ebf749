"""Which call of one rank is which call of another, and one clock for all: calls, channels, groups, lags, clocks, table.

Which function makes which number, by the words on the screen and the field of the report:

    clock error (html, json)      run.clock.error_ns             matching.anchors:error_ns
    clock error, chosen           run.clock.error_ns             matching.clock:clock
    group: collectives, complete  waiting.groups.complete_share  matching.collectives:match
"""
