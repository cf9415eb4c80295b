"""Slow, evident counterparts of what the product computes fast; they import nothing of it."""
