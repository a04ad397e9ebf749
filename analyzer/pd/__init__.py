"""Prefill handed over to decode: each hand-over in exact terms, and whether disaggregation pays.

Which function makes which number, by the words on the screen:

    pd: term, mean, share  pd.ledger:ledger
    pd: bound by           pd.verdict:transfer_bound
    pd: gain against cost  pd.verdict:verdict
    pd: pool that binds    pd.pools:binding
    pd: DOUBLE PREFILL     pd.pools:again_tokens
"""
