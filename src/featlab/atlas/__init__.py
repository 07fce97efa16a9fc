"""The atlas: all theorems and errata on pages that open from disk."""
