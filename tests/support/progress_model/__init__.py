"""A model that is explored exhaustively: source, store and workers are small values, the rules the product's own functions."""
