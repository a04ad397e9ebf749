"""Engine iterations: found in annotations, else in graph launches, else in what repeats; then summed up by kind.

Which function makes which number, by the words on the screen and the field of the report:

    step: count                       breakdown.steps.count      steps.steps:step_summary
    step: median, p90                 breakdown.steps.median_ns  steps.steps:step_summary
    step: period                      breakdown.steps.period_ns  steps.steps:step_summary
    step: compute, comm., move, idle  breakdown.steps.terms      steps.steps:step_summary
    step: left out                    breakdown.steps.left_out   steps.steady:steady
    prefill steps reuse … KV tokens   questions.answer           steps.steps:reused_tokens
"""
