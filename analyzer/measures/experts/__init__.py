"""Experts: how evenly tokens fall on them and on ranks, and the bytes of their exchange by formula."""
