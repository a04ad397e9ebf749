"""From a run to its report: every rule asked once, six answers, one verdict. `tables` and its neighbours fill the rows.

Which function makes which number, by the words on the screen and the field of the report:

    first line                        verdict                  diagnose.diagnose:_verdict
    answers 1 to 6                    questions.answer         diagnose.answers:plain_answer
    answer 4, what is crossed         questions.answer         diagnose.crossing:crossing
    answer 4, whether it is slow      questions.answer         measures.bottleneck:says
    ! warnings                        run.warnings             diagnose.tables:warnings
    a finding, up to … of the window  findings.cost_share      rules.q303_small_collectives:check
    … where the rule asks a measure   findings.cost_share      measures.cost:cost
    upper bound …                     scaling.bounds.saved_ns  whatif.ceilings:ceilings
    upper bound, time of its class    scaling.bounds.saved_ns  whatif.step_classes:step_of
"""
