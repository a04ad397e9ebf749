"""One workload at several degrees: points from runs or a CSV, the best degree, what is past it, what ate the gain.

Which function makes which number, by the words on the screen:

    sweep: optimum                   sweep.optimum:scaling
    sweep: 5-95 %                    sweep.posterior:estimates
    sweep: best                      sweep.posterior:best_shares
    sweep: past                      sweep.posterior:past_shares
    sweep: eaten by                  sweep.past_optimum:past_optimum
    sweep: fixed, parallel, growing  sweep.curve:curve
    sweep: room for KV cache         sweep.capacity:memory_notes
"""
