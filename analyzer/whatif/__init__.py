"""What one run lets expect of another degree: a model, never a verdict.

Which function makes which number, by the words on the screen:

    what-if: range                whatif.expectation:what_if
    what-if: classes of the step  whatif.step_classes:step_of
    what-if: refused              whatif.limits:refusals
    what-if: upper bounds         whatif.ceilings:ceilings
"""
