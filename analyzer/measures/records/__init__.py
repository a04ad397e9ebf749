"""Records checked before claims: what cannot be whole, what was lost, which call got stuck."""
