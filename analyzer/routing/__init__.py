"""Request logs replayed over workers with prefix caches.

Which function makes which number, by the words on the screen:

    routing: reused          routing.outcome:outcome
    routing: achieved (log)  routing.outcome:measured
    routing: ceiling         routing.routing:routing
    routing: TTFT, busiest   routing.replay:replay
"""
